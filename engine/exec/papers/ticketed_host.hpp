// A strategy with tickets on threads of the host. It has its own threads. Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/papers/ticketed_scratch.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/platform/host.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

// Protocol: the strategy's protocol, over HostPlatform.
template <class Protocol>
class TicketedHost final : public Executor {
 public:
  using Arguments = typename Protocol::Arguments;

  // `strategy`: its name, a literal. `tuned`: arguments of which only the tuning is filled.
  TicketedHost(const char* strategy, std::uint32_t threads, const Arguments& tuned)
      : strategy_(strategy), team_(threads), arguments_(tuned) {}

  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    scratch_.open(batch, team_.size(), HostPlatform::kGroupWidth, records, results, &arguments_);
    own_.open(batch, *records, team_.size(), HostPlatform::kGroupWidth, &arguments_);
    team_.run([this](std::uint32_t thread) {
      HostPlatform platform(&team_, thread, nullptr);  // null: no memory is shared within a block
      TicketedRun<HostPlatform, Protocol>(platform, arguments_).run();
    });
    batch.clock.add_helpers(team_.helper_time());
    scratch_.close(strategy_, batch, results, report);
    own_.close(report);
    report->on_device = false;
    if (results->passes > 0) return {};
    return Status(StatusCode::internal, std::string(strategy_) + " gave up a batch: no thread made progress");
  }
  std::vector<std::string> strategies() const override { return {strategy_}; }
  std::size_t transactions_max() const override { return kTicketedTransactionsMax; }
  bool leaves_deltas() const override { return Arguments::kLeavesDeltas; }
  std::size_t memory_bytes() const override { return scratch_.memory_bytes() + own_.memory_bytes(); }

 private:
  const char* strategy_;
  ThreadTeam team_;
  TicketedScratch scratch_;
  OwnScratch<Arguments> own_;
  Arguments arguments_;  // of the current run; the tuning is that of all runs
};

}  // namespace kilokv::engine
