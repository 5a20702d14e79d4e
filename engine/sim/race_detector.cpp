#include "engine/sim/race_detector.hpp"

#include <algorithm>

namespace kilokv::engine {
RaceDetector::RaceDetector(std::uint32_t lanes) : lanes_(lanes), joined_(lanes) {
  for (auto* clocks : {&seen_, &fence_released_, &fence_acquired_}) clocks->resize(std::size_t{lanes} * lanes);
  start();
}

void RaceDetector::start() {
  for (auto* clocks : {&seen_, &fence_released_, &fence_acquired_}) std::fill(clocks->begin(), clocks->end(), 0);
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) seen_by(lane)[lane] = 1;
  numbers_.start();
  phase_ = 0;
  found_ = false;
}

void RaceDetector::join(LaneMask lanes) {
  std::fill(joined_.begin(), joined_.end(), 0);
  for (LaneMask left = lanes; left != 0; left &= left - 1) join_into(joined_.data(), seen_by(first_lane(left)));
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const std::uint32_t lane = first_lane(left);
    std::copy(joined_.begin(), joined_.end(), seen_by(lane));
    ++seen_by(lane)[lane];
  }
  if (lane_count(lanes) == lanes_) ++phase_;
}

void RaceDetector::load(std::uint32_t lane, const void* word, Order order) {
  acquire(lane, released(access(lane, word, Access::load)), order);
}

void RaceDetector::store(std::uint32_t lane, const void* word, Order order) {
  const std::uint32_t datum = access(lane, word, Access::store);
  const Clock* from = releases(order) ? seen_by(lane) : fence_released(lane);
  std::copy(from, from + lanes_, released(datum));  // replaces what the value before released
  if (releases(order)) ++seen_by(lane)[lane];
}

void RaceDetector::change(std::uint32_t lane, const void* word, Order order) {
  const std::uint32_t datum = access(lane, word, Access::store);
  acquire(lane, released(datum), order);
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

void RaceDetector::copy_released(const void* word, std::vector<Clock>* clocks) {
  const Clock* const from = released(datum_of(word));
  clocks->assign(from, from + lanes_);
}

void RaceDetector::load_older(std::uint32_t lane, const void* word, Order order, const std::vector<Clock>& clocks) {
  access(lane, word, Access::load);
  if (!clocks.empty()) acquire(lane, clocks.data(), order);
}

std::string RaceDetector::text() const {
  return std::string("data race: lane ") + std::to_string(race_.lane) + " " + to_string(race_.access) + " what lane " +
         std::to_string(race_.other_lane) + " " + to_string(race_.other_access) + ", unordered: datum " +
         std::to_string(race_.datum) + " in order of first use, phase " + std::to_string(race_.phase) +
         " between grid barriers";
}

std::uint32_t RaceDetector::datum_of(const void* address) {
  const std::uint32_t datum = numbers_.find(address);
  return datum != AddressNumbers::kNone ? datum : add_datum(address);
}

std::uint32_t RaceDetector::add_datum(const void* address) {
  const std::uint32_t datum = numbers_.add(address);
  const std::size_t row = std::size_t{kAccesses + 1} * lanes_;
  const std::size_t begin = datum * row;
  if (data_.size() < begin + row) data_.resize(2 * (begin + row));
  std::fill_n(data_.begin() + static_cast<std::ptrdiff_t>(begin), row, 0);
  return datum;
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

// Adds what an acquire gets now, or what a later fence can acquire.
void RaceDetector::acquire(std::uint32_t lane, const Clock* released, Order order) {
  join_into(acquires(order) ? seen_by(lane) : fence_acquired(lane), released);
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
