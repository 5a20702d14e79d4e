// Keyed hash of keys: SipHash-1-3 with a 128-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012; 1-3 rounds as in common hash tables). The hash is keyed with a secret of the database, so that clients cannot
// construct collisions.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::engine {

// 128 random bits. They are drawn once for each database, and stored with it.
struct KeyHashSecret {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

// The id of a key of any length. It is never all zeros, because that id marks an empty slot. A key of 16 bytes takes
// about 10 ns.
KeyId hash_key(std::string_view key, const KeyHashSecret& secret);

}  // namespace kilokv::engine
