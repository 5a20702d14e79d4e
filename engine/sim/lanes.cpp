#include "engine/sim/lanes.hpp"

#include <algorithm>
#include <bit>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

const GridShape& checked(const GridShape& shape) {
  KILOKV_CHECK(shape.lanes() >= 1 && shape.lanes() <= Lanes::kLanesMax && shape.group_width >= 1);
  return shape;
}

const char* to_string(Meeting meeting) {
  switch (meeting) {
    case Meeting::group_barrier: return "the group barrier";
    case Meeting::block_barrier: return "the block barrier";
    case Meeting::grid_barrier: return "the grid barrier";
    case Meeting::ballot: return "a ballot";
    case Meeting::match: return "a match";
    case Meeting::broadcast: return "a broadcast";
    case Meeting::sum: return "a sum";
  }
  return "?";
}

std::string list(LaneMask lanes) {
  std::string text = std::has_single_bit(lanes) ? "lane" : "lanes";
  for (const char* separator = " "; lanes != 0; lanes &= lanes - 1, separator = ", ") {
    text += separator + std::to_string(first_lane(lanes));
  }
  return text;
}

}  // namespace

Lanes::Lanes(const GridShape& shape)
    : shape_(checked(shape)),
      all_(lane_bits(0, shape.lanes())),
      scheduler_(shape),
      races_(shape.lanes()),
      weak_memory_(shape.lanes()),
      shared_words_(std::size_t{shape.blocks} * kSharedWords) {
  for (std::uint32_t lane = 0; lane < shape.lanes(); ++lane) {
    const std::uint32_t block_begin = lane - lane % shape.block_threads;
    const std::uint32_t block_end = block_begin + shape.block_threads;
    const std::uint32_t group_begin = lane - (lane - block_begin) % shape.group_width;
    const std::uint32_t group_end = std::min(group_begin + shape.group_width, block_end);
    group_begin_.push_back(group_begin);
    group_.push_back(lane_bits(group_begin, group_end - group_begin));
    block_.push_back(lane_bits(block_begin, shape.block_threads));
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
  report_.decisions = scheduler_.take_decisions();
  return std::move(report_);
}

void Lanes::start(const Schedule& schedule) {
  scheduler_.start(schedule);
  steps_max_ = schedule.steps_max;
  is_weak_ = schedule.stale_probability > 0;
  report_ = RunReport{};
  runnable_ = all_;
  finished_ = 0;
  waiting_.fill(0);
  meetings_with_.fill(0);
  races_.start();
  if (is_weak_) weak_memory_.start();
  for (std::uint64_t& word : shared_words_) word = scheduler_.random();  // undefined at the start
  current_ = scheduler_.begin(all_);
  add_to_trace(current_);
}

// The body of a lane's fiber, for one run after another.
void Lanes::work(std::uint32_t lane) {
  for (;;) {
    (*body_)(lane);
    finish();
  }
}

void Lanes::finish() {
  if (races_.found()) return fail();
  finished_ |= lane_bit(current_);
  runnable_ &= ~lane_bit(current_);
  if (finished_ == all_) return fibers_[current_]->switch_to(caller_);
  if (runnable_ == 0) return fail();
  go_to(scheduler_.after_leave(current_, runnable_));
}

// Does not return to a lane that is in its body: the run has ended, and the lane's fiber is reset.
void Lanes::fail() {
  report_.status = Status(StatusCode::internal, error_text());
  fibers_[current_]->switch_to(caller_);
}

std::string Lanes::error_text() const {
  if (races_.found()) return races_.text();
  if (report_.steps <= steps_max_) return describe_waiting();
  return "no progress: more than " + std::to_string(steps_max_) + " steps (steps_max)";
}

void Lanes::step() {
  if (++report_.steps > steps_max_ || races_.found()) fail();
  const std::uint32_t next = scheduler_.after_step(current_, runnable_);
  if (next != current_) ++report_.preemptions;
  go_to(next);
}

void Lanes::pause() {
  scheduler_.before_pause();
  step();
}

void Lanes::meet(Meeting meeting) {
  step();
  runnable_ &= ~lane_bit(current_);
  waiting_[static_cast<std::size_t>(meeting)] |= lane_bit(current_);
  if (release_if_complete(meeting)) return go_to(scheduler_.after_meeting(current_, runnable_));
  if (runnable_ == 0) fail();
  go_to(scheduler_.after_leave(current_, runnable_));
}

bool Lanes::release_if_complete(Meeting meeting) {
  LaneMask& waiting = waiting_[static_cast<std::size_t>(meeting)];
  const LaneMask all = members(meeting);
  if ((waiting & all) != all) return false;
  waiting &= ~all;
  runnable_ |= all;
  if (meeting > Meeting::grid_barrier) return true;
  races_.join(all);
  if (is_weak_) weak_memory_.join(all);
  return true;
}

LaneMask Lanes::members(Meeting meeting) const {
  switch (meeting) {
    case Meeting::block_barrier: return block_[current_];
    case Meeting::grid_barrier: return all_;
    case Meeting::group_barrier:
    case Meeting::ballot:
    case Meeting::match:
    case Meeting::broadcast:
    case Meeting::sum: break;
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

std::uint32_t Lanes::group_size() const { return lane_count(group_[current_]); }

void Lanes::go_to(std::uint32_t lane) {
  add_to_trace(lane);
  if (lane == current_) return;
  Fiber* const from = fibers_[current_].get();
  current_ = lane;
  from->switch_to(fibers_[lane].get());
}

void Lanes::add_to_trace(std::uint32_t choice) {  // FNV-1a, with a choice in place of a byte
  report_.trace = (report_.trace ^ (choice + 1)) * 0x100000001B3u;
}

std::uint64_t Lanes::load(const void* word, std::uint64_t now, Order order) {
  const std::uint32_t age = is_weak_ ? scheduler_.age(current_, weak_memory_.older(current_, word, now, order)) : 0;
  if (age == 0) {
    load_newest(word, now, order);
    return now;
  }
  ++report_.stale_loads;
  add_to_trace(kLanesMax + age);
  races_.load_older(current_, word, order, weak_memory_.beside(word, age));
  return weak_memory_.load(current_, word, age, order);
}

void Lanes::load_newest(const void* word, std::uint64_t now, Order order) {
  races_.load(current_, word, order);
  if (!is_weak_) return;
  static_cast<void>(weak_memory_.older(current_, word, now, order));
  weak_memory_.load(current_, word, 0, order);
}

void Lanes::store(const void* word, std::uint64_t now, std::uint64_t value, Order order) {
  races_.store(current_, word, order);
  if (!is_weak_) return;
  weak_memory_.store(current_, word, now, value, order);
  races_.copy_released(word, &weak_memory_.beside(word, 0));
}

void Lanes::change(const void* word, std::uint64_t now, std::uint64_t value, Order order) {
  races_.change(current_, word, order);
  if (!is_weak_) return;
  weak_memory_.change(current_, word, now, value, order);
  races_.copy_released(word, &weak_memory_.beside(word, 0));
}

void Lanes::fence(Order order) {
  races_.fence(current_, order);
  if (is_weak_) weak_memory_.fence(current_, order);
}

void Lanes::get(const void* datum) {
  races_.get(current_, datum);
  if (is_weak_) weak_memory_.get(current_, datum);
}

void Lanes::put(const void* datum, std::uint64_t value) {
  races_.put(current_, datum);
  if (is_weak_) weak_memory_.put(current_, datum, value);
}

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
