// The platform of the simulator: lanes (lanes.hpp) of a grid. Each access to shared memory is a step, and data races
// are detected (race_detector.hpp). Its memory is this process's memory; it is weak if the schedule says so
// (weak_memory.hpp).
//
// Groups of 4 are so small that few schedules cover much. Groups of 32 are those of a device.
// Thread safety: an object belongs to one lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/check.hpp"
#include "engine/platform/concept.hpp"
#include "engine/sim/lanes.hpp"

namespace kilokv::engine {

template <std::uint32_t Width>
class SimPlatformOf {
 public:
  using Space = HostSpace;
  static constexpr std::uint32_t kGroupWidth = Width;
  static constexpr std::uint32_t kSharedWords = Lanes::kSharedWords;
  static constexpr bool kHasBlockWords = false, kHasClusters = true;
  static_assert(Width >= 1 && Width <= 32);

  // Requires: the shape of `lanes` has groups of Width.
  SimPlatformOf(Lanes* lanes, std::uint32_t thread) : lanes_(lanes), thread_(thread) {
    KILOKV_CHECK(lanes->shape().group_width == Width && thread < lanes->shape().lanes());
  }

  std::uint32_t thread() const { return thread_; }
  std::uint32_t threads() const { return lanes_->shape().lanes(); }
  std::uint32_t lane() const { return block_thread() % Width; }
  std::uint32_t group() const { return block() * lanes_->shape().block_groups() + block_thread() / Width; }
  std::uint32_t block() const { return thread_ / block_threads(); }
  std::uint32_t block_thread() const { return thread_ % block_threads(); }
  std::uint32_t block_threads() const { return lanes_->shape().block_threads; }

  template <class T>
  T load(T* word, Order order, Scope) const {
    lanes_->step();
    return static_cast<T>(lanes_->load(word, *word, order));
  }
  template <class T>
  void store(T* word, ElementOf<T*> value, Order order, Scope) const {
    lanes_->step();
    lanes_->store(word, *word, value, order);
    *word = value;
  }
  template <class T>
  T exchange(T* word, ElementOf<T*> value, Order order, Scope) const {
    return change(word, order, [=](T) { return value; });
  }
  template <class T>
  T compare_exchange(T* word, ElementOf<T*> expected, ElementOf<T*> desired, Order order, Scope) const {
    return change_if(
        word, order, [=](T old) { return old == expected; }, [=](T) { return desired; });
  }
  template <class T>
  T fetch_add(T* word, ElementOf<T*> value, Order order, Scope) const {
    return change(word, order, [=](T old) { return old + value; });
  }
  template <class T>
  T fetch_min(T* word, ElementOf<T*> value, Order order, Scope) const {
    return change_if(
        word, order, [=](T old) { return value < old; }, [=](T) { return value; });
  }
  template <class T>
  T fetch_max(T* word, ElementOf<T*> value, Order order, Scope) const {
    return change_if(
        word, order, [=](T old) { return value > old; }, [=](T) { return value; });
  }
  void fence(Order order, Scope) const {
    lanes_->step();
    lanes_->fence(order);
  }

  template <class T>
  ElementOf<T*> get(T* datum) const {
    lanes_->step();
    lanes_->get(datum);
    return *datum;
  }
  template <class T>
  void put(T* datum, ElementOf<T*> value) const {
    lanes_->step();
    lanes_->put(datum, value);
    *datum = value;
  }

  std::uint32_t ballot(bool mine) const {
    lanes_->meet_with(Meeting::ballot, mine ? 1 : 0);
    return lanes_that_gave(1);
  }
  std::uint32_t match(std::uint64_t value) const {
    lanes_->meet_with(Meeting::match, value);
    return lanes_that_gave(value);
  }
  std::uint64_t broadcast(std::uint64_t value, std::uint32_t lane) const {
    lanes_->meet_with(Meeting::broadcast, value);
    return lanes_->given(lane);
  }
  std::uint64_t sum(std::uint64_t value) const {
    lanes_->meet_with(Meeting::sum, value);
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < lanes_->group_size(); ++i) all += lanes_->given(i);
    return all;
  }
  std::uint64_t* shared() const { return lanes_->shared(block()); }

  void group_barrier() const { lanes_->meet(Meeting::group_barrier); }
  void block_barrier() const { lanes_->meet(Meeting::block_barrier); }
  void grid_barrier() const { lanes_->meet(Meeting::grid_barrier); }

  std::uint64_t clock() const { return lanes_->steps(); }

  void pause() const { lanes_->pause(); }
  void probe(std::uint32_t number) const { lanes_->probe(number); }

 private:
  template <class T, class Change>
  T change(T* word, Order order, Change changed) const {
    return change_if(
        word, order, [](T) { return true; }, changed);
  }
  // A change that changes nothing releases nothing: it is a load, as on host threads.
  template <class T, class Condition, class Change>
  T change_if(T* word, Order order, Condition condition, Change changed) const {
    lanes_->step();
    const T old = *word;
    if (!condition(old)) {
      lanes_->load_newest(word, old, order);
      return old;
    }
    const ElementOf<T*> value = changed(old);
    lanes_->change(word, old, value, order);
    *word = value;
    return old;
  }
  std::uint32_t lanes_that_gave(std::uint64_t word) const {
    std::uint32_t lanes = 0;
    for (std::uint32_t i = 0; i < lanes_->group_size(); ++i) {
      if (lanes_->given(i) == word) lanes |= std::uint32_t{1} << i;
    }
    return lanes;
  }

  Lanes* lanes_;
  std::uint32_t thread_;
};

using SimPlatform4 = SimPlatformOf<4>;
using SimPlatform32 = SimPlatformOf<32>;
static_assert(Platform<SimPlatform4> && Platform<SimPlatform32>);

}  // namespace kilokv::engine
