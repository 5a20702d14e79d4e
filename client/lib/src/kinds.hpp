// The kinds of guards and operations: their names in histories and in JSON, and what they need. Encoders and histories
// ask here. They never compare the numbers of kinds with < or >, because their order has no meaning.
//
// The tables are indexed by the numbers of the protocol. Their sizes are tied to those of its enums, so a new kind does
// not compile until it has a row. Thread safety: constants.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "kilokv/v1/transaction.pb.h"

namespace kilokv::client {

enum class GuardOperand : std::uint8_t { nothing, integer_or_key, version, bytes, time_or_key };

struct GuardTraits {
  std::string_view name;
  GuardOperand operand;
  bool uses_range;  // instead of a key
};

inline constexpr GuardTraits kGuardTraits[] = {
    {"", GuardOperand::nothing, false},
    {"exists", GuardOperand::nothing, false},
    {"absent", GuardOperand::nothing, false},
    {"eq", GuardOperand::integer_or_key, false},
    {"ne", GuardOperand::integer_or_key, false},
    {"lt", GuardOperand::integer_or_key, false},
    {"le", GuardOperand::integer_or_key, false},
    {"gt", GuardOperand::integer_or_key, false},
    {"ge", GuardOperand::integer_or_key, false},
    {"version", GuardOperand::version, false},
    {"unchanged", GuardOperand::version, false},
    {"bytes_eq", GuardOperand::bytes, false},
    {"range_unchanged", GuardOperand::version, true},
    {"time_before", GuardOperand::time_or_key, false},
    {"time_after", GuardOperand::time_or_key, false},
};
static_assert(std::size(kGuardTraits) == v1::GuardKind_ARRAYSIZE);

struct OperationTraits {
  std::string_view name;
  std::string_view operand;  // the name of the operand; empty: the operation has none
  bool uses_range;           // instead of a key
  bool reverse = false;      // from the last key to the first
};

inline constexpr OperationTraits kOperationTraits[] = {
    {"", "", false},         {"get", "", false},      {"put", "value", false},    {"delete", "", false},
    {"add", "delta", false}, {"range_get", "", true}, {"delete_range", "", true}, {"range_get", "", true, true},
};
static_assert(std::size(kOperationTraits) == v1::OperationKind_ARRAYSIZE);

// Requires: the byte of the column is a kind. A Batch writes no others.
inline const GuardTraits& guard_traits(char kind) { return kGuardTraits[static_cast<std::uint8_t>(kind)]; }
inline const OperationTraits& operation_traits(char kind) { return kOperationTraits[static_cast<std::uint8_t>(kind)]; }

}  // namespace kilokv::client
