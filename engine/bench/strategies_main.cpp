#include "engine/bench/strategies_main.hpp"

#include <cstdio>

#include "engine/bench/flags.hpp"
#include "engine/bench/options.hpp"
#include "engine/strategies.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr int kExitUsage = 2;
constexpr const char* kUsage =
    "Usage: kilokv-engine-bench strategies [FLAGS]\n"
    "Lists the strategies and their settings.\n\n";

std::string quoted(const std::vector<std::string>& names, const char* before = "") {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "`" : ", `") + (before + name) + "`";
  return text.empty() ? "none" : text;
}

std::string auto_text(const StrategyInfo& info) {
  if (info.auto_order.empty()) return "no";
  if (info.auto_order == "any") return "with `--order any`";
  return info.auto_needs_device ? "on a device" : "yes";
}

}  // namespace

std::string strategies_markdown() {
  std::string text =
      "| strategy | what it does | order | `auto` may choose it | settings |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const StrategyInfo& info : strategy_infos()) {
    text += "| `" + info.name + "` | " + info.summary + " | " + (info.has_own_order ? "its own" : "fixed") + " | " +
            auto_text(info) + " | " + quoted(info.settings, "--") + " |\n";
  }
  text +=
      "\n| setting | default | takes | strategies | what it is |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const SettingInfo& info : strategy_settings()) {
    const StrategySetting& setting = info.setting;
    text += std::string("| `--") + setting.name + "` | `" + setting.default_text() + "` | " + setting.takes() + " | " +
            quoted(info.strategies) + " | " + setting.help +
            (setting.for_measuring ? " Only `kilokv-engine-bench` has it." : "") + " |\n";
  }
  return text;
}

int strategies_main(const std::vector<std::string>& arguments) {
  bool as_markdown = false, help = false;
  const std::vector<Flag> flags = {
      switch_flag("markdown", "print the tables of docs/configuration.md", &as_markdown),
      switch_flag("help", "print this and exit", &help),
  };
  if (const Status status = parse_flags(flags, arguments); !status.ok()) {
    std::fprintf(stderr, "kilokv-engine-bench strategies: %s\n", status.message().c_str());
    return kExitUsage;
  }
  if (help) {
    std::printf("%s%s", kUsage, describe_flags(flags).c_str());
  } else {
    std::fputs((as_markdown ? strategies_markdown() : describe_strategies()).c_str(), stdout);
  }
  return 0;
}

}  // namespace kilokv::engine::bench
