#include "engine/sim/weak_memory.hpp"

#include <algorithm>

namespace kilokv::engine {

void WeakMemory::start() {
  numbers_.start();
  views_.resize(lanes_);
  for (Views& views : views_) {
    for (View* view : {&views.seen, &views.met, &views.fence_released}) view->clear();
  }
  sequential_.clear();
}

void WeakMemory::join(LaneMask lanes) {
  joined_.clear();
  for (LaneMask left = lanes; left != 0; left &= left - 1) join_into(&joined_, views_[first_lane(left)].seen);
  for (LaneMask left = lanes; left != 0; left &= left - 1) views_[first_lane(left)].seen = joined_;
}

std::uint32_t WeakMemory::older(std::uint32_t lane, const void* word, std::uint64_t newest, Order order) {
  const std::uint32_t number = number_of(word, newest);
  const Word& of = words_[number];
  if (of.stale[lane] >= kStaleMax) return 0;
  Time oldest = std::max(time_in(views_[lane].seen, number), of.newest < kValues ? 1 : of.newest - kValues + 1);
  if (order == Order::sequential) oldest = std::max(oldest, time_in(sequential_, number));
  return of.newest - oldest;
}

std::uint64_t WeakMemory::load(std::uint32_t lane, const void* word, std::uint32_t age, Order order) {
  const std::uint32_t number = numbers_.find(word);
  Word& of = words_[number];
  of.stale[lane] = age == 0 ? 0 : of.stale[lane] + 1;
  raise(&views_[lane].seen, number, of.newest - age);
  if (order == Order::sequential) raise(&sequential_, number, of.newest - age);
  const Value& value = value_of(&of, age);
  acquire(lane, value, order);
  return value.value;
}

void WeakMemory::store(std::uint32_t lane, const void* word, std::uint64_t old, std::uint64_t value, Order order) {
  const std::uint32_t number = number_of(word, old);
  add_value(lane, number, value).released = released_by(lane, order);
  if (order == Order::sequential) raise(&sequential_, number, words_[number].newest);
}

void WeakMemory::change(std::uint32_t lane, const void* word, std::uint64_t old, std::uint64_t value, Order order) {
  const std::uint32_t number = number_of(word, old);
  acquire(lane, value_of(&words_[number], 0), order);
  Value& added = add_value(lane, number, value);
  added.released = value_of(&words_[number], 1).released;
  join_into(&added.released, released_by(lane, order));
  if (order == Order::sequential) raise(&sequential_, number, words_[number].newest);
}

void WeakMemory::fence(std::uint32_t lane, Order order) {
  Views& views = views_[lane];
  if (acquires(order)) join_into(&views.seen, views.met);
  if (order == Order::sequential) {
    join_into(&views.seen, sequential_);
    sequential_ = views.seen;
  }
  if (releases(order)) views.fence_released = views.seen;
}

void WeakMemory::get(std::uint32_t lane, const void* datum) {
  const std::uint32_t number = numbers_.find(datum);
  if (number != AddressNumbers::kNone) raise(&views_[lane].seen, number, words_[number].newest);
}

void WeakMemory::put(std::uint32_t lane, const void* datum, std::uint64_t value) {
  const std::uint32_t number = numbers_.find(datum);
  if (number != AddressNumbers::kNone) add_value(lane, number, value).released.clear();
}

// The word's number. `value` is its value if this is its first use.
std::uint32_t WeakMemory::number_of(const void* word, std::uint64_t value) {
  if (const std::uint32_t number = numbers_.find(word); number != AddressNumbers::kNone) return number;
  const std::uint32_t number = numbers_.add(word);
  if (words_.size() <= number) words_.resize(number + 1);
  Word& added = words_[number];
  added.newest = 1;
  added.stale.assign(lanes_, 0);
  Value& first = value_of(&added, 0);
  first.value = value;
  first.released.clear();
  first.beside.clear();
  return number;
}

// The lane that writes the value has seen it. The caller says what the value releases.
WeakMemory::Value& WeakMemory::add_value(std::uint32_t lane, std::uint32_t number, std::uint64_t value) {
  Word& word = words_[number];
  raise(&views_[lane].seen, number, ++word.newest);
  Value& added = value_of(&word, 0);
  added.value = value;
  added.beside.clear();
  return added;
}

// Adds what an acquire gets now, or what a later fence can acquire.
void WeakMemory::acquire(std::uint32_t lane, const Value& value, Order order) {
  join_into(acquires(order) ? &views_[lane].seen : &views_[lane].met, value.released);
}

const WeakMemory::View& WeakMemory::released_by(std::uint32_t lane, Order order) const {
  return releases(order) ? views_[lane].seen : views_[lane].fence_released;
}

void WeakMemory::raise(View* view, std::uint32_t number, Time time) {
  if (view->size() <= number) view->resize(number + 1);
  (*view)[number] = std::max((*view)[number], time);
}

void WeakMemory::join_into(View* to, const View& from) {
  if (to->size() < from.size()) to->resize(from.size());
  for (std::size_t number = 0; number < from.size(); ++number) (*to)[number] = std::max((*to)[number], from[number]);
}

}  // namespace kilokv::engine
