// The strategies and their settings, for programs: flags, help, checks, status and documents follow from these lists,
// which the registry fills (exec/strategy.hpp). Thread safety: constants, and pure functions.
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
  std::string summary;  // a plain sentence
  bool has_own_order = false;
  bool has_locks = false;
  bool takes_tickets = false;
  std::string auto_order;             // under which --order `auto` may choose it: fixed (any, too), any, or empty: none
  std::vector<std::string> settings;  // that mean something to it

  bool has_setting(std::string_view setting) const;
};

struct SettingInfo {
  StrategySetting setting;
  std::vector<std::string> strategies;  // that it means something to
};

// In the order in which programs list them. `auto` is none of them: it chooses one for each batch.
const std::vector<StrategyInfo>& strategy_infos();
// Null: there is none of this name.
const StrategyInfo* find_strategy_info(std::string_view name);
// Each once.
const std::vector<SettingInfo>& strategy_settings();
// Null: there is none of this name.
const SettingInfo* find_setting_info(std::string_view name);
// Names of all counters of reports (ExecutionReport::counters), but those that are only there when asked for.
const std::vector<std::string>& strategy_counters();

// INVALID_ARGUMENT for a setting that is unknown, for a text that it does not take, and for one other than the default
// where it means nothing to the strategy, which may be auto. Messages name the flag that programs have for it.
[[nodiscard]] Status check_settings(std::string_view strategy, const SettingTexts& texts);

// Each setting with the text that holds, in the order of strategy_settings().
std::vector<std::pair<std::string, std::string>> effective_settings(const SettingTexts& texts);

// "prstm, lock or kilo".
std::string listed(const std::vector<std::string>& names, std::string_view last = " or ");

}  // namespace kilokv::engine
