#include "engine/sim/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kilokv::engine {
namespace {

constexpr std::uint64_t mix(std::uint64_t z) {  // of splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t to_fraction(double probability) {
  if (probability >= 1) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::ldexp(std::max(probability, 0.0), 64));
}

}  // namespace

Scheduler::Scheduler(const GridShape& shape) : lanes_(shape.lanes()) {
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
    const std::uint32_t block_begin = lane - lane % shape.block_threads;
    const std::uint32_t begin = lane - (lane - block_begin) % shape.group_width;
    const std::uint32_t end = std::min(begin + shape.group_width, block_begin + shape.block_threads);
    group_.push_back(lane_bits(begin, end - begin));
  }
}

void Scheduler::start(const Schedule& schedule) {
  kind_ = schedule.kind;
  random_state_ = mix(schedule.seed);
  preempt_below_ = to_fraction(schedule.preempt_probability);
  stale_below_ = to_fraction(schedule.stale_probability);
  records_ = schedule.records_decisions;
  steps_.assign(lanes_, 0);
  steps_in_row_ = 0;
  decisions_.clear();
  plan_ = schedule.decisions;
  std::sort(plan_.begin(), plan_.end());
}

std::uint64_t Scheduler::random() { return mix(random_state_ += 0x9E3779B97F4A7C15u); }

std::uint32_t Scheduler::begin(LaneMask runnable) {
  std::uint32_t next = first_lane(runnable);
  switch (kind_) {
    case Schedule::Kind::sequential: break;
    case Schedule::Kind::interleaved: next = random_lane(runnable); break;
    case Schedule::Kind::lockstep: next = start_round(runnable); break;
    case Schedule::Kind::replay: next = planned_lane(0, runnable, next); break;
  }
  return note_lane(0, next, first_lane(runnable));
}

std::uint32_t Scheduler::after_step(std::uint32_t lane, LaneMask runnable) {
  ++steps_[lane];
  ++steps_in_row_;
  std::uint32_t next = lane;
  switch (kind_) {
    case Schedule::Kind::sequential: break;
    case Schedule::Kind::interleaved: {
      const LaneMask others = runnable & ~lane_bit(lane);
      if (others != 0 && random() < preempt_below_) next = random_lane(others);
      break;
    }
    case Schedule::Kind::lockstep: next = next_in_round(lane, runnable); break;
    case Schedule::Kind::replay: next = planned_lane(lane, runnable, default_after_step(lane, runnable)); break;
  }
  return note_lane(lane, next, records_ ? default_after_step(lane, runnable) : next);
}

std::uint32_t Scheduler::after_leave(std::uint32_t lane, LaneMask runnable) {
  ++steps_[lane];
  std::uint32_t next = first_lane(runnable);
  switch (kind_) {
    case Schedule::Kind::sequential: break;
    case Schedule::Kind::interleaved: next = random_lane(runnable); break;
    case Schedule::Kind::lockstep: next = next_in_round(lane, runnable); break;
    case Schedule::Kind::replay: next = planned_lane(lane, runnable, next); break;
  }
  return note_lane(lane, next, first_lane(runnable));
}

// In lockstep, the lanes that have met run together again.
std::uint32_t Scheduler::after_meeting(std::uint32_t lane, LaneMask runnable) {
  if (kind_ != Schedule::Kind::lockstep) return after_leave(lane, runnable);
  ++steps_[lane];
  return note_lane(lane, start_round(runnable), first_lane(runnable));
}

std::uint32_t Scheduler::age(std::uint32_t lane, std::uint32_t older) {
  if (older == 0) return 0;
  std::uint32_t age = 0;
  if (kind_ == Schedule::Kind::replay) {
    age = std::min(planned(lane, Decision::Kind::age, 0), older);
  } else if (random() < stale_below_) {
    age = 1 + random_below(older);
  }
  if (records_ && age != 0) decisions_.push_back({lane, steps_[lane], Decision::Kind::age, age});
  return age;
}

std::uint32_t Scheduler::random_below(std::uint32_t bound) {
  return static_cast<std::uint32_t>(((random() >> 32) * bound) >> 32);
}

std::uint32_t Scheduler::random_lane(LaneMask among) {
  for (std::uint32_t skipped = random_below(lane_count(among)); skipped > 0; --skipped) among &= among - 1;
  return first_lane(among);
}

std::uint32_t Scheduler::next_in_round(std::uint32_t lane, LaneMask runnable) {
  const LaneMask left = runnable & group_[lane] & ~lane_bits(0, lane + 1);
  return left != 0 ? first_lane(left) : start_round(runnable);
}

std::uint32_t Scheduler::start_round(LaneMask runnable) { return first_lane(runnable & group_[random_lane(runnable)]); }

// At times a lane that spins lets others run, even if the decision to do so was left out.
std::uint32_t Scheduler::default_after_step(std::uint32_t lane, LaneMask runnable) const {
  if (steps_in_row_ < kStepsInRowMax) return lane;
  const LaneMask behind = runnable & ~lane_bits(0, lane + 1);
  return first_lane(behind != 0 ? behind : runnable);
}

std::uint32_t Scheduler::planned(std::uint32_t lane, Decision::Kind kind, std::uint32_t otherwise) const {
  const auto at = std::lower_bound(plan_.begin(), plan_.end(), Decision{lane, steps_[lane], kind, 0});
  const bool is_it = at != plan_.end() && at->lane == lane && at->step == steps_[lane] && at->kind == kind;
  return is_it ? at->value : otherwise;
}

std::uint32_t Scheduler::planned_lane(std::uint32_t lane, LaneMask runnable, std::uint32_t otherwise) const {
  const std::uint32_t next = planned(lane, Decision::Kind::lane, otherwise);
  return next < lanes_ && (runnable & lane_bit(next)) != 0 ? next : otherwise;
}

std::uint32_t Scheduler::note_lane(std::uint32_t lane, std::uint32_t next, std::uint32_t otherwise) {
  if (next != lane || steps_in_row_ >= kStepsInRowMax) steps_in_row_ = 0;
  if (records_ && next != otherwise) decisions_.push_back({lane, steps_[lane], Decision::Kind::lane, next});
  return next;
}

}  // namespace kilokv::engine
