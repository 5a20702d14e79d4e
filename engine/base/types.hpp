// Plain types that every layer shares: key ids, value types, versions, batch numbers. The only operations are to pack,
// unpack and compare them. The types need only the standard library, and device code can use them.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace kilokv {

// The 128-bit id of a key: the keyed hash of its bytes (base/key_hash.hpp). The engine assumes that two keys of a
// database have different ids. The hash is keyed with a secret of the database, so that nobody outside can construct a
// collision.
struct KeyId {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const KeyId&, const KeyId&) = default;
};

// Commit version: the position of a write in the one serial order of the database, from 1 to kVersionMax. 0: the key
// was never written, or its tombstone was dropped.
using Version = std::uint64_t;
inline constexpr Version kVersionMax = (Version{1} << 60) - 1;

// Number of a batch. The first batch has the number 1. 0 means: before the first batch.
using BatchNumber = std::uint64_t;

// Microseconds since the Unix epoch. The stamp of a batch is such a time. It never decreases from batch to batch.
using TimeUs = std::int64_t;
inline constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

// Microseconds.
using DurationUs = std::int64_t;

enum class ValueType : std::uint8_t {
  absent = 0,   // never written (version 0), or deleted (version of the delete)
  integer = 1,  // the word is a signed 64-bit integer
  bytes = 2,    // the word is a handle to bytes that the host keeps (table/blob_store.hpp)
};

// Version and type of a record in one word: version << 4 | type. All zero bits: a key that was never written.
using Tag = std::uint64_t;
constexpr Tag make_tag(Version version, ValueType type) { return version << 4 | static_cast<Tag>(type); }
constexpr Version version_of(Tag tag) { return tag >> 4; }
constexpr ValueType type_of(Tag tag) { return static_cast<ValueType>(tag & 0xF); }

// Value, version and type of a record, as the table holds them.
struct Cell {
  std::uint64_t word = 0;
  Tag tag = 0;
  friend constexpr bool operator==(const Cell&, const Cell&) = default;
};

// A 128-bit digest of a set. The digest is a sum over the elements, so their order does not matter
// (table/state_hash.hpp).
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const Hash128&, const Hash128&) = default;
};

}  // namespace kilokv
