#include "engine/exec/papers/ticketed_host.hpp"

#include "engine/exec/papers/kilo_scratch.hpp"
#include "engine/exec/papers/stage_scratch.hpp"
#include "engine/exec/papers/ticketed_scratch.hpp"
#include "engine/platform/host.hpp"
#include "engine/stm/papers/gpustm.hpp"
#include "engine/stm/papers/kilo.hpp"
#include "engine/stm/papers/local.hpp"
#include "engine/stm/papers/lock.hpp"
#include "engine/stm/papers/prstm.hpp"

namespace kilokv::engine {
namespace {

template <class Protocol>
class TicketedHost final : public Executor {
 public:
  TicketedHost(const char* strategy, std::uint32_t threads, const TicketedTuning& tuning)
      : strategy_(strategy), team_(threads), tuning_(tuning) {}

  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    arguments_ = scratch_.open(batch, tuning_, team_.size(), HostPlatform::kGroupWidth, records, results);
    if constexpr (requires { Protocol::kHasCommitUnits; }) {
      const std::size_t uses = 2 * batch.columns.guard_key.size() + batch.columns.op_key.size();
      arguments_.kilo = kilo_.open(batch.columns.size(), uses, tuning_.kilo);
    }
    if constexpr (requires { Protocol::kHasStage; }) {
      stage_.open(batch, *records, team_.size(), HostPlatform::kGroupWidth, 0, &arguments_);
    }
    team_.run([this](std::uint32_t thread) {
      HostPlatform platform(&team_, thread, nullptr);  // nothing is shared within a block
      TicketedRun<HostPlatform, Protocol>(platform, arguments_).run();
    });
    scratch_.close(strategy_, batch, results, report);
    stage_.close(report);
    report->on_device = false;
    if (results->passes > 0) return {};
    return Status(StatusCode::internal, std::string(strategy_) + " has given a batch up: no thread got on");
  }
  std::vector<std::string> strategies() const override { return {strategy_}; }
  std::size_t transactions_max() const override { return kTicketedTransactionsMax; }
  bool leaves_deltas() const override { return decltype(arguments_)::kLeavesDeltas; }
  std::size_t memory_bytes() const override {
    return scratch_.memory_bytes() + kilo_.memory_bytes() + stage_.memory_bytes();
  }

 private:
  const char* strategy_;
  ThreadTeam team_;
  TicketedTuning tuning_;
  TicketedScratch scratch_;
  KiloScratch kilo_;
  StageScratch stage_;
  TicketedArguments<HostSpace> arguments_;  // of the run
};

}  // namespace

std::unique_ptr<Executor> make_ticketed_host(const std::string& strategy, std::uint32_t threads,
                                             const TicketedTuning& tuning) {
  if (strategy == "prstm") return std::make_unique<TicketedHost<Prstm<HostPlatform>>>("prstm", threads, tuning);
  if (strategy == "lock") return std::make_unique<TicketedHost<Locking<HostPlatform>>>("lock", threads, tuning);
  if (strategy == "gpustm") return std::make_unique<TicketedHost<Gpustm<HostPlatform>>>("gpustm", threads, tuning);
  if (strategy == "kilo") return std::make_unique<TicketedHost<Kilo<HostPlatform>>>("kilo", threads, tuning);
  if (strategy != "local") return nullptr;
  if (!tuning.local.times) return std::make_unique<TicketedHost<Local<HostPlatform>>>("local", threads, tuning);
  return std::make_unique<TicketedHost<Local<HostPlatform, TimedLocalRules>>>("local", threads, tuning);
}

}  // namespace kilokv::engine
