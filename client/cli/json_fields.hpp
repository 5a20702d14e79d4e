// The fields of JSON objects that kilokv reads: transactions, and the pairs of an import. A field that is wrong throws
// std::invalid_argument, and its text says what is wrong. The readers catch it: no exception leaves them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::client::fields {

[[noreturn]] void fail(const std::string& what);

// The value that the text is. nlohmann would take the last of two fields with one name, and nobody would notice.
// Also throws what nlohmann::json::parse() throws.
nlohmann::json parse(std::string_view text);

// A value of the input, as messages show it.
std::string shown(const nlohmann::json& field);

const nlohmann::json& member(const nlohmann::json& object, const char* name);

// A misspelt field must not count as an absent one. With "when_flase", for example, a WAIT guard would become a FAIL
// guard.
void check_names(const nlohmann::json& object, const std::vector<std::string>& known);

// Bytes: a string, or {"b64": "..."}.
std::string bytes(const nlohmann::json& field, const char* name);

template <class T>
T integer(const nlohmann::json& field, const char* name) {
  if (field.is_number_unsigned()) {
    const auto value = field.get<std::uint64_t>();
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
  } else if (field.is_number_integer()) {
    const auto value = field.get<std::int64_t>();
    if (std::numeric_limits<T>::is_signed && value >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
      return static_cast<T>(value);
    }
  }
  fail(std::string("\"") + name + "\" is not an integer from " + std::to_string(std::numeric_limits<T>::min()) +
       " to " + std::to_string(std::numeric_limits<T>::max()) + ": " + shown(field));
}

}  // namespace kilokv::client::fields
