#include "server/log_format.hpp"

#include <spdlog/pattern_formatter.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace kilokv::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTime[] = "%Y-%m-%dT%H:%M:%S.%fZ";

// Values of these fields are names, whatever they look like.
constexpr std::array<std::string_view, 12> kNames = {"token",   "new_token",    "replaced_token", "removed_token",
                                                     "session", "last_session", "trace",          "span",
                                                     "commit",  "version",      "user",           "last_user"};

// The end of the value that begins at `begin`: the next blank outside of double quotes.
std::size_t end_of_value(std::string_view line, std::size_t begin) {
  bool is_quoted = false;
  std::size_t at = begin;
  for (; at < line.size() && (is_quoted || line[at] != ' '); ++at) {
    if (is_quoted && line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      is_quoted = !is_quoted;
    }
  }
  return std::min(at, line.size());
}

std::optional<LogField> field_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return {};
  const auto is_of_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const std::string_view name = word.substr(0, equals);
  if (!std::all_of(name.begin(), name.end(), is_of_name)) return {};
  return LogField{name, word.substr(equals + 1)};
}

// The text in the quotes. Empty if the value is not one text in double quotes.
std::optional<std::string> unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return {};
  value = value.substr(1, value.size() - 2);
  std::string text;
  for (std::size_t at = 0; at < value.size(); ++at) {
    const char c = value[at];
    if (c == '"') return {};
    if (c != '\\') {
      text += c;
      continue;
    }
    if (++at == value.size()) return {};
    unsigned byte = 0;
    switch (value[at]) {
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'x':
        if (at + 2 >= value.size() || std::from_chars(&value[at + 1], &value[at + 1] + 2, byte, 16).ec != std::errc()) {
          return {};
        }
        text += static_cast<char>(byte);
        at += 2;
        break;
      default: text += value[at];
    }
  }
  return text;
}

// Whether it is written as JSON writes a number without an exponent.
bool is_number(std::string_view value) {
  if (value.starts_with('-')) value.remove_prefix(1);
  const std::size_t point = value.find('.');
  const std::string_view whole = value.substr(0, point);
  const auto are_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!are_digits(whole) || (whole.size() > 1 && whole.front() == '0')) return false;
  return point == std::string_view::npos || are_digits(value.substr(point + 1));
}

template <class Number>
std::optional<Number> read_number(std::string_view value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() ? std::optional(number) : std::nullopt;
}

Json value_of(const LogField& field) {
  const std::string_view value = field.value;
  if (std::optional<std::string> text = unquoted(value)) return std::move(*text);
  if (std::find(kNames.begin(), kNames.end(), field.name) != kNames.end()) return std::string(value);
  if (value == "true" || value == "false") return value == "true";
  if (is_number(value)) {
    if (const auto number = read_number<std::uint64_t>(value)) return *number;
    if (const auto number = read_number<std::int64_t>(value)) return *number;
    if (const auto number = read_number<double>(value)) return *number;
  }
  return std::string(value);
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const spdlog::string_view_t level = spdlog::level::to_string_view(message.level);
    const std::string line = log_object({time.data(), time.size()}, {level.data(), level.size()},
                                        {message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }

 private:
  spdlog::pattern_formatter time_{kTime, spdlog::pattern_time_type::utc, ""};
};

}  // namespace

LogLine parse_log_line(std::string_view line) {
  LogLine parsed;
  const std::size_t first_end = std::min(line.find('\n'), line.size());
  const std::string_view first = line.substr(0, first_end);
  if (first_end < line.size()) parsed.text = line.substr(first_end + 1);
  // The fields are the last words that are fields. So a new word that is none ends those before it.
  std::size_t message_end = first.size();
  for (std::size_t begin = 0; begin < first.size();) {
    const std::size_t end = end_of_value(first, begin);
    if (const std::optional<LogField> field = field_of(first.substr(begin, end - begin))) {
      if (parsed.fields.empty()) message_end = begin == 0 ? 0 : begin - 1;
      parsed.fields.push_back(*field);
    } else {
      parsed.fields.clear();
      message_end = first.size();
    }
    begin = end + 1;
  }
  parsed.message = first.substr(0, message_end);
  return parsed;
}

std::string log_object(std::string_view time, std::string_view level, std::string_view line) {
  const LogLine parsed = parse_log_line(line);
  Json object;
  const auto add = [&object](std::string_view name, Json value) {
    std::string unique(name);
    while (object.contains(unique)) unique += '_';  // no value hides another one
    object[unique] = std::move(value);
  };
  add("time", time);
  add("level", level);
  add("message", parsed.message);
  for (const LogField& field : parsed.fields) add(field.name, value_of(field));
  if (!parsed.text.empty()) add("text", parsed.text);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::unique_ptr<spdlog::formatter> make_log_formatter(const std::string& format) {
  if (format == "json") return std::make_unique<JsonFormatter>();
  return std::make_unique<spdlog::pattern_formatter>(std::string(kTime) + " %^%l%$ %v", spdlog::pattern_time_type::utc);
}

}  // namespace kilokv::server
