#include "engine/platform/lanes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

constexpr std::uint64_t bit(std::uint32_t lane) { return std::uint64_t{1} << lane; }
constexpr std::uint64_t bits(std::uint32_t begin, std::uint32_t count) {
  return (count == 64 ? ~std::uint64_t{0} : bit(count) - 1) << begin;
}
std::uint32_t first(std::uint64_t mask) { return static_cast<std::uint32_t>(std::countr_zero(mask)); }

constexpr std::uint64_t mix(std::uint64_t z) {  // of splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t to_fraction(double probability) {
  if (probability >= 1) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::ldexp(std::max(probability, 0.0), 64));
}

const char* to_string(Meeting meeting) {
  switch (meeting) {
    case Meeting::group_barrier: return "the group barrier";
    case Meeting::block_barrier: return "the block barrier";
    case Meeting::grid_barrier: return "the grid barrier";
    case Meeting::ballot: return "a ballot";
    case Meeting::match: return "a match";
    case Meeting::broadcast: return "a broadcast";
  }
  return "?";
}

std::string list(std::uint64_t lanes) {
  std::string text = std::has_single_bit(lanes) ? "lane" : "lanes";
  for (const char* separator = " "; lanes != 0; lanes &= lanes - 1, separator = ", ") {
    text += separator + std::to_string(first(lanes));
  }
  return text;
}

}  // namespace

Lanes::Lanes(const GridShape& shape)
    : shape_(shape),
      all_(bits(0, shape.lanes())),
      races_(shape.lanes()),
      shared_words_(std::size_t{shape.blocks} * kSharedWords) {
  KILOKV_CHECK(shape.lanes() >= 1 && shape.lanes() <= kLanesMax && shape.group_width >= 1);
  for (std::uint32_t lane = 0; lane < shape.lanes(); ++lane) {
    const std::uint32_t block_begin = lane - lane % shape.block_threads;
    const std::uint32_t block_end = block_begin + shape.block_threads;
    const std::uint32_t group_begin = lane - (lane - block_begin) % shape.group_width;
    const std::uint32_t group_end = std::min(group_begin + shape.group_width, block_end);
    group_begin_.push_back(group_begin);
    group_.push_back(bits(group_begin, group_end - group_begin));
    block_.push_back(bits(block_begin, shape.block_threads));
    fibers_.push_back(std::make_unique<Fiber>(kStackBytes, [this, lane] { work(lane); }));
  }
}

Lanes::~Lanes() {
  Fiber here;
  for (auto& fiber : fibers_) here.reset(fiber.get());
}

RunReport Lanes::run(const Schedule& schedule, const std::function<void(std::uint32_t)>& body) {
  Fiber here;
  caller_ = &here;
  body_ = &body;
  start(schedule);
  here.switch_to(fibers_[current_].get());
  if (!report_.status.ok()) {
    for (auto& fiber : fibers_) here.reset(fiber.get());
  }
  caller_ = nullptr;
  body_ = nullptr;
  return std::move(report_);
}

void Lanes::start(const Schedule& schedule) {
  schedule_ = schedule;
  report_ = RunReport{};
  random_state_ = mix(schedule.seed);
  preempt_below_ = to_fraction(schedule.preempt_probability);
  runnable_ = all_;
  finished_ = 0;
  waiting_.fill(0);
  meetings_with_.fill(0);
  races_.start();
  for (std::uint64_t& word : shared_words_) word = random();  // undefined at the start
  current_ = schedule.kind == Schedule::Kind::sequential ? 0 : random_lane(all_);
  if (schedule.kind == Schedule::Kind::lockstep) current_ = group_begin_[current_];
  record_choice(current_);
}

// What a lane's fiber does, run after run.
void Lanes::work(std::uint32_t lane) {
  for (;;) {
    (*body_)(lane);
    finish();
  }
}

void Lanes::finish() {
  if (races_.found()) return fail();
  finished_ |= bit(current_);
  runnable_ &= ~bit(current_);
  if (finished_ == all_) return fibers_[current_]->switch_to(caller_);
  if (runnable_ == 0) return fail();
  go_to(next_after_leave());
}

// Does not come back to a lane that is in its body: the run is over, and the lane's fiber is reset.
void Lanes::fail() {
  report_.status = Status(StatusCode::internal, error_text());
  fibers_[current_]->switch_to(caller_);
}

std::string Lanes::error_text() const {
  if (races_.found()) return races_.text();
  if (report_.steps <= schedule_.steps_max) return describe_waiting();
  return "no progress: more than " + std::to_string(schedule_.steps_max) + " steps (steps_max)";
}

