// The lock word of `prstm`: version | owner | pre-locked | locked, from the top down, in 64 bits.
//
//   free        version, 0, 0, 0         anybody may read under it, or pre-lock it
//   pre-locked  version, owner, 1, 0     may be read, and stolen by an owner of higher priority (a lower number)
//   locked      version, owner, 0, 1     until the owner frees it: nobody reads, nobody steals
//   claimed     version, other, 1, 1     locked, and the other one is next: freed, it is pre-locked by that one
//
// The version changes whenever a record of the lock was written, and at no other time.
// Source: PR-STM, section 3.1. Deviation: 38 bits of version in place of 11, so that none comes round while somebody
// reads under it, and 24 bits of owner in place of 19, so that all transactions of a batch have their own (gap 3 of
// DESIGN section 5).
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"

namespace kilokv::engine {

template <unsigned VersionBits, unsigned OwnerBits>
struct LockWordOf {
  static_assert(VersionBits + OwnerBits + 2 <= 64);

  static constexpr std::uint64_t kOwnerMax = (std::uint64_t{1} << OwnerBits) - 1;

  KILOKV_HOST_DEVICE static constexpr std::uint64_t free(std::uint64_t version) {
    return (version & kVersionMask) << kVersionShift;
  }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t prelocked(std::uint64_t version, std::uint64_t owner) {
    return free(version) | (owner & kOwnerMax) << kOwnerShift | kPrelocked;
  }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t locked(std::uint64_t version, std::uint64_t owner) {
    return free(version) | (owner & kOwnerMax) << kOwnerShift | kLocked;
  }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t claimed(std::uint64_t version, std::uint64_t next) {
    return prelocked(version, next) | kLocked;
  }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t version(std::uint64_t word) { return word >> kVersionShift; }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t owner(std::uint64_t word) {
    return word >> kOwnerShift & kOwnerMax;
  }
  KILOKV_HOST_DEVICE static constexpr bool is_prelocked(std::uint64_t word) {
    return (word & (kLocked | kPrelocked)) == kPrelocked;
  }
  KILOKV_HOST_DEVICE static constexpr bool is_locked(std::uint64_t word) { return (word & kLocked) != 0; }
  KILOKV_HOST_DEVICE static constexpr bool is_claimed(std::uint64_t word) {
    return (word & (kLocked | kPrelocked)) == (kLocked | kPrelocked);
  }

 private:
  static constexpr std::uint64_t kLocked = 1, kPrelocked = 2;
  static constexpr unsigned kOwnerShift = 2, kVersionShift = 2 + OwnerBits;
  static constexpr std::uint64_t kVersionMask = (std::uint64_t{1} << VersionBits) - 1;
};

using LockWord = LockWordOf<38, 24>;

}  // namespace kilokv::engine
