// The additive digest of a set of records: the sum modulo 2^128 of every record's share. Order and history do not
// matter, and a change costs one subtraction and one addition, so that it can run along with every batch.
//
// A record's share is the NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, CRYPTO 1999) on 64-bit words:
// (key0 + message0) x (key1 + message1), full 128-bit product. Deviation: the keys are the two halves of the record's
// key id, which is itself a keyed hash, so that every record has its own. Two different states have equal sums with a
// probability of about 2^-64 for who does not know the secret.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"

namespace kilokv::engine {

__extension__ using Wide = unsigned __int128;

constexpr Wide to_wide(Hash128 h) { return static_cast<Wide>(h.high) << 64 | h.low; }
constexpr Hash128 from_wide(Wide w) { return {static_cast<std::uint64_t>(w), static_cast<std::uint64_t>(w >> 64)}; }

// A record's share. `content`: an integer in the low half, the content hash of a byte value, 0 for a tombstone.
// A key that was never written (tag 0) has no share.
inline Wide record_digest(KeyId id, Tag tag, Hash128 content) {
  return tag == 0 ? Wide{0} : static_cast<Wide>(id.low + content.low) * (id.high + (tag ^ content.high));
}

}  // namespace kilokv::engine
