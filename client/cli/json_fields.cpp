// Role: see json_fields.hpp.
#include "client/cli/json_fields.hpp"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "client/command_line/suggestion.hpp"

namespace kilokv::client::fields {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all.append(all.empty() ? "" : " ").append(name);
  return all;
}

// nlohmann writes a value by recursion. So a deep one would overflow the stack.
bool is_deeper(const nlohmann::json& value, int depth) {
  if (!value.is_structured()) return false;
  const auto is_child_deeper = [depth](const nlohmann::json& child) { return is_deeper(child, depth - 1); };
  return depth == 0 || std::any_of(value.begin(), value.end(), is_child_deeper);
}

}  // namespace

void fail(const std::string& what) { throw std::invalid_argument(what); }

nlohmann::json parse(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::vector<std::string>> names;  // of the objects that are open
  std::optional<std::string> doubled;
  nlohmann::json value = nlohmann::json::parse(text, [&](int, Event event, const nlohmann::json& parsed) {
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event != Event::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    std::vector<std::string>& own = names.back();
    if (std::find(own.begin(), own.end(), name) != own.end()) doubled = name;
    own.push_back(name);
    return true;
  });
  if (doubled) fail("\"" + *doubled + "\" is there twice");
  return value;
}

std::string shown(const nlohmann::json& field) {
  constexpr std::size_t kBytesMax = 60;
  constexpr int kDepthMax = 10;
  if (is_deeper(field, kDepthMax)) return "a value with more than " + std::to_string(kDepthMax) + " levels";
  const std::string text = field.dump(-1, ' ', true);  // ASCII, so that it can be cut anywhere
  return text.size() <= kBytesMax ? text : text.substr(0, kBytesMax) + "...";
}

const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) fail(std::string("\"") + name + "\" is missing");
  return *found;
}

void check_names(const nlohmann::json& object, const std::vector<std::string>& known) {
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const auto meant = nearest(item.key(), known);
    fail("unknown field \"" + item.key() + "\"; " +
         (meant ? "did you mean \"" + *meant + "\"?" : "known here: " + joined(known)));
  }
}

std::string bytes(const nlohmann::json& field, const char* name) {
  if (field.is_string()) return field.get<std::string>();
  std::string decoded;
  if (field.is_object() && field.contains("b64") && field["b64"].is_string() &&
      absl::Base64Unescape(field["b64"].get<std::string>(), &decoded)) {
    return decoded;
  }
  fail(std::string("\"") + name + "\" is neither a string nor {\"b64\": \"...\"} with base64 in it: " + shown(field));
}

}  // namespace kilokv::client::fields
