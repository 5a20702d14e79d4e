// `ordered` in the host's memory, on threads of the host. Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/first_epochs.hpp"
#include "engine/exec/run/host_columns.hpp"
#include "engine/exec/run/ordered_totals.hpp"
#include "engine/platform/host.hpp"

namespace kilokv::engine {

// The batches of an executor that works in the host's memory, such as that of the simulator. Not thread-safe.
class OrderedBatches {
 public:
  explicit OrderedBatches(FirstEpochs first = {}) : epochs_(first.reservations) {}

  // The arguments of the batch, for a run on these threads. They point into this object, `batch`, `records` and
  // `results`, and are good until the next call.
  const OrderedArguments<HostSpace>& open(const ResolvedBatch& batch, const OrderedTuning& tuning,
                                          const BatchThreads& threads, BatchRecords* records, BatchResults* results);
  // Call it after the run. Fills the passes and the next version of the results, and the report. INTERNAL: the run has
  // given up the batch. Then do not use this object again. An epoch is the number of a round, and each reservation
  // carries one. After the failed run, reservations may carry later epochs than epochs_ has counted. The next batch
  // could take them for its own.
  [[nodiscard]] Status close(BatchResults* results, ExecutionReport* report);

  std::size_t memory_bytes() const { return columns_.memory_bytes(); }

 private:
  EpochCounter epochs_;
  HostColumns columns_;
  BatchShape shape_;
  OrderedArguments<HostSpace> arguments_;
};

// It has its own threads.
class OrderedHost final : public Executor {
 public:
  // A round costs a barrier. It also costs, for each undecided transaction, about as much time as to run it. So one
  // thread alone gains nothing from rounds (kOneByOne). Chains are not walked: on two threads, it took longer to find
  // chains than they saved. With them, the throughput was 0.6 to 0.75 times as high, for hot records and for a Zipf
  // distribution.
  static constexpr OrderedTuning kTuning{.decided_min = 64, .divisor = 8};
  static constexpr OrderedTuning kOneByOne{.decided_min = kNone};

  explicit OrderedHost(std::uint32_t threads) : team_(threads), tuning_(team_.size() == 1 ? kOneByOne : kTuning) {}
  OrderedHost(std::uint32_t threads, OrderedTuning tuning, FirstEpochs first = {})
      : team_(threads), tuning_(tuning), batches_(first) {}

  std::vector<std::string> strategies() const override { return {"ordered"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override;
  std::size_t memory_bytes() const override { return batches_.memory_bytes(); }

 private:
  ThreadTeam team_;
  OrderedTuning tuning_;
  OrderedBatches batches_;
};

}  // namespace kilokv::engine
