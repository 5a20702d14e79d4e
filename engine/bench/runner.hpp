// Runs one workload on one engine: it loads the records, runs batches (timed or verified), and then checks the
// workload's invariant. The measured time holds only Engine::execute and release_through. Generating, counting and
// verifying are outside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/options.hpp"
#include "engine/engine.hpp"
#include "engine/platform/stopwatch.hpp"
#include "engine/referee/model.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

// What the batches of one workload gave, counted by outcome.
struct Counts {
  std::uint64_t batches = 0, transactions = 0, passes = 0, writes = 0, range_pairs = 0;
  std::uint64_t committed = 0, guard_failed = 0, wait_expired = 0, overflow = 0, type_mismatch = 0, postponed = 0;
  void add(const BatchResults& results, const WriteColumns& batch_writes);
  std::uint64_t decided() const { return transactions - wait_expired - postponed; }
};

// Whether a counter of this name is a time. Reports show only the shares of times.
bool is_time(std::string_view counter);

// How they were executed.
struct ExecutionTotals {
  std::uint64_t serial_batches = 0, pipelined_batches = 0, partitioned_batches = 0, ordered_batches = 0,
                ticketed_batches = 0;
  std::uint64_t device_batches = 0;                  // those of the ordered and ticketed ones that ran on a device
  Counters counters;                                 // counters of single strategies
  std::uint64_t sent_bytes = 0, returned_bytes = 0;  // to and from a device
  double sent_seconds = 0, kernel_seconds = 0, returned_seconds = 0;
  StageTimes stages;                      // with --batch-times, over all strategies
  std::uint64_t postponed = 0;            // over all strategies except serial
  std::vector<std::uint64_t> decided_by;  // for each thread, or for each group of a device
  void add(const ExecutionReport& batch);
  std::uint64_t counter(std::string_view name) const { return counters.of(name); }
  // Where the time of a strategy's threads went, if it was measured: names, and shares from 0 to 1.
  std::vector<std::pair<std::string, double>> times() const;
  // The share of all attempts on the stage after which a lane had to run alone in its group.
  double serialized_share() const;
};

struct WorkloadReport {
  WorkloadOptions workload;
  Counts counts;
  ExecutionTotals execution;
  EngineDevice device;
  double seconds = 0;            // of execution
  double processor_seconds = 0;  // processor time of the executing thread during `seconds`
  bool verified = false;
  std::string invariant;  // what was checked at the end
  EngineStats stats;
  double nanoseconds_per_transaction() const;
  double transactions_per_second() const;
  double aborts_per_commit() const;  // attempts that ended in a conflict with another transaction
};

// An engine with a workload's initial records, which runs batches of it.
class WorkloadRun {
 public:
  static Result<std::unique_ptr<WorkloadRun>> create(const BenchOptions& options, const WorkloadOptions& workload);

  // Runs further batches: options.batches, or as many as options.duration_seconds allows. The report adds up. Errors:
  // INTERNAL from the referee.
  Status run();
  // Runs this many further batches. The referee checks each of them, together with every record that it names. The
  // report does not count them. Memory: that of a batch, whatever the size of the table. Requires: batches without
  // ranges. Errors: INTERNAL from the referee, or because of the state's hash.
  Status verify(std::uint64_t batches);
  // Checks the workload's invariant on the final state. Errors: INTERNAL, which names what is violated.
  Status check_invariant();
  const WorkloadReport& report() const { return report_; }

 private:
  // Large enough to make switches between generating and running rare. Small enough to stay in the cache, or near it.
  // Transactions of one operation each.
  static constexpr std::size_t kChunkBatches = 32, kChunkTransactions = std::size_t{1} << 18;

  WorkloadRun(const BenchOptions& options, Workload workload, std::unique_ptr<Engine> engine);
  Status load();
  Status warm_up();
  void generate_chunk();
  const TransactionColumns& next_batch();
  Status run_batch(const TransactionColumns& columns);
  Status check_device(const TransactionColumns& columns) const;
  void add_time(const Stopwatch& watch);
  Status verify_batch(const BatchHeader& header, const TransactionColumns& columns);

  BenchOptions options_;
  Workload workload_;
  std::unique_ptr<Engine> engine_;
  KeyHashSecret secret_;
  bool needs_device_ = false;
  std::vector<TransactionColumns> chunk_;
  std::size_t next_in_chunk_ = 0;
  Column<std::uint8_t> expires_;
  BatchResults results_;
  WriteColumns writes_;
  BatchHeader header_;
  std::optional<ModelState> model_;  // with --verify, and in verify()
  WorkloadReport report_;
};

}  // namespace kilokv::engine::bench
