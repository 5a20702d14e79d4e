// `ordered` on threads of the host. It has its own threads. Thread safety: one caller at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/ordered_scratch.hpp"
#include "engine/platform/host.hpp"

namespace kilokv::engine {

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
      : team_(threads), tuning_(tuning), scratch_(first) {}

  std::vector<std::string> strategies() const override { return {"ordered"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override;
  bool leaves_deltas() const override { return decltype(arguments_)::kLeavesDeltas; }
  std::size_t memory_bytes() const override { return scratch_.memory_bytes(); }

 private:
  ThreadTeam team_;
  OrderedTuning tuning_;
  OrderedScratch scratch_;
  OrderedArguments<HostSpace> arguments_;  // of the current run
};

}  // namespace kilokv::engine