void Lanes::step() {
  if (++report_.steps > schedule_.steps_max || races_.found()) fail();
  const std::uint32_t next = next_after_step();
  if (next != current_) ++report_.preemptions;
  go_to(next);
}

void Lanes::meet(Meeting meeting) {
  step();
  runnable_ &= ~bit(current_);
  waiting_[static_cast<std::size_t>(meeting)] |= bit(current_);
  if (release_if_complete(meeting)) return go_to(next_after_meeting());
  if (runnable_ == 0) fail();
  go_to(next_after_leave());
}

bool Lanes::release_if_complete(Meeting meeting) {
  Mask& waiting = waiting_[static_cast<std::size_t>(meeting)];
  const Mask all = members(meeting);
  if ((waiting & all) != all) return false;
  waiting &= ~all;
  runnable_ |= all;
  if (meeting <= Meeting::grid_barrier) races_.join(all);
  return true;
}

Lanes::Mask Lanes::members(Meeting meeting) const {
  switch (meeting) {
    case Meeting::block_barrier: return block_[current_];
    case Meeting::grid_barrier: return all_;
    case Meeting::group_barrier:
    case Meeting::ballot:
    case Meeting::match:
    case Meeting::broadcast: break;
  }
  return group_[current_];
}

void Lanes::meet_with(Meeting meeting, std::uint64_t word) {
  given_[++meetings_with_[current_] % 2][current_] = word;
  meet(meeting);
}

std::uint64_t Lanes::given(std::uint32_t group_lane) const {
  KILOKV_CHECK(group_lane < group_size());
  return given_[meetings_with_[current_] % 2][group_begin_[current_] + group_lane];
}

std::uint32_t Lanes::group_size() const { return static_cast<std::uint32_t>(std::popcount(group_[current_])); }

void Lanes::go_to(std::uint32_t lane) {
  record_choice(lane);
  if (lane == current_) return;
  Fiber* const from = fibers_[current_].get();
  current_ = lane;
  from->switch_to(fibers_[lane].get());
}

void Lanes::record_choice(std::uint32_t lane) {  // FNV-1a, a lane for a byte
  report_.trace = (report_.trace ^ (lane + 1)) * 0x100000001B3u;
}

std::uint64_t Lanes::random() { return mix(random_state_ += 0x9E3779B97F4A7C15u); }

std::uint32_t Lanes::random_lane(Mask among) {
  const auto count = static_cast<std::uint64_t>(std::popcount(among));
  for (std::uint64_t skipped = ((random() >> 32) * count) >> 32; skipped > 0; --skipped) among &= among - 1;
  return first(among);
}

std::uint32_t Lanes::next_after_step() {
  switch (schedule_.kind) {
    case Schedule::Kind::sequential: break;
    case Schedule::Kind::interleaved: {
      const Mask others = runnable_ & ~bit(current_);
      return others != 0 && random() < preempt_below_ ? random_lane(others) : current_;
    }
    case Schedule::Kind::lockstep: return next_in_round();
  }
  return current_;
}

// A lane waits or has finished, others go on.
std::uint32_t Lanes::next_after_leave() {
  switch (schedule_.kind) {
    case Schedule::Kind::sequential: break;
    case Schedule::Kind::interleaved: return random_lane(runnable_);
    case Schedule::Kind::lockstep: return next_in_round();
  }
  return first(runnable_);
}

// Some have met: in lockstep they are together again.
std::uint32_t Lanes::next_after_meeting() {
  return schedule_.kind == Schedule::Kind::lockstep ? start_round() : next_after_leave();
}

std::uint32_t Lanes::next_in_round() {
  const Mask left = runnable_ & group_[current_] & ~bits(0, current_ + 1);
  return left != 0 ? first(left) : start_round();
}

std::uint32_t Lanes::start_round() { return first(runnable_ & group_[random_lane(runnable_)]); }

std::string Lanes::describe_waiting() const {
  std::string text = "barrier mismatch: ";
  for (std::size_t i = 0; i < kMeetings; ++i) {
    if (waiting_[i] == 0) continue;
    text += list(waiting_[i]) + " at " + to_string(static_cast<Meeting>(i)) + "; ";
  }
  return text + (finished_ == 0 ? "none has" : list(finished_) + (std::has_single_bit(finished_) ? " has" : " have")) +
         " finished";
}

}  // namespace kilokv::engine
