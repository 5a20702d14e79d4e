// The registry of strategies. It holds, in one place, all that programs and the engine know of a strategy.
//
// Each strategy has a file exec/strategies/NAME.cpp, which defines `const Strategy& NAME_strategy()`. If it runs on
// CUDA devices, its kernels are in a second file, exec/strategies/NAME.cu (exec/device/cuda_kernel.hpp).
// engine/strategies.cmake lists the names. From that list the build makes the table that all_strategies() returns.
// docs/adding-a-strategy.md shows the steps.
//
// Thread safety: constants.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/strategy_setting.hpp"
#include "engine/exec/device/device_strategy.hpp"
#include "engine/exec/device/emulated_kernel.hpp"
#include "engine/exec/run/executor.hpp"

namespace kilokv::engine {

// The order of a batch's transactions that the strategy keeps.
enum class BatchOrder : std::uint8_t {
  fixed,    // precedence, then arrival: the results equal those of `serial`, bit for bit
  its_own,  // a serial order that the strategy finds while it runs
};

// When `auto` may choose the strategy. `any`: only with --order any. `on_device`: only on a device, because another one
// is faster on the CPU.
enum class AutoChoice : std::uint8_t { never, any, on_device, always };

struct StrategyTraits {
  BatchOrder order = BatchOrder::fixed;
  bool has_locks = false;      // it locks records
  bool takes_tickets = false;  // its order is that of tickets (stm/papers/ticketed.hpp)
  AutoChoice auto_choice = AutoChoice::never;
};

struct Strategy {
  const char* name;
  const char* summary;  // one plain sentence
  StrategyTraits traits;
  std::vector<StrategySetting> settings = {};
  std::vector<const char*> counters = {};  // the counters in its reports (exec/run/execution_report.hpp)
  // Checks rules between settings. Each setting by itself is checked before. Null: there is no such rule.
  Status (*check)(const SettingTexts& texts) = nullptr;
  // Checks whether a server may run these settings on this device. Null: it may. Benches run them nevertheless
  // (EngineOptions::allow_unproven).
  Status (*check_device)(const DeviceInfo& device, const SettingTexts& texts) = nullptr;
  // Make what runs it on threads of the host, and on a device. Null for a strategy that the engine runs itself.
  std::function<std::unique_ptr<Executor>(std::uint32_t threads, const SettingTexts& texts)> make_host = nullptr;
  std::function<std::unique_ptr<DeviceStrategy>(const DeviceStrategyPlace& place, const SettingTexts& texts)>
      make_device = nullptr;
  // For the emulated device. Those for CUDA devices have the same names. Without kernels it runs only on the host.
  std::vector<EmulatedKernel> kernels = {};
};

// All strategies, in the order in which programs list them.
std::span<const Strategy* const> all_strategies();
// Null: no strategy has this name.
const Strategy* find_strategy(std::string_view name);
// Whether the strategy can run on the device of these kernels: it has something that runs it there, and all its kernels
// are among these. A strategy whose .cu file is missing has none on a CUDA device.
bool runs_on(const Strategy& strategy, const DeviceKernels& kernels);

// The names of the strategies that `auto` chooses from on the CPU or on a device, without those that the engine runs
// itself. `order`: fixed or any.
std::vector<std::string> strategies_of_auto(std::string_view order, bool on_device);

// Joins several lists of settings into one, without the parts that fill the tuning.
template <class... Settings>
std::vector<StrategySetting> shown_settings(const Settings&... settings) {
  std::vector<StrategySetting> shown;
  const auto add = [&shown](const auto& list) {
    for (const StrategySetting& setting : list) shown.push_back(setting);
  };
  (add(settings), ...);
  return shown;
}

}  // namespace kilokv::engine
