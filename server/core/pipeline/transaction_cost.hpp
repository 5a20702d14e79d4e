// What a transaction may cost at most, as far as its columns tell before it runs: bytes of log, for which admission
// reserves space, bytes that its session keeps, and reads, which bound how long a batch takes.
//
// The bound is true: the log record of a batch is never longer than the sum over its transactions (the tests compare
// it with what storage encodes). Keys and values count for each operation that names them, however often: a few bytes
// of request can write a large value many times.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/txn/columns.hpp"

namespace kilokv::server {

// Bytes of log. Two parts depend on the largest value that the database holds, which can grow before the transaction
// runs: the copies that a PUT of an earlier GET writes, and the values that a session stores in its results.
struct LogBound {
  std::uint64_t bytes = 0;
  std::uint64_t copied_values = 0;
  std::uint64_t stored_values = 0;

  std::uint64_t at(std::uint64_t largest_value, std::uint64_t result_bytes_max) const {
    return bytes + copied_values * largest_value + stored_values * std::min(largest_value, result_bytes_max);
  }
  LogBound& operator+=(const LogBound& other) {
    bytes += other.bytes;
    copied_values += other.copied_values;
    stored_values += other.stored_values;
    return *this;
  }
  LogBound& operator-=(const LogBound& other) {
    bytes -= other.bytes;
    copied_values -= other.copied_values;
    stored_values -= other.stored_values;
    return *this;
  }
};

// What a session may keep of a transaction's result beside its guard value and reads.
extern const std::uint64_t kStoredTransactionBytes;

struct TransactionCost {
  LogBound log;
  std::uint64_t guards = 0;        // 1 each, of ranges 384
  std::uint64_t reads = 0;         // GETs 1 each, range operations their limits
  std::uint64_t stored_bytes = 0;  // in the session, in memory; larger values than are known do not count

  // What large values add is counted in: a guard counts once, a read once more for each 4 KiB that it may return.
  std::uint64_t reads_at(std::uint64_t largest_value) const { return guards + reads + reads * (largest_value / 4096); }
  TransactionCost& operator+=(const TransactionCost& other) {
    log += other.log;
    guards += other.guards;
    reads += other.reads;
    stored_bytes += other.stored_bytes;
    return *this;
  }
};

// Of transaction t. `largest_value`: of all that the database holds or that was admitted; when it grows, the bound
// stays true at the larger one. `result_bytes_max`: the setting.
TransactionCost cost_of(const engine::TransactionColumns& columns, std::size_t t, bool in_session,
                        std::uint64_t largest_value, std::uint64_t result_bytes_max);

// The longest log record that one transaction may need: what storage keeps is one value of RocksDB, less than 4 GiB.
inline constexpr std::uint64_t kTransactionLogBytesMax = std::uint64_t{7} << 29;  // 3.5 GiB

}  // namespace kilokv::server
