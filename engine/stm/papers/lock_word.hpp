// The lock word of `prstm`: version | owner | pre-locked | locked, from the top down, in 64 bits.
//
//   free        version, 0, 0, 0         anybody may read under it, or pre-lock it
//   pre-locked  version, owner, 1, 0     may be read, and stolen by an owner of higher priority (a lower number)
//   locked      version, owner, 0, 1     until the owner frees it: nobody reads, nobody steals, nobody changes the word
//
// The version changes whenever a record of the lock was written, and at no other time.
//
// Beside it, in the same cache line, stands its claim: the position of the transaction that is to have the lock next.
// Source: PR-STM, section 3.1. Deviation: 38 bits of version in place of 11, so that none comes round while somebody
// reads under it, and 24 bits of owner in place of 19, so that all transactions of a batch have their own
// (docs/papers.md, gap 3).
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
  KILOKV_HOST_DEVICE static constexpr std::uint64_t version(std::uint64_t word) { return word >> kVersionShift; }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t owner(std::uint64_t word) {
    return word >> kOwnerShift & kOwnerMax;
  }
  KILOKV_HOST_DEVICE static constexpr bool is_prelocked(std::uint64_t word) { return (word & kPrelocked) != 0; }
  KILOKV_HOST_DEVICE static constexpr bool is_locked(std::uint64_t word) { return (word & kLocked) != 0; }

 private:
  static constexpr std::uint64_t kLocked = 1, kPrelocked = 2;
  static constexpr unsigned kOwnerShift = 2, kVersionShift = 2 + OwnerBits;
  static constexpr std::uint64_t kVersionMask = (std::uint64_t{1} << VersionBits) - 1;
};

using LockWord = LockWordOf<38, 24>;

// The higher the priority, the greater the claim: the maximum of two is that which counts.
struct LockClaim {
  static constexpr std::uint64_t kNone = 0;

  KILOKV_HOST_DEVICE static constexpr std::uint64_t of(std::uint64_t position) { return ~position; }
  // Whether it is of higher priority than this position.
  KILOKV_HOST_DEVICE static constexpr bool is_before(std::uint64_t claim, std::uint64_t position) {
    return claim > of(position);
  }
};

}  // namespace kilokv::engine
