#include "server/config_file.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/config_value.hpp"

namespace kilokv::server {
namespace {

Status invalid(std::string message) { return Status(StatusCode::invalid_argument, std::move(message)); }

std::string place(const std::string& path, const toml::source_position& at) {
  return path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": ";
}

std::string trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// For a message of one line: replaces every character that is not printable ASCII by a question mark.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

bool is_key(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

struct Line {
  std::string key, value;
};

// Empty if the line does not have the form "key = value". The value is the rest of the line, a comment included.
std::optional<Line> parse_line(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {};
  Line line{trimmed(std::string_view(text).substr(0, equals)), trimmed(std::string_view(text).substr(equals + 1))};
  return is_key(line.key) ? std::optional(line) : std::nullopt;
}

// Says what is wrong in the line where the parser stopped. It looks at the line itself, because the parser's messages
// mislead: for missing quotes they mention integers and control characters.
std::string explain(const std::vector<std::string>& lines, std::size_t number) {
  const std::string text = number < lines.size() ? lines[number] : std::string();
  const std::optional<Line> line = parse_line(text);
  if (!line) {
    return '"' + printable(trimmed(text)) + "\" does not have the form key = value; a key is a flag without its dashes";
  }
  for (std::size_t earlier = 0; earlier < number; ++earlier) {
    const std::optional<Line> other = parse_line(lines[earlier]);
    if (other && other->key == line->key) {
      return line->key + " is set twice; it is first set in line " + std::to_string(earlier + 1);
    }
  }
  const std::string value = printable(trimmed(std::string_view(line->value).substr(0, line->value.find('#'))));
  if (value.empty()) return line->key + " has no value; write a number, or a text in quotes";
  if (value.front() == '"' || value.front() == '\'') {
    return line->key + ": the text " + value +
           " cannot be read; a text has a quote before and after it in one line, and a backslash in it is written "
           "twice";
  }
  return line->key + " is " + value + ", which is neither a number nor a text in quotes; a text is written as " +
         line->key + " = \"" + value + '"';
}

Result<std::string> contents(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid("--config: " + path + " is a directory, not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    return invalid("--config: cannot read " + path + ": " + std::generic_category().message(errno));
  return text;
}

// Empty if the value is not a string, a number, true or false.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto share = node.value_exact<double>()) return format_share(*share);
  if (const auto is_on = node.value_exact<bool>()) return *is_on ? "on" : "off";
  return {};
}

}  // namespace

Result<std::vector<FileValue>> read_config_file(const std::string& path) {
  const Result<std::string> text = contents(path);
  if (!text.ok()) return text.status();
  toml::table table;
  try {
    table = toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    std::vector<std::string> lines;
    std::istringstream stream(*text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    const toml::source_position at = error.source().begin;
    return invalid(place(path, at) + explain(lines, at.line == 0 ? 0 : at.line - 1));
  }
  std::vector<FileValue> values;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string source = place(path, key.source().begin) + name;
    if (node.is_table() || node.is_array_of_tables()) {
      return invalid(source + " is a table; this file must have no tables: each setting is a line key = value");
    }
    const std::optional<std::string> value = text_of(node);
    if (!value) return invalid(source + ": the value must be a string, a number, or true or false");
    values.push_back({name, *value, source});
  }
  return values;
}

}  // namespace kilokv::server
