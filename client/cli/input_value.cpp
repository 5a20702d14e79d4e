// Role: see input_value.hpp.
#include "client/cli/input_value.hpp"

#include <charconv>
#include <string>

namespace kilokv::client {

std::optional<std::variant<std::int64_t, std::string_view>> parse_value(std::string_view text, bool as_bytes) {
  if (as_bytes) return text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) return std::nullopt;
  if (error == std::errc() && std::to_string(value) == text) return value;
  return text;
}

}  // namespace kilokv::client
