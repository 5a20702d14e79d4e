// Finds data races in one run of the simulator's lanes, by vector clocks: clock[lane][k] is the part of lane k's past
// that lane `lane` has seen. Two accesses to a datum race if neither has seen the other, at least one writes, and at
// least one is plain (get, put). So a missing barrier is found in every schedule that has both accesses, even if it
// does no harm there.
//
// Barriers order their lanes. A release orders through the word that it writes, for each lane that acquires that value;
// fences work as in C++20. Order::sequential counts as acquire_release. Not checked: scopes, accesses through a pointer
// itself, and two data that overlap at different addresses.
//
// Thread safety: one thread for each object. Source: FastTrack (Flanagan and Freund, 2009), with whole clocks instead
// of epochs; releases and fences as in tsan11 (Lidbury and Donaldson, 2017).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/platform/concept.hpp"
#include "engine/sim/address_numbers.hpp"
#include "engine/sim/lane_mask.hpp"

namespace kilokv::engine {

class RaceDetector {
 public:
  using Clock = std::uint32_t;

  explicit RaceDetector(std::uint32_t lanes);

  void start();  // begins a run: nothing has happened
  // These lanes have met at a barrier.
  void join(LaneMask lanes);

  // The actions of a lane. A change reads and writes in one step.
  void get(std::uint32_t lane, const void* datum) { access(lane, datum, Access::get); }
  void put(std::uint32_t lane, const void* datum) { access(lane, datum, Access::put); }
  void load(std::uint32_t lane, const void* word, Order order);
  void store(std::uint32_t lane, const void* word, Order order);
  void change(std::uint32_t lane, const void* word, Order order);
  void fence(std::uint32_t lane, Order order);

  // copy_released: what the newest value of a word releases. load_older: a load of an older value, which released
  // `clocks`.
  void copy_released(const void* word, std::vector<Clock>* clocks);
  void load_older(std::uint32_t lane, const void* word, Order order, const std::vector<Clock>& clocks);

  bool found() const { return found_; }
  std::string text() const;  // Requires: found().

 private:
  enum class Access : std::uint8_t { get, put, load, store };  // store: every write of a contended word
  static constexpr std::uint32_t kAccesses = 4;
  struct Race {
    std::uint32_t datum, lane, other_lane, phase;
    Access access, other_access;
  };

  // Each returns a row of lanes_ clocks.
  Clock* seen_by(std::uint32_t lane) { return &seen_[std::size_t{lane} * lanes_]; }
  Clock* fence_released(std::uint32_t lane) { return &fence_released_[std::size_t{lane} * lanes_]; }
  Clock* fence_acquired(std::uint32_t lane) { return &fence_acquired_[std::size_t{lane} * lanes_]; }
  // The rows of a datum: when each lane last did each access, and in the last row what its value releases.
  Clock* done(std::uint32_t datum, Access access) {
    return &data_[(std::size_t{datum} * (kAccesses + 1) + static_cast<std::size_t>(access)) * lanes_];
  }
  Clock* released(std::uint32_t datum) { return &data_[(std::size_t{datum} * (kAccesses + 1) + kAccesses) * lanes_]; }

  std::uint32_t datum_of(const void* address);
  std::uint32_t add_datum(const void* address);
  std::uint32_t access(std::uint32_t lane, const void* address, Access access);
  void check(std::uint32_t lane, std::uint32_t datum, Access access, Access other);
  void join_into(Clock* to, const Clock* from) const;
  void acquire(std::uint32_t lane, const Clock* released, Order order);
  static const char* to_string(Access access);

  const std::uint32_t lanes_;
  std::vector<Clock> seen_, fence_released_, fence_acquired_, joined_;
  AddressNumbers numbers_;  // of the data of this run
  std::vector<Clock> data_;
  std::uint32_t phase_ = 0;  // barriers of all lanes so far
  bool found_ = false;
  Race race_{};
};

}  // namespace kilokv::engine
