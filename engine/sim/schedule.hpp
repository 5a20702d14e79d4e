// The inputs and outputs of a run of the simulator's lanes (lanes.hpp): the shape of the grid, the schedule, the
// report, and the decisions of a run. Thread safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_shape.hpp"

namespace kilokv::engine {

struct GridShape {
  std::uint32_t blocks = 1;
  std::uint32_t block_threads = 1;
  std::uint32_t group_width = 1;  // a block's last group may have fewer lanes

  std::uint32_t lanes() const { return blocks * block_threads; }
  std::uint32_t block_groups() const { return (block_threads + group_width - 1) / group_width; }
  BatchThreads threads() const { return {lanes(), group_width, blocks * block_groups()}; }
};

// A difference of a run from the default run. In the default run a lane runs until it waits or ends; then the first
// lane that can run goes next. If a lane pauses, or has made 1000 steps in a row, the next lane that can run goes.
// Loads read the newest value. A decision is named by the lane and the lane's own step, so that it keeps its meaning if
// earlier decisions are left out. The steps of a lane count from 1: its accesses, its waits and its end. The lane that
// begins is step 0 of lane 0.
struct Decision {
  enum class Kind : std::uint8_t {
    lane,  // after that step this lane runs
    age,   // the load of that step reads the value this many before the newest
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
    sequential,   // a lane runs until it waits; then the first lane that can run goes
    interleaved,  // before each step, with preempt_probability, any other lane that can run goes
    lockstep,     // the lanes of a group that can run make one step each, in order; then comes a random group
    replay,       // follows the decisions, as far as possible
  };
  Kind kind = Kind::interleaved;
  std::uint64_t seed = 0;
  double preempt_probability = 0.25;
  std::uint64_t steps_max = 1'000'000;
  // Above 0, memory is weak (weak_memory.hpp): with this probability, a load reads an older value that it may still
  // read.
  double stale_probability = 0;
  bool records_decisions = false;
  std::vector<Decision> decisions = {};  // of Kind::replay
};

struct RunReport {
  Status status;                  // INTERNAL, with text, if the run ended with an error
  std::uint64_t steps = 0;        // of all lanes
  std::uint64_t preemptions = 0;  // how often a lane that could continue had to let another lane go first
  std::uint64_t stale_loads = 0;  // loads that read an older value than the newest
  std::uint64_t trace = 0;        // digest of all choices, step by step: different traces have different digests
  std::array<std::uint64_t, kProbes> probes{};  // how often each probe was reached
  std::vector<Decision> decisions;              // if they are recorded; their replay is the same run
};

}  // namespace kilokv::engine
