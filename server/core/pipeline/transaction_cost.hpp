// The highest cost of a transaction, as its columns show before it runs: bytes of log, for which admission reserves
// space; bytes that its session stores; and reads. Bytes and reads bound how long a batch takes, and they are what the
// turns of clients are measured by (turns.hpp).
//
// Invariant: the log record of a batch is never longer than the sum over its transactions. (The tests compare the bound
// with what storage encodes.) Keys and values count for each operation that names them, because a few bytes of request
// can write a large value many times.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/txn/columns.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/memory/data_budget.hpp"
#include "server/core/options.hpp"

namespace kilokv::server {

// Bytes of log. Two parts depend on the largest value in the database, which can grow before the transaction runs:
// copies that a PUT of an earlier GET writes, and values that a session stores in its results.
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

// What a session may store of a transaction's result without its guard value and reads.
extern const std::uint64_t kStoredTransactionBytes;

struct TransactionCost {
  LogBound log;
  std::uint64_t guards = 0;  // 1 for each guard, 384 for each range guard
  std::uint64_t reads = 0;   // 1 for each GET, the limit for each range operation
  // Work beside the reads: 2 for each PUT, ADD and DELETE, 16 for each range operation, of both lists; 1 for each GET
  // of the else-operations; and the guards three times more if the transaction may wait, because each pass evaluates
  // them again.
  std::uint64_t steps = 0;
  std::uint64_t stored_bytes = 0;  // in the session, in memory, at the largest value that is known
  std::uint64_t named_bytes = 0;   // keys, bounds of ranges and values that it names, also those of guards
  LogUse use = LogUse::reads_and_deletes;
  NewData data;  // that it may add, if none of its keys is there yet

  TransactionCost& operator+=(const TransactionCost& other) {
    log += other.log;
    guards += other.guards;
    reads += other.reads;
    steps += other.steps;
    stored_bytes += other.stored_bytes;
    named_bytes += other.named_bytes;
    data += other.data;
    if (other.use == LogUse::new_data) use = LogUse::new_data;
    return *this;
  }
  // The cost of `count` transactions, each of which has this cost.
  TransactionCost times(std::uint64_t count) const {
    return {{log.bytes * count, log.copied_values * count, log.stored_values * count},
            guards * count,
            reads * count,
            steps * count,
            stored_bytes * count,
            named_bytes * count,
            use,
            {data.records * count, data.bytes * count, data.copied_values * count, data.entry_bytes * count,
             data.longest_entry}};
  }
};

// The cost of transaction t. `largest_value`: the largest value in the database or admitted; if it grows later,
// LogBound::at the larger value is still a bound. `result_bytes_max`: the setting.
TransactionCost cost_of(const engine::TransactionColumns& columns, std::size_t t, bool in_session,
                        std::uint64_t largest_value, std::uint64_t result_bytes_max);

// Whether transactions t and t - 1 have the same shape: operations of the same kinds, on keys and values of the same
// sizes. Then they cost the same. Most transactions of a request do, and to compare them is faster than to estimate
// each. Requires: t > 0.
bool costs_as_before(const engine::TransactionColumns& columns, std::size_t t);

// What a batch may do, in guards, reads and steps. It bounds the time of a batch, and does not depend on the memory.
inline constexpr std::uint64_t kBatchWorkMax = 65536;

// The cost of a transaction as a part of a batch. A batch has kWholeBatch (core/options.hpp) of them, and each of its
// limits (--batch-max-transactions, --batch-max-bytes, --batch-max-reads, kBatchWorkMax) is kWholeBatch, too. What a
// transaction takes is the largest of its parts. So a batch whose parts add up to kWholeBatch keeps all limits. At
// least 1.
//
// Values that may be large count less than their bound, because one large value in the database must not make batches
// short for everybody: a value that a session may store counts a quarter, and values that may be returned count one
// read for each 16 KiB, up to 4 MiB in all.
class BatchParts {
 public:
  // `largest_value`: as in cost_of.
  BatchParts(std::uint64_t largest_value, const DatabaseOptions& options);

  // What a transaction of this cost takes.
  std::uint32_t of(const TransactionCost& cost) const;

 private:
  const std::uint64_t copied_bytes_, stored_bytes_, reads_per_read_;
  const double least_, parts_per_byte_, parts_per_read_,
      parts_per_step_;  // a division for each transaction would be too slow
};

// The longest log record that one transaction may need. Storage keeps it as one value of RocksDB, which is less than 4
// GiB.
inline constexpr std::uint64_t kTransactionLogBytesMax = std::uint64_t{7} << 29;  // 3.5 GiB

}  // namespace kilokv::server
