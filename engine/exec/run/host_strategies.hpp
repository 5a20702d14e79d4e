// Several strategies on threads of the host. use() chooses the one that runs the next batch. Each strategy has its own
// threads and memory. Threads without a batch are parked. Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/strategy_setting.hpp"
#include "engine/exec/run/executor.hpp"

namespace kilokv::engine {

class HostStrategies final : public Executor {
 public:
  // Requires: `strategies` has at least one name; all are in the registry (exec/strategy.hpp), and the engine
  // runs none of them itself; check_settings() accepts `settings`.
  HostStrategies(std::vector<std::string> strategies, std::uint32_t threads, const SettingTexts& settings = {});

  std::vector<std::string> strategies() const override { return names_; }
  void use(std::size_t strategy) override { used_ = executors_[strategy].get(); }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    return used_->run(batch, records, results, report);
  }
  std::size_t transactions_max() const override;  // what all of them take: the caller has not chosen one yet
  std::size_t memory_bytes() const override;

 private:
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Executor>> executors_;
  Executor* used_;
};

}  // namespace kilokv::engine
