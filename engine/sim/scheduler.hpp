// Decides in a run of the simulator (lanes.hpp) which lane goes next, and how old a value a load reads. It decides by
// the schedule's seed or by its decisions, and records them if the schedule asks for it. The same schedule and the same
// calls give the same decisions.
//
// Thread safety: one thread for each object.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/sim/lane_mask.hpp"
#include "engine/sim/schedule.hpp"

namespace kilokv::engine {

class Scheduler {
 public:
  explicit Scheduler(const GridShape& shape);

  void start(const Schedule& schedule);
  std::uint64_t random();

  // The lane that goes next, one of `runnable`, which must not be empty.
  std::uint32_t begin(LaneMask runnable);
  std::uint32_t after_step(std::uint32_t lane, LaneMask runnable);     // the lane can continue
  void before_pause() { steps_in_row_ = kStepsInRowMax; }              // the next step is a pause
  std::uint32_t after_leave(std::uint32_t lane, LaneMask runnable);    // the lane waits or has finished
  std::uint32_t after_meeting(std::uint32_t lane, LaneMask runnable);  // the lane was the last to arrive
  // How many values before the newest the lane's load reads; at most `older`.
  std::uint32_t age(std::uint32_t lane, std::uint32_t older);

  // Removes and returns the decisions of the run so far.
  std::vector<Decision> take_decisions() { return std::move(decisions_); }

 private:
  static constexpr std::uint64_t kStepsInRowMax = 1000;

  std::uint32_t random_below(std::uint32_t bound);
  std::uint32_t random_lane(LaneMask among);
  std::uint32_t next_in_round(std::uint32_t lane, LaneMask runnable);
  std::uint32_t start_round(LaneMask runnable);
  std::uint32_t default_after_step(std::uint32_t lane, LaneMask runnable) const;
  std::uint32_t planned(std::uint32_t lane, Decision::Kind kind, std::uint32_t otherwise) const;
  std::uint32_t planned_lane(std::uint32_t lane, LaneMask runnable, std::uint32_t otherwise) const;
  std::uint32_t note_lane(std::uint32_t lane, std::uint32_t next, std::uint32_t otherwise);

  const std::uint32_t lanes_;
  std::vector<LaneMask> group_;  // of each lane

  // State of the current run.
  Schedule::Kind kind_ = Schedule::Kind::sequential;
  std::uint64_t random_state_ = 0;
  std::uint64_t preempt_below_ = 0, stale_below_ = 0;  // as parts of 2^64
  bool records_ = false;
  std::vector<std::uint64_t> steps_;  // of each lane
  std::uint64_t steps_in_row_ = 0;    // of the running lane
  std::vector<Decision> plan_;        // in order
  std::vector<Decision> decisions_;
};

}  // namespace kilokv::engine
