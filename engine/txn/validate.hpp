// The check at the border: columns that pass it satisfy every invariant of txn/columns.hpp, and every limit. Everything
// behind it relies on that and checks nothing again.
//
// Safe on any input: lengths are checked before a column is read, indices before they are used. Thread-safe.
#pragma once

#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// Each is a knob of the server: the flag has the name of the field.
struct TransactionLimits {
  std::uint32_t key_bytes_max = 1024;  // bounds of ranges included; --key-bytes-max
  std::uint32_t value_bytes_max = 1u << 20;
  std::uint32_t guards_max = 1024;              // of one transaction
  std::uint32_t operations_max = 1024;          // of one transaction, both lists together
  std::uint32_t range_keys_max = 10000;         // of one operation
  std::uint32_t transaction_keys_max = 100000;  // of one transaction's operations, both lists together
  DurationUs wait_timeout_us_max = DurationUs{24} * 3600 * 1000000;  // --wait-timeout-max
  std::uint32_t request_transactions_max = 65536;
};

// The longest key that the table takes, whatever the limit says.
inline constexpr std::uint32_t kKeyBytesMax = 1024;

// INVALID_ARGUMENT that names the first field found to be wrong, the limit, the value met and the knob.
// Cost on the good path: one look at each element.
Status validate(const TransactionColumns& columns, const TransactionLimits& limits);

}  // namespace kilokv::engine
