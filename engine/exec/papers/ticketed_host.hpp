// A strategy with tickets on threads of the host. It has its own threads. Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/papers/ticketed_inputs.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/host_arguments.hpp"
#include "engine/exec/run/host_columns.hpp"
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
      : strategy_(strategy), team_(threads), tuned_(tuned) {}

  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    arguments_ = tuned_;
    const BatchShape shape = inputs_.open(batch, host_threads(team_.size()), records, results, &arguments_);
    columns_.bind(shape, &arguments_);
    team_.run([this](std::uint32_t thread) {
      HostPlatform platform(&team_, thread, nullptr);  // null: no memory is shared within a block
      TicketedRun<HostPlatform, Protocol>(platform, arguments_).run();
    });
    batch.clock.add_helpers(team_.helper_time());
    report_ticketed(strategy_, arguments_, shape, results, report);
    inputs_.close(arguments_, report);
    report->on_device = false;
    if (results->passes > 0) return {};
    return Status(StatusCode::internal, std::string(strategy_) + " gave up a batch: no thread made progress");
  }
  std::vector<std::string> strategies() const override { return {strategy_}; }
  std::size_t transactions_max() const override { return kTicketedTransactionsMax; }
  std::size_t memory_bytes() const override { return inputs_.memory_bytes() + columns_.memory_bytes(); }

 private:
  const char* strategy_;
  ThreadTeam team_;
  const Arguments tuned_;
  TicketedInputs<Arguments> inputs_;
  HostColumns columns_;
  Arguments arguments_;  // of the current run
};

}  // namespace kilokv::engine
