#include "server/service/log_level.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "server/core/one_line.hpp"

namespace kilokv::server {

const std::vector<std::string>& log_levels() {
  static const std::vector<std::string> kLevels = {"trace", "debug", "info", "warning", "error", "critical", "off"};
  return kLevels;
}

std::string log_level() {
  const spdlog::string_view_t name = spdlog::level::to_string_view(spdlog::get_level());
  return {name.data(), name.size()};
}

Result<std::string> set_log_level(std::string_view level) {
  const std::vector<std::string>& levels = log_levels();
  if (std::find(levels.begin(), levels.end(), level) == levels.end()) {
    std::string list;
    for (const std::string& name : levels) list += (list.empty() ? "one of " : ", ") + name;
    return Status::invalid({.field = "level", .limit = list, .actual = '"' + short_line(level) + '"', .setting = ""});
  }
  std::string before = log_level();
  spdlog::default_logger()->set_level(spdlog::level::from_str(std::string(level)));
  return before;
}

}  // namespace kilokv::server
