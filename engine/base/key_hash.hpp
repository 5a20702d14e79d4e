// Keyed hash of keys: SipHash-1-3 with a 128-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012; 1-3 rounds as in common hash tables). Keyed with a per-database secret: clients cannot construct collisions.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::engine {

// 128 bits, drawn once per database and kept with it.
struct KeyHashSecret {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

// Never the id of all zeros, which marks an empty slot. Any number of bytes; about 10 ns for 16.
KeyId hash_key(std::string_view key, const KeyHashSecret& secret);

}  // namespace kilokv::engine
