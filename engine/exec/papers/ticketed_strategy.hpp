// Makes the entry of a strategy with tickets (stm/papers/ticketed.hpp) in the registry (exec/strategy.hpp) from its
// protocol.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/exec/papers/ticketed_host.hpp"
#include "engine/exec/papers/ticketed_inputs.hpp"
#include "engine/exec/papers/ticketed_on_device.hpp"
#include "engine/exec/strategy.hpp"
#include "engine/platform/host.hpp"

namespace kilokv::engine {

// Host and Emulated: the protocol over HostPlatform, and over EmulatedPlatform. OnDevice: its DeviceStrategy.
// `tune(texts, arguments)` fills the tuning in the arguments.
template <class Host, class Emulated,
          class OnDevice = TicketedOnDevice<typename Host::Arguments, typename Emulated::Arguments>, class Tune>
Strategy ticketed_strategy(const char* name, const char* summary, StrategyTraits traits,
                           std::vector<StrategySetting> settings, Tune tune) {
  traits.order = BatchOrder::its_own;
  traits.takes_tickets = true;
  Strategy strategy{name, summary, traits, std::move(settings), ticketed_counters()};
  strategy.make_host = [=](std::uint32_t threads, const SettingTexts& texts) -> std::unique_ptr<Executor> {
    typename Host::Arguments tuned;
    tune(texts, &tuned);
    return std::make_unique<TicketedHost<Host>>(name, threads, tuned);
  };
  strategy.make_device = [=](const DeviceStrategyPlace& place,
                             const SettingTexts& texts) -> std::unique_ptr<DeviceStrategy> {
    typename Host::Arguments tuned;
    tune(texts, &tuned);
    return std::make_unique<OnDevice>(name, tuned, place);
  };
  using Run = TicketedRun<EmulatedPlatform, Emulated>;
  strategy.kernels = {emulated_kernel<Run, typename Emulated::Arguments>(name)};
  return strategy;
}

// A strategy that needs no other arguments and settings than those of all strategies with locks.
template <class Host, class Emulated>
Strategy locking_strategy(const char* name, const char* summary, AutoChoice auto_choice) {
  return ticketed_strategy<Host, Emulated>(
      name, summary, {.has_locks = true, .auto_choice = auto_choice}, shown_settings(kLockingSettings),
      [](const SettingTexts& texts, auto* arguments) { assign_settings(texts, kLockingSettings, &arguments->tuning); });
}

}  // namespace kilokv::engine
