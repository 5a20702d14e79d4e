// The vocabulary of a transaction: guards, operations, operands, outcomes. What the kinds have in common is in
// txn/kinds.hpp. Invariant: the numbers never change, because the wire (proto/kilokv/v1), the digests of requests and
// the stored results use them. Their order has no meaning. Thread safety: plain data.
#pragma once

#include <cstdint>

namespace kilokv::engine {

enum class GuardKind : std::uint8_t {
  exists = 1,
  absent = 2,
  equal = 3,  // integer compare: key's value (absent: 0) against a constant or another key's value
  not_equal = 4,
  less = 5,
  less_equal = 6,
  greater = 7,
  greater_equal = 8,
  version_equal = 9,     // version of the key == constant (0: never written)
  unchanged = 10,        // version of the key <= constant
  bytes_equal = 11,      // false on an absent key, TYPE_MISMATCH on an integer
  range_unchanged = 12,  // no key in [from, to) has a version > constant, deletes included
  time_before = 13,      // the batch's stamp < a constant, or < the integer value of a key (absent: 0)
  time_after = 14,       // the batch's stamp >= the same
};
inline constexpr std::uint8_t kGuardKindMin = 1, kGuardKindMax = 14;

enum class OnFalse : std::uint8_t {
  fail = 0,  // the else-operations run; the outcome is GUARD_FAILED
  wait = 1,  // a semantic conflict: the transaction is postponed and tried again
};

enum class OpKind : std::uint8_t {
  get = 1,
  put = 2,  // deletes the key if its operand is a GET of an absent key
  del = 3,  // writes nothing if the key is absent
  add = 4,
  range_get = 5,          // the first `limit` pairs of [from, to), in key order
  delete_range = 6,       // deletes the first `limit` keys of [from, to), in key order
  range_get_reverse = 7,  // the last `limit` pairs of [from, to), from the last key to the first
};
inline constexpr std::uint8_t kOpKindMin = 1, kOpKindMax = 7;

// Where the value of a PUT or the delta of an ADD comes from.
enum class Operand : std::uint8_t {
  integer = 0,         // the constant in the value column
  bytes = 1,           // value column: index into the bytes column (PUT only)
  get = 2,             // value column: index, within the same list, of an earlier GET
  get_negated = 3,     // the same GET, negated (an integer or absent; the minimum has no negative and is OVERFLOW)
  commit_version = 4,  // the transaction's own commit version
  batch_time = 5,      // the batch's stamp, microseconds since the Unix epoch
};
inline constexpr std::uint8_t kOperandMax = 5;

// How a PUT or an ADD says when its key expires.
enum class Expiry : std::uint8_t {
  at = 0,     // when the stamp reaches this time
  after = 1,  // this many microseconds after the stamp of the batch: a time to live
};

enum class Outcome : std::uint8_t {
  undecided = 0,  // never reaches a client
  committed = 1,
  guard_failed = 2,
  wait_expired = 3,
  overflow = 4,
  type_mismatch = 5,
  postponed = 6,  // still waiting at the end of the batch; the server parks it; never reaches a client
};

// Which list holds the guard or operation that `failed_index` names.
enum class FailedIn : std::uint8_t { none = 0, guards = 1, then_ops = 2, else_ops = 3 };

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;
inline constexpr std::uint32_t kWaitPassesMax = 16;

}  // namespace kilokv::engine
