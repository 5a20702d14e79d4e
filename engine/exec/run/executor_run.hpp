// Runs a batch on an executor (executor.hpp), brings what it wrote into the record table, and keeps its books.
//
// Thread safety: one caller at a time. Keeps its memory, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/collect/batch_writes.hpp"
#include "engine/exec/collect/bookkeeping.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/collect/write_back.hpp"
#include "engine/exec/resolve/batch_records.hpp"
#include "engine/exec/resolve/equal_words.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/stage_clock.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class ExecutorRun {
 public:
  // A batch without ranges, and what the engine has to run it. References: all must outlive the call.
  struct Batch {
    const BatchHeader& header;
    const TransactionColumns& columns;
    const Column<std::uint8_t>& expires;
    const std::vector<std::uint32_t>& order;
    const BatchWrites& writes;  // its `before` is that of this batch
    Version tombstone_floor;
    std::uint32_t tile;  // transactions that are written back and brought into the books together
    RecordStore* store;
    BatchResolver* resolver;
    RankOrder* rank_order;
    Bookkeeping* books;
    Cell* before;
    BatchResults* results;
    WriteColumns* collected;
    StageClock* clock;
    ExecutionReport* report;
  };

  // Where BatchResolver::resolve() puts the digest of the keys. Null: nobody needs it.
  std::uint64_t* digest_for(const Executor& executor) { return executor.needs_records() ? nullptr : &digest_; }
  // Errors: those of Executor::run(), and INTERNAL if what the executor left does not fit together. The records of the
  // store are then as before the batch, and the results are unspecified. Requires: the resolver has resolved the batch,
  // with digest_for() this executor.
  [[nodiscard]] Status run(const Batch& batch, Executor* executor);

  std::size_t memory_bytes() const { return records_.memory_bytes(); }

 private:
  [[nodiscard]] Status write_back(const Batch& batch, Executor* executor);
  [[nodiscard]] Status compare(const WriteBack& back, const RecordTable& table, const Executor& executor) const;

  BatchRecords records_;
  EqualWords equal_;
  std::uint64_t digest_ = 0;  // of the cells of the batch's keys, from the host's table
};

}  // namespace kilokv::engine
