// What each kind of guard and operation needs. Code that treats several kinds alike asks here. It never compares the
// numbers of kinds with < or >, because their order has no meaning.
//
// Each function is a switch without `default`. So a new kind does not compile until it has its place in every function.
//
// Numbers that are no kind: they exist until engine::validate has run, because the columns of a client are raw bytes.
// For them every function returns false or `nothing`. Only known_uses_range() is undefined for them.
//
// Thread safety: pure functions. They also run on a device.
#pragma once

#include <vector>

#include "engine/base/host_device.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

KILOKV_HOST_DEVICE constexpr bool is_known(GuardKind kind) {
  switch (kind) {
    case GuardKind::exists:
    case GuardKind::absent:
    case GuardKind::equal:
    case GuardKind::not_equal:
    case GuardKind::less:
    case GuardKind::less_equal:
    case GuardKind::greater:
    case GuardKind::greater_equal:
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::bytes_equal:
    case GuardKind::range_unchanged:
    case GuardKind::time_before:
    case GuardKind::time_after: return true;
  }
  return false;
}

KILOKV_HOST_DEVICE constexpr bool is_known(OpKind kind) {
  switch (kind) {
    case OpKind::get:
    case OpKind::put:
    case OpKind::del:
    case OpKind::add:
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return true;
  }
  return false;
}

// Whether all numbers from `first` to `last`, and no others, are kinds.
template <class Kind>
constexpr bool are_all_known(int first, int last) {
  for (int number = 0; number < 256; ++number) {
    if (is_known(static_cast<Kind>(number)) != (number >= first && number <= last)) return false;
  }
  return true;
}
static_assert(are_all_known<GuardKind>(kGuardKindMin, kGuardKindMax), "set kGuardKindMax to the largest guard kind");
static_assert(are_all_known<OpKind>(kOpKindMin, kOpKindMax), "set kOpKindMax to the largest operation kind");

// Whether guard_key is an index into the range columns. Otherwise it is an index into the key columns, or kNone
// (may_lack_key()).
KILOKV_HOST_DEVICE constexpr bool uses_range(GuardKind kind) {
  switch (kind) {
    case GuardKind::exists:
    case GuardKind::absent:
    case GuardKind::equal:
    case GuardKind::not_equal:
    case GuardKind::less:
    case GuardKind::less_equal:
    case GuardKind::greater:
    case GuardKind::greater_equal:
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::bytes_equal:
    case GuardKind::time_before:
    case GuardKind::time_after: return false;
    case GuardKind::range_unchanged: return true;
  }
  return false;
}

// What guard_operand holds.
enum class GuardOperand : std::uint8_t {
  nothing,
  integer_or_key,  // a constant, unless guard_other names another key
  version,
  bytes,        // an index into the value columns
  time_or_key,  // a time, unless guard_key names a key
};

KILOKV_HOST_DEVICE constexpr GuardOperand operand_of(GuardKind kind) {
  switch (kind) {
    case GuardKind::exists:
    case GuardKind::absent: return GuardOperand::nothing;
    case GuardKind::equal:
    case GuardKind::not_equal:
    case GuardKind::less:
    case GuardKind::less_equal:
    case GuardKind::greater:
    case GuardKind::greater_equal: return GuardOperand::integer_or_key;
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::range_unchanged: return GuardOperand::version;
    case GuardKind::bytes_equal: return GuardOperand::bytes;
    case GuardKind::time_before:
    case GuardKind::time_after: return GuardOperand::time_or_key;
  }
  return GuardOperand::nothing;
}

// Whether the guard compares with an integer or with another key.
KILOKV_HOST_DEVICE constexpr bool compares_integers(GuardKind kind) {
  return operand_of(kind) == GuardOperand::integer_or_key;
}
KILOKV_HOST_DEVICE constexpr bool takes_bytes(GuardKind kind) { return operand_of(kind) == GuardOperand::bytes; }
// Whether the guard compares the time of the batch with a time. Then it may have no key: its guard_key is kNone.
KILOKV_HOST_DEVICE constexpr bool compares_time(GuardKind kind) {
  return operand_of(kind) == GuardOperand::time_or_key;
}

