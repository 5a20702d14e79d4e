// What a run of the simulator's lanes (lanes.hpp) is given, and what it tells: the shape of the grid, the schedule, the
// report, and the decisions of which a run consists. Data only.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/platform/concept.hpp"

namespace kilokv::engine {

struct GridShape {
  std::uint32_t blocks = 1;
  std::uint32_t block_threads = 1;
  std::uint32_t group_width = 1;  // a block's last group may have fewer lanes

  std::uint32_t lanes() const { return blocks * block_threads; }
  std::uint32_t block_groups() const { return (block_threads + group_width - 1) / group_width; }
};

// What a run did other than one does by itself: a lane runs until it waits or ends, then the first that can; where it
// pauses, or has made 1000 steps in a row, the next that can; loads read the newest value. A decision is named by the
// lane and the lane's own step, so that it keeps its meaning where decisions before it are left out. Steps of a lane
// count from 1: its accesses, and its waits and its end; who begins is step 0 of lane 0.
struct Decision {
  enum class Kind : std::uint8_t {
    lane,  // behind that step this lane comes
    age,   // the load of that step reads the value so many before the newest
  };
  std::uint32_t lane = 0;
  std::uint64_t step = 0;
  Kind kind = Kind::lane;
  std::uint32_t value = 0;

  friend bool operator==(const Decision&, const Decision&) = default;
  friend bool operator<(const Decision& a, const Decision& b) {
    return std::tie(a.lane, a.step, a.kind, a.value) < std::tie(b.lane, b.step, b.kind, b.value);
  }
};

struct Schedule {
  enum class Kind : std::uint8_t {
    sequential,   // a lane runs until it waits; then the first that can
    interleaved,  // before each step another lane comes with preempt_probability, any that can run
    lockstep,     // the lanes of a group that can run make a step each, in order; then a group at random
    replay,       // the decisions, as far as they can be followed
  };
  Kind kind = Kind::interleaved;
  std::uint64_t seed = 0;
  double preempt_probability = 0.25;
  std::uint64_t steps_max = 1'000'000;
  // Above 0 memory is weak (weak_memory.hpp), and a load reads so often an older value that it may still read.
  double stale_probability = 0;
  bool records_decisions = false;
  std::vector<Decision> decisions = {};  // of Kind::replay
};

struct RunReport {
  Status status;                                // INTERNAL, with text, where the run ended with an error
  std::uint64_t steps = 0;                      // of all lanes
  std::uint64_t preemptions = 0;                // a lane that could have gone on had to let another go first
  std::uint64_t stale_loads = 0;                // that read an older value than the newest
  std::uint64_t trace = 0;                      // digest of all choices, step by step: other traces, other digests
  std::array<std::uint64_t, kProbes> probes{};  // times that each was reached
  std::vector<Decision> decisions;              // where they are recorded; their replay is the same run
};

}  // namespace kilokv::engine
