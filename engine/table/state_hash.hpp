// The additive digest of a set of records: the sum modulo 2^128 of every record's share. It does not depend on order or
// history. A change costs one subtraction and one addition, so that every batch can keep the digest up to date.
//
// A record's share is the NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, CRYPTO 1999) on 64-bit words: (key0 +
// message0) x (key1 + message1), full 128-bit product. Deviation: the two keys are the halves of the record's key id.
// The key id is itself a keyed hash, so every record has its own keys. To someone who does not know the secret, two
// different states have equal sums with a probability of about 2^-64.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"

namespace kilokv::engine {

__extension__ using Wide = unsigned __int128;

constexpr Wide to_wide(Hash128 h) { return static_cast<Wide>(h.high) << 64 | h.low; }
constexpr Hash128 from_wide(Wide w) { return {static_cast<std::uint64_t>(w), static_cast<std::uint64_t>(w >> 64)}; }

// A record's share. `content`: an integer in the low half, or the content hash of a byte value, or 0 for a tombstone. A
// key that was never written (tag 0) has the share 0.
inline Wide record_digest(KeyId id, Tag tag, Hash128 content) {
  return tag == 0 ? Wide{0} : static_cast<Wide>(id.low + content.low) * (id.high + (tag ^ content.high));
}

// The share of a key's expiry, for a key that has one. It is an NH, too. The halves of the id have changed their roles.
inline Wide expiry_digest(KeyId id, TimeUs expires_us) {
  return static_cast<Wide>(id.high + static_cast<std::uint64_t>(expires_us)) * (id.low + 1);
}

}  // namespace kilokv::engine
