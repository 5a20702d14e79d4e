#include "engine/stm/papers/kilo.hpp"

#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {

const Strategy& kilo_strategy() {
  static const Strategy kStrategy = ticketed_strategy<Kilo<HostPlatform>, Kilo<EmulatedPlatform>>(
      "kilo",
      "Finds an order of its own (KILO TM). Validation is by value, and commits follow the order of commit IDs.",
      {.auto_choice = AutoChoice::any}, shown_settings(kTicketedSettings, kKiloSettings),
      [](const SettingTexts& texts, auto* arguments) {
        assign_settings(texts, kTicketedSettings, &arguments->tuning);
        assign_settings(texts, kKiloSettings, &arguments->kilo_tuning);
      });
  return kStrategy;
}

}  // namespace kilokv::engine
