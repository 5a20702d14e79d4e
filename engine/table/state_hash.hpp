// The additive digest of a set of records: the sum, in each 64-bit half, of a mix of every record. Order and history do
// not matter, and a change costs one subtraction and one addition, so that it can run along with every batch.
//
// For finding corruption and divergence, not against an adversary who chooses values; key ids are keyed with the
// database's secret. The mix multiplies to 128 bits and folds (as wyhash does); each half has its own constants.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"

namespace kilokv::engine {

inline Hash128 operator+(Hash128 a, Hash128 b) { return {a.low + b.low, a.high + b.high}; }
inline Hash128 operator-(Hash128 a, Hash128 b) { return {a.low - b.low, a.high - b.high}; }

inline std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// A record's share. `content`: an integer in both halves, the content hash of a byte value, 0 for a tombstone.
// A key that was never written (tag 0) has no share.
inline Hash128 record_digest(KeyId id, Tag tag, Hash128 content) {
  if (tag == 0) return {};
  const std::uint64_t low = multiply_fold(id.low ^ 0xa0761d6478bd642fu, content.low ^ 0xe7037ed1a0b428dbu);
  const std::uint64_t high = multiply_fold(id.high ^ 0x8ebc6af09c88c6e3u, content.high ^ 0x589965cc75374cc3u);
  return {multiply_fold(low ^ id.high, tag ^ 0x1d8e4e27c47d124fu),
          multiply_fold(high ^ id.low, tag ^ 0xeb44accab455d165u)};
}

}  // namespace kilokv::engine
