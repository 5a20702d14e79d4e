// Numbers addresses in the order of their first use in a run of the simulator: 0, 1, ... To start a new run costs
// nothing.
//
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kilokv::engine {

class AddressNumbers {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  AddressNumbers() : slots_(1024) {}

  void start() {  // begins a run: no address has a number
    count_ = 0;
    if (++run_ != 0) return;
    std::fill(slots_.begin(), slots_.end(), Slot{});
    run_ = 1;
  }
  std::uint32_t count() const { return count_; }
  std::uint32_t find(const void* address) const {  // kNone: not used yet
    const Slot& slot = slots_[slot_of(address)];
    return slot.run == run_ ? slot.number : kNone;
  }
  // Requires: the address has no number.
  std::uint32_t add(const void* address) {
    if (std::size_t{count_} * 2 >= slots_.size()) grow();
    slots_[slot_of(address)] = Slot{address, run_, count_};
    return count_++;
  }

 private:
  struct Slot {
    const void* address = nullptr;
    std::uint32_t run = 0;  // another run's number: the slot is empty
    std::uint32_t number = 0;
  };

  std::size_t slot_of(const void* address) const {
    const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (slots_[at].run == run_ && slots_[at].address != address) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.run == run_) slots_[slot_of(slot.address)] = slot;
    }
  }

  std::vector<Slot> slots_;  // their number is a power of two
  std::uint32_t run_ = 1;
  std::uint32_t count_ = 0;
};

}  // namespace kilokv::engine
