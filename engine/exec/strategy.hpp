// The registry of strategies: all that programs and the engine know of one, in one place.
//
// A strategy has a file of its own here, exec/strategies/NAME.cpp, which defines `const Strategy& NAME_strategy()`, and
// one for CUDA devices, exec/strategies/NAME.cu, with its kernels (exec/device/cuda_kernel.hpp).
// engine/strategies.cmake lists the names. From this list the build makes the table behind all_strategies().
// docs/adding-a-strategy.md goes through it step by step.
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

// Which order of a batch's transactions its results are those of.
enum class BatchOrder : std::uint8_t {
  fixed,    // precedence, then arrival: the results are those of `serial`, bit for bit
  its_own,  // a serial one that it finds while it runs
};

// Under which --order `auto` may choose it.
enum class AutoChoice : std::uint8_t { never, any, always };

struct StrategyTraits {
  BatchOrder order = BatchOrder::fixed;
  bool has_locks = false;      // on records
  bool takes_tickets = false;  // for its order (stm/papers/ticketed.hpp)
  AutoChoice auto_choice = AutoChoice::never;
};

struct Strategy {
  const char* name;
  const char* summary;  // a plain sentence
  StrategyTraits traits;
  std::vector<StrategySetting> settings = {};
  std::vector<const char*> counters = {};  // of its reports (exec/run/execution_report.hpp)
  // What the settings cannot be checked for one by one. Null: nothing.
  Status (*check)(const SettingTexts& texts) = nullptr;
  // On threads of the host; on a device. Null: `serial`, which the engine runs itself.
  std::function<std::unique_ptr<Executor>(std::uint32_t threads, const SettingTexts& texts)> make_host = nullptr;
  std::function<std::unique_ptr<DeviceStrategy>(const DeviceStrategyPlace& place, const SettingTexts& texts)>
      make_device = nullptr;
  std::vector<EmulatedKernel> kernels = {};  // of the emulated device
};

// In the order in which programs list them.
std::span<const Strategy* const> all_strategies();
// Null: there is none of this name.
const Strategy* find_strategy(std::string_view name);

// Of strategies that `auto` chooses from, beside `serial`. `order`: fixed or any.
std::vector<std::string> strategies_of_auto(std::string_view order);

// The settings that people see, of several lists.
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
