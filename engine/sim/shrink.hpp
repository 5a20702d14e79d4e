// Shrinks a failing run of the simulator: finds few of its decisions with which it still fails, so that a person can
// see what has to happen. Schedule::records_decisions records them; Schedule::Kind::replay follows them.
//
// Thread safety: pure functions. Source: "Simplifying and isolating failure-inducing input" (Zeller and Hildebrandt,
// 2002). Only complements are tried, because a single part almost never fails alone; at the end pairs are tried.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/sim/schedule.hpp"

namespace kilokv::engine {

struct ShrunkSchedule {
  Schedule schedule;  // Kind::replay, with the remaining decisions
  bool fails = false;
  bool is_minimal = false;  // it does not fail without any one of them; false: runs_max ended the search
  std::uint64_t runs = 0;   // runs that were tried

  std::string text() const;
};

// Leaves out decisions of the run of `schedule`, as long as fails(schedule) is true. `decisions`: those of that run.
// fails() should check for the same failure, because with fewer decisions a run may fail for another reason. If all
// decisions together do not fail, they are returned with fails = false: the run then depends on more than its schedule.
ShrunkSchedule shrink(const Schedule& schedule, const std::vector<Decision>& decisions,
                      const std::function<bool(const Schedule&)>& fails, std::uint64_t runs_max);

// The decisions as text, such as: "lane 2 begins; after step 17 of lane 2 lane 0 runs".
std::string to_text(const std::vector<Decision>& decisions);

}  // namespace kilokv::engine
