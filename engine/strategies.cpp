#include "engine/strategies.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/exec/strategy.hpp"

namespace kilokv::engine {
namespace {

StrategyInfo info_of(const Strategy& strategy) {
  StrategyInfo info;
  info.name = strategy.name;
  info.summary = strategy.summary;
  info.has_own_order = strategy.traits.order == BatchOrder::its_own;
  info.has_locks = strategy.traits.has_locks;
  info.takes_tickets = strategy.traits.takes_tickets;
  info.stays_on_cpu = strategy.make_host == nullptr;
  switch (strategy.traits.auto_choice) {
    case AutoChoice::never: break;
    case AutoChoice::any: info.auto_order = "any"; break;
    case AutoChoice::on_device:
    case AutoChoice::always: info.auto_order = "fixed"; break;
  }
  info.auto_needs_device = strategy.traits.auto_choice == AutoChoice::on_device;
  for (const StrategySetting& setting : strategy.settings) info.settings.push_back(setting.name);
  return info;
}

bool is_same(const StrategySetting& a, const StrategySetting& b) {
  return std::string_view(a.help) == b.help && a.kind == b.kind && a.low == b.low && a.high == b.high &&
         a.default_text() == b.default_text() && a.is_form == b.is_form && a.for_measuring == b.for_measuring;
}

std::vector<SettingInfo> make_settings() {
  std::vector<SettingInfo> settings;
  for (const Strategy* strategy : all_strategies()) {
    for (const StrategySetting& setting : strategy->settings) {
      auto found = std::find_if(settings.begin(), settings.end(), [&](const SettingInfo& info) {
        return std::string_view(info.setting.name) == setting.name;
      });
      if (found == settings.end()) found = settings.insert(settings.end(), {setting, {}});
      KILOKV_CHECK(is_same(found->setting, setting));  // one flag cannot have two meanings
      found->strategies.push_back(strategy->name);
    }
  }
  return settings;
}

std::vector<std::string> make_counters() {
  std::vector<std::string> counters;
  for (const Strategy* strategy : all_strategies()) {
    for (const char* name : strategy->counters) {
      if (std::find(counters.begin(), counters.end(), name) == counters.end()) counters.push_back(name);
    }
  }
  return counters;
}

}  // namespace

bool StrategyInfo::has_setting(std::string_view setting) const {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

const std::vector<StrategyInfo>& strategy_infos() {
  static const std::vector<StrategyInfo> kInfos = [] {
    std::vector<StrategyInfo> infos;
    for (const Strategy* strategy : all_strategies()) infos.push_back(info_of(*strategy));
    return infos;
  }();
  return kInfos;
}

const StrategyInfo* find_strategy_info(std::string_view name) {
  for (const StrategyInfo& info : strategy_infos()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const std::vector<SettingInfo>& strategy_settings() {
  static const std::vector<SettingInfo> kSettings = make_settings();
  return kSettings;
}

const SettingInfo* find_setting_info(std::string_view name) {
  for (const SettingInfo& info : strategy_settings()) {
    if (name == info.setting.name) return &info;
  }
  return nullptr;
}

const std::vector<std::string>& strategy_counters() {
  static const std::vector<std::string> kCounters = make_counters();
  return kCounters;
}

Status check_settings(std::string_view strategy, const SettingTexts& texts) {
  const StrategyInfo* const info = find_strategy_info(strategy);
  for (const auto& [name, text] : texts) {
    const SettingInfo* const found = find_setting_info(name);
    if (found == nullptr) return Status::invalid({name, "a setting of a strategy", text, "--" + name});
    if (Status status = found->setting.check(text); !status.ok()) return status;
    const std::string otherwise = found->setting.default_text();
    if (found->setting.plain(text) == otherwise || (info != nullptr && info->has_setting(name))) continue;
    const std::string limit = otherwise + ", the default, unless --strategy is " + listed(found->strategies);
    return Status::invalid({name, limit, text, "--" + name});
  }
  const Strategy* const chosen = find_strategy(strategy);
  return chosen != nullptr && chosen->check != nullptr ? chosen->check(texts) : Status();
}

std::vector<std::pair<std::string, std::string>> effective_settings(const SettingTexts& texts) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const SettingInfo& info : strategy_settings()) {
    const auto found = texts.find(info.setting.name);
    settings.emplace_back(info.setting.name,
                          found != texts.end() ? info.setting.plain(found->second) : info.setting.default_text());
  }
  return settings;
}

std::string listed(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace kilokv::engine