// Whether the guard may wait. A guard that time can only make false must not.
KILOKV_HOST_DEVICE constexpr bool may_wait(GuardKind kind) {
  switch (kind) {
    case GuardKind::exists:
    case GuardKind::absent:
    case GuardKind::equal:
    case GuardKind::not_equal:
    case GuardKind::less:
    case GuardKind::less_equal:
    case GuardKind::greater:
    case GuardKind::greater_equal:
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::bytes_equal:
    case GuardKind::range_unchanged:
    case GuardKind::time_after: return true;
    case GuardKind::time_before: return false;
  }
  return false;
}

// uses_range() for a known kind, such as every kind in validated columns. It costs one comparison, for the hottest
// loops. Undefined for other numbers.
KILOKV_HOST_DEVICE constexpr bool known_uses_range(OpKind kind) {
  switch (kind) {
    case OpKind::get:
    case OpKind::put:
    case OpKind::del:
    case OpKind::add: return false;
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return true;
  }
  __builtin_unreachable();
}

// Whether op_key is an index into the range columns. Otherwise it is an index into the key columns.
KILOKV_HOST_DEVICE constexpr bool uses_range(OpKind kind) { return is_known(kind) && known_uses_range(kind); }

// Whether the operation has an operand.
KILOKV_HOST_DEVICE constexpr bool takes_operand(OpKind kind) {
  switch (kind) {
    case OpKind::put:
    case OpKind::add: return true;
    case OpKind::get:
    case OpKind::del:
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return false;
  }
  return false;
}

// Whether the operand may be bytes.
KILOKV_HOST_DEVICE constexpr bool takes_bytes(OpKind kind) {
  switch (kind) {
    case OpKind::put: return true;
    case OpKind::get:
    case OpKind::del:
    case OpKind::add:
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return false;
  }
  return false;
}

// Whether the operation may write a key that has no record yet. The key then gets its record before the batch runs.
KILOKV_HOST_DEVICE constexpr bool creates_record(OpKind kind) {
  switch (kind) {
    case OpKind::put:
    case OpKind::add: return true;
    case OpKind::get:
    case OpKind::del:
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return false;
  }
  return false;
}

// Whether the result of the transaction has what the operation has read: one value, or the pairs of a range.
KILOKV_HOST_DEVICE constexpr bool returns_values(OpKind kind) {
  switch (kind) {
    case OpKind::get:
    case OpKind::range_get:
    case OpKind::range_get_reverse: return true;
    case OpKind::put:
    case OpKind::del:
    case OpKind::add:
    case OpKind::delete_range: return false;
  }
  return false;
}

// Whether a later operand may name the operation, to take the value that it has read.
KILOKV_HOST_DEVICE constexpr bool may_be_operand(OpKind kind) {
  switch (kind) {
    case OpKind::get: return true;
    case OpKind::put:
    case OpKind::del:
    case OpKind::add:
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return false;
  }
  return false;
}

// Whether the operation goes through its range from the last key to the first. Requires: it reads a range.
KILOKV_HOST_DEVICE constexpr bool is_reverse(OpKind kind) { return kind == OpKind::range_get_reverse; }

// The kinds for generators of transactions, in the order of their numbers.
template <class Kind>
std::vector<Kind> kinds_between(std::uint8_t first, std::uint8_t last, bool with_ranges) {
  std::vector<Kind> kinds;
  for (std::uint8_t number = first; number <= last; ++number) {
    const auto kind = static_cast<Kind>(number);
    if (with_ranges || !uses_range(kind)) kinds.push_back(kind);
  }
  return kinds;
}
inline std::vector<GuardKind> guard_kinds(bool with_ranges) {
  return kinds_between<GuardKind>(kGuardKindMin, kGuardKindMax, with_ranges);
}
inline std::vector<OpKind> op_kinds(bool with_ranges) {
  return kinds_between<OpKind>(kOpKindMin, kOpKindMax, with_ranges);
}

}  // namespace kilokv::engine
