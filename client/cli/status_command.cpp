// kilokv status: the state of the server, in groups. In JSON it is one flat object, whose fields do not depend on how
// they are grouped.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/activity_text.hpp"
#include "client/cli/commands.hpp"
#include "client/cli/repeat.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

using Fields = nlohmann::ordered_json;
struct Group {
  std::string title;
  Fields fields;
};

// What people call a section of the protocol. Sections with the same title are one group.
std::string title_of(const std::string& section) {
  static const std::vector<std::pair<std::string, std::string>> kTitles = {
      {"position", "Positions in the log of batches"},
      {"counts", "Since the start"},
      {"queue", "Now"},
      {"parked", "Now"},
      {"sessions", "Now"},
      {"uploads", "Now"},
      {"table", "Table"},
      {"log", "Log"},
      {"device", "Where batches run"},
      {"checks", "Where batches run"},
      {"memory", "Memory"}};
  for (const auto& [name, title] : kTitles) {
    if (name == section) return title;
  }
  return section;  // of a newer server
}

Fields* group_of(std::vector<Group>* groups, const std::string& title) {
  for (Group& group : *groups) {
    if (group.title == title) return &group.fields;
  }
  groups->push_back({title, {}});
  return &groups->back().fields;
}

std::vector<Group> groups_of(const ServerStatus& status) {
  std::vector<Group> groups = {
      {"Server",
       {{"state", status.state},
        {"server_version", status.version},
        {"read_only", status.read_only},
        {"insecure", status.insecure},
        {"uptime_seconds", status.uptime_seconds},
        {"recovery_seconds", status.recovery_seconds}}},
      {"Where batches run",
       {{"strategy", status.strategy},
        {"threads", status.threads},
        {"shadow_rate", status.shadow_rate},
        {"device", status.device},
        {"device_model", status.device_model},
        {"device_reason", status.device_reason}}},
      {"Positions in the log of batches", {{"incarnation", status.incarnation}, {"state_hash", status.state_hash}}}};
  Fields* const running = group_of(&groups, "Where batches run");
  for (const auto& [name, text] : status.settings) (*running)[name] = text;
  for (const auto& [name, text] : status.details) (*running)[name] = text;
  for (const auto& [section, names] : status.sections) {
    if (names.empty()) continue;
    Fields* const fields = group_of(&groups, title_of(section));
    for (const std::string& name : names) (*fields)[name] = status.counters.at(name);
  }
  return groups;
}

// A long text goes on below its begin.
void print_line(const std::string& name, const std::string& value) {
  constexpr std::size_t kName = 24, kValue = 55;
  std::string rest = value, lines;
  while (rest.size() > kValue) {
    const std::size_t blank = rest.rfind(' ', kValue);
    if (blank == std::string::npos || blank == 0) break;
    lines += rest.substr(0, blank) + '\n' + std::string(kName + 1, ' ');
    rest.erase(0, blank + 1);
  }
  lines += rest;
  std::printf("%-*s %s\n", static_cast<int>(kName), name.c_str(), lines.c_str());
}

// A number as it is in JSON, and for people what it means in larger units.
std::string number_text(const std::string& name, const nlohmann::ordered_json& value) {
  if (name.ends_with("_seconds") && value.is_number_float()) {
    const auto seconds = value.get<double>();
    std::string text = bench::fixed(seconds, 3);
    if (seconds >= 60) text += " (" + bench::long_duration(static_cast<std::int64_t>(seconds * 1e6)) + ")";
    return text;
  }
  std::string text = value.dump();
  if (!name.ends_with("_bytes") || !value.is_number_unsigned()) return text;
  const auto bytes = value.get<std::uint64_t>();
  return bytes < 1024 ? text : text + " (" + bench::short_size(bytes) + ")";
}

std::string field_text(const std::string& name, const nlohmann::ordered_json& value, const ServerStatus& status) {
  if (name == "state") return state_text(status);
  return value.is_string() ? or_dash(value.get<std::string>()) : number_text(name, value);
}

void print_text(const std::vector<Group>& groups, const ServerStatus& status) {
  for (const Group& group : groups) {
    std::printf("%s%s:\n", &group == groups.data() ? "" : "\n", group.title.c_str());
    for (const auto& field : group.fields.items()) {
      print_line(field.key(), field_text(field.key(), field.value(), status));
    }
    if (group.title != "Memory") continue;
    for (const auto& owner : status.memory) {
      const std::string bound = owner.bound_bytes == 0 ? "" : " of " + bench::short_size(owner.bound_bytes);
      print_line("memory of " + owner.name, bench::short_size(owner.bytes) + bound);
    }
  }
}

void print_json(const std::vector<Group>& groups, const ServerStatus& status) {
  Fields fields;
  for (const Group& group : groups) fields.update(group.fields);
  for (const auto& owner : status.memory) {
    fields["memory"][owner.name] = {{"bytes", owner.bytes}, {"bound_bytes", owner.bound_bytes}};
  }
  std::cout << fields.dump() << '\n';
}

}  // namespace

ExitCode run_status(const CommonOptions& common, const WatchArguments& watch) {
  const auto client = connect(common);
  if (!client) return report(client.error());
  return show_repeatedly(common, watch, [&] {
    const auto status = (*client)->status();
    if (!status) return report(status.error());
    const std::vector<Group> groups = groups_of(*status);
    if (common.output == OutputFormat::json) {
      print_json(groups, *status);
    } else {
      print_text(groups, *status);
    }
    return ExitCode::ok;
  });
}

}  // namespace kilokv::client
