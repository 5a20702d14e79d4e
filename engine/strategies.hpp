// The strategies and their settings, for programs. The registry (exec/strategy.hpp) fills these lists. Flags, help,
// checks, status and documents follow from them. Thread safety: constants, and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/strategy_setting.hpp"

namespace kilokv::engine {

struct StrategyInfo {
  std::string name;
  std::string summary;  // one plain sentence
  bool has_own_order = false;
  bool has_locks = false;
  bool takes_tickets = false;
  bool stays_on_cpu = false;  // the engine itself runs it, on the CPU with every --device
  // The --order with which `auto` may choose it. fixed: with --order any, too. any: only with that. Empty: never.
  std::string auto_order;
  bool auto_needs_device = false;     // on the CPU, `auto` does not choose it
  std::vector<std::string> settings;  // the settings that it uses

  bool has_setting(std::string_view setting) const;
};

struct SettingInfo {
  StrategySetting setting;
  std::vector<std::string> strategies;  // the strategies that use it
};

// All strategies, in the order in which programs list them. `auto` is not in the list: it chooses one of them for each
// batch.
const std::vector<StrategyInfo>& strategy_infos();
// Null: no strategy has this name.
const StrategyInfo* find_strategy_info(std::string_view name);
// All settings of all strategies, each once.
const std::vector<SettingInfo>& strategy_settings();
// Null: no setting has this name.
const SettingInfo* find_setting_info(std::string_view name);
// The names of all counters in reports (ExecutionReport::counters), except those that a report has only on demand.
const std::vector<std::string>& strategy_counters();

// INVALID_ARGUMENT for an unknown setting, for a text that the setting does not accept, and for a text other than the
// default if the strategy does not use the setting. `strategy` may be auto. The message names the flag that programs
// have for the setting.
[[nodiscard]] Status check_settings(std::string_view strategy, const SettingTexts& texts);

// Every setting with its text, or with its default if `texts` does not have it, in the order of strategy_settings().
std::vector<std::pair<std::string, std::string>> effective_settings(const SettingTexts& texts);

// The names as a list in words, such as "prstm, lock or kilo".
std::string listed(const std::vector<std::string>& names, std::string_view last = " or ");

}  // namespace kilokv::engine
