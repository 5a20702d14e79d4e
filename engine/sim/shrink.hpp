// Shrinks a failing run of the simulator: of all its decisions, few that still make it fail, so that somebody can read
// what has to happen. Recorded by Schedule::records_decisions, followed by Schedule::Kind::replay.
//
// Thread safety: functions of their arguments. Source: "Simplifying and isolating failure-inducing input" (Zeller and
// Hildebrandt, 2002). Only complements are tried, for hardly ever does one part alone fail; and at the end pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/sim/schedule.hpp"

namespace kilokv::engine {

struct ShrunkSchedule {
  Schedule schedule;  // Kind::replay, with the decisions that are left
  bool fails = false;
  bool is_minimal = false;  // without any one of them it does not fail; else runs_max came first
  std::uint64_t runs = 0;   // that were tried

  std::string text() const;
};

// Leaves out decisions of the run of `schedule` that had those, as long as fails(schedule) holds. It should ask for the
// failure at hand: with decisions left out, a run may fail for another reason. Where all decisions together do not
// fail, they are returned with fails = false: the run depends on more than its schedule.
ShrunkSchedule shrink(const Schedule& schedule, const std::vector<Decision>& decisions,
                      const std::function<bool(const Schedule&)>& fails, std::uint64_t runs_max);

// "lane 2 begins; behind step 17 of lane 2 lane 0 comes".
std::string to_text(const std::vector<Decision>& decisions);

}  // namespace kilokv::engine
