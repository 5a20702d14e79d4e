// The strategies and their settings, for programs. Flags, help, checks, status and documents follow from these lists.
// The registry fills the lists (exec/strategy.hpp). Thread safety: constants, and pure functions.
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
  std::string summary;  // whole sentences
  bool has_own_order = false;
  bool has_locks = false;
  bool takes_tickets = false;
  // The --order under which `auto` may choose it: fixed (also under any), any, or empty (never).
  std::string auto_order;
  std::vector<std::string> settings;  // the settings that it uses

  bool has_setting(std::string_view setting) const;
};

struct SettingInfo {
  StrategySetting setting;
  std::vector<std::string> strategies;  // the strategies that use it
};

// In the order in which programs list them. `auto` is not in the list: it chooses one of them for each batch.
const std::vector<StrategyInfo>& strategy_infos();
// Null: there is no strategy of this name.
const StrategyInfo* find_strategy_info(std::string_view name);
// Each setting once.
const std::vector<SettingInfo>& strategy_settings();
// Null: there is no setting of this name.
const SettingInfo* find_setting_info(std::string_view name);
// Names of all counters of reports (ExecutionReport::counters), except those that are only there on request.
const std::vector<std::string>& strategy_counters();

// Errors: INVALID_ARGUMENT for an unknown setting, for a text that the setting does not take, and for a text other than
// the default if the strategy does not use the setting. The strategy may be auto. Messages name the flag of the
// setting.
[[nodiscard]] Status check_settings(std::string_view strategy, const SettingTexts& texts);

// Each setting with the text that applies, in the order of strategy_settings().
std::vector<std::pair<std::string, std::string>> effective_settings(const SettingTexts& texts);

// Joins names, such as "prstm, lock or kilo".
std::string listed(const std::vector<std::string>& names, std::string_view last = " or ");

}  // namespace kilokv::engine
