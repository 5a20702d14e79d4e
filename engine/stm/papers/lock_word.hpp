// The lock word of `prstm`, and its claim.
//
// The word has 64 bits. From the highest bit down they are: version (38), owner (24), pre-locked (1), locked (1). The
// owner is the position of the transaction that has the lock.
//
//   free        version, 0, 0, 0      Any transaction may read the lock's records, and any may take the lock.
//   pre-locked  version, owner, 1, 0  Any transaction may read the lock's records. A transaction of higher priority (a
//                                     lower position) may steal the lock.
//   locked      version, owner, 0, 1  No other transaction reads the lock's records, steals the lock or changes the
//                                     word, until the owner frees the lock.
//
// The version changes whenever a record of the lock was written, and at no other time.
//
// The claim is the word after the lock word, in the same cache line. It has the position of the transaction that gets
// the lock next.
//
// Source: PR-STM, section 3.1. Deviations (docs/papers.md, gap 3):
//   - The version has 38 bits instead of 11. With few bits, the version could wrap around to the same number while a
//     transaction reads the lock's records. The transaction would then miss the writes in between.
//   - The owner has 24 bits instead of 19, so that each transaction of a batch has a number of its own.
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

// A claim of higher priority is the greater number. So if two transactions claim a lock, the maximum of both is stored.
struct LockClaim {
  static constexpr std::uint64_t kNone = 0;

  KILOKV_HOST_DEVICE static constexpr std::uint64_t of(std::uint64_t position) { return ~position; }
  // Whether the claim has a higher priority than this position.
  KILOKV_HOST_DEVICE static constexpr bool is_before(std::uint64_t claim, std::uint64_t position) {
    return claim > of(position);
  }
};

}  // namespace kilokv::engine
