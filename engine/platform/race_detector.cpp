#include "engine/platform/race_detector.hpp"

#include <algorithm>
#include <bit>

namespace kilokv::engine {
namespace {

constexpr std::size_t kSlotsAtStart = 1024;

constexpr bool acquires(Order order) {
  return order == Order::acquire || order == Order::acquire_release || order == Order::sequential;
}
constexpr bool releases(Order order) {
  return order == Order::release || order == Order::acquire_release || order == Order::sequential;
}

}  // namespace

RaceDetector::RaceDetector(std::uint32_t lanes) : lanes_(lanes), joined_(lanes), slots_(kSlotsAtStart) {
  for (auto* clocks : {&seen_, &fence_released_, &fence_acquired_}) clocks->resize(std::size_t{lanes} * lanes);
  start();
}

void RaceDetector::start() {
  for (auto* clocks : {&seen_, &fence_released_, &fence_acquired_}) std::fill(clocks->begin(), clocks->end(), 0);
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) seen_by(lane)[lane] = 1;
  data_count_ = 0;
  phase_ = 0;
  found_ = false;
  if (++run_ != 0) return;
  std::fill(slots_.begin(), slots_.end(), Slot{});
  run_ = 1;
}

void RaceDetector::join(std::uint64_t lanes) {
  std::fill(joined_.begin(), joined_.end(), 0);
  for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
    join_into(joined_.data(), seen_by(static_cast<std::uint32_t>(std::countr_zero(left))));
  }
  for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    std::copy(joined_.begin(), joined_.end(), seen_by(lane));
    ++seen_by(lane)[lane];
  }
  if (static_cast<std::uint32_t>(std::popcount(lanes)) == lanes_) ++phase_;
}

void RaceDetector::load(std::uint32_t lane, const void* word, Order order) {
  acquire(lane, access(lane, word, Access::load), order);
}

void RaceDetector::store(std::uint32_t lane, const void* word, Order order) {
  const std::uint32_t datum = access(lane, word, Access::store);
  const Clock* from = releases(order) ? seen_by(lane) : fence_released(lane);
  std::copy(from, from + lanes_, released(datum));  // in place of what the value before released
  if (releases(order)) ++seen_by(lane)[lane];
}

void RaceDetector::change(std::uint32_t lane, const void* word, Order order) {
  const std::uint32_t datum = access(lane, word, Access::store);
  acquire(lane, datum, order);
  join_into(released(datum), releases(order) ? seen_by(lane) : fence_released(lane));
  if (releases(order)) ++seen_by(lane)[lane];
}

void RaceDetector::fence(std::uint32_t lane, Order order) {
  Clock* const seen = seen_by(lane);
  if (acquires(order)) join_into(seen, fence_acquired(lane));
  if (!releases(order)) return;
  std::copy(seen, seen + lanes_, fence_released(lane));
  ++seen[lane];
}

std::string RaceDetector::text() const {
  return std::string("data race: lane ") + std::to_string(race_.lane) + " " + to_string(race_.access) + " what lane " +
         std::to_string(race_.other_lane) + " " + to_string(race_.other_access) + ", unordered: datum " +
         std::to_string(race_.datum) + " in order of first use, phase " + std::to_string(race_.phase) +
         " between grid barriers";
}

std::uint32_t RaceDetector::datum_of(const void* address) {
  const Slot& slot = slot_of(address);
  return slot.run == run_ ? slot.datum : add_datum(address);
}

std::uint32_t RaceDetector::add_datum(const void* address) {
  if (std::size_t{data_count_} * 2 >= slots_.size()) grow();
  const std::size_t row = std::size_t{kAccesses + 1} * lanes_;
  const std::size_t begin = data_count_ * row;
  if (data_.size() < begin + row) data_.resize(2 * (begin + row));
  std::fill_n(data_.begin() + static_cast<std::ptrdiff_t>(begin), row, 0);
  slot_of(address) = Slot{address, run_, data_count_};
  return data_count_++;
}

RaceDetector::Slot& RaceDetector::slot_of(const void* address) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 32) & mask;
  while (slots_[at].run == run_ && slots_[at].address != address) at = (at + 1) & mask;
  return slots_[at];
}

void RaceDetector::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.run == run_) slot_of(slot.address) = slot;
  }
}

std::uint32_t RaceDetector::access(std::uint32_t lane, const void* address, Access access) {
  const std::uint32_t datum = datum_of(address);
  check(lane, datum, access, Access::put);
  if (access == Access::put || access == Access::store) check(lane, datum, access, Access::get);
  if (access == Access::put) check(lane, datum, access, Access::load);
  if (access == Access::put || access == Access::get) check(lane, datum, access, Access::store);
  done(datum, access)[lane] = seen_by(lane)[lane];
  return datum;
}

void RaceDetector::check(std::uint32_t lane, std::uint32_t datum, Access access, Access other) {
  const Clock* const happened = done(datum, other);
  const Clock* const seen = seen_by(lane);
  bool unseen = false;
  for (std::uint32_t k = 0; k < lanes_; ++k) unseen |= happened[k] > seen[k];
  if (!unseen || found_) return;
  std::uint32_t other_lane = 0;
  while (happened[other_lane] <= seen[other_lane]) ++other_lane;
  found_ = true;
  race_ = Race{datum, lane, other_lane, phase_, access, other};
}

void RaceDetector::join_into(Clock* to, const Clock* from) const {
  for (std::uint32_t k = 0; k < lanes_; ++k) to[k] = std::max(to[k], from[k]);
}

// Also what a fence that follows can acquire.
void RaceDetector::acquire(std::uint32_t lane, std::uint32_t datum, Order order) {
  join_into(acquires(order) ? seen_by(lane) : fence_acquired(lane), released(datum));
}

const char* RaceDetector::to_string(Access access) {
  switch (access) {
    case Access::get: return "gets";
    case Access::put: return "puts";
    case Access::load: return "loads";
    case Access::store: return "changes";
  }
  return "?";
}

}  // namespace kilokv::engine
