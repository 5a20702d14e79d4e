// The check of input. Columns that pass the check satisfy every invariant of txn/columns.hpp, and every limit. All
// later code relies on this and does not check again.
//
// The check is safe on any input: it checks lengths before it reads a column, and indices before it uses them. Thread
// safety: any thread.
#pragma once

#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// The limits. Each limit is a setting of the server. The flag of the setting has the name of the field.
struct TransactionLimits {
  std::uint32_t key_bytes_max = 1024;  // also for the bounds of ranges; --key-bytes-max
  std::uint32_t value_bytes_max = 1u << 20;
  std::uint32_t guards_max = 1024;              // of one transaction
  std::uint32_t operations_max = 1024;          // of one transaction, both lists together
  std::uint32_t range_keys_max = 10000;         // of one operation
  std::uint32_t transaction_keys_max = 100000;  // of one transaction's operations, both lists together
  DurationUs wait_timeout_us_max = DurationUs{24} * 3600 * 1000000;  // --wait-timeout-max
  DurationUs ttl_us_max = DurationUs{3660} * 24 * 3600 * 1000000;    // a time to live, --ttl-max
  std::uint32_t request_transactions_max = 65536;
};

// The longest key that the table can hold, whatever the setting says.
inline constexpr std::uint32_t kKeyBytesMax = 1024;

// Checks all columns. Errors: INVALID_ARGUMENT, which names the first wrong field, the limit, the actual value and the
// setting. Cost: if there is no error, each element is read once.
Status validate(const TransactionColumns& columns, const TransactionLimits& limits);

}  // namespace kilokv::engine
