#include "server/config_value.hpp"

#include <charconv>
#include <limits>
#include <span>

#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

// Splits "64KiB" into its number and the rest.
std::optional<std::uint64_t> take_number(std::string_view* text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{}) return {};
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return number;
}

std::optional<std::uint64_t> parse_with_unit(std::string_view text, std::span<const UnitName> units,
                                             std::uint64_t max) {
  const std::optional<std::uint64_t> number = take_number(&text);
  if (!number) return {};
  for (const UnitName& unit : units) {
    if (text == unit.name && *number <= max / unit.factor) return *number * unit.factor;
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const std::optional<std::uint64_t> number = take_number(&text);
  return text.empty() ? number : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (const auto plain = parse_count(text)) return plain;
  return parse_with_unit(text, kSizeUnits, std::numeric_limits<std::uint64_t>::max());
}

std::optional<DurationUs> parse_duration(std::string_view text) {
  if (text == "0") return 0;
  const auto value = parse_with_unit(text, kDurationUnits, std::numeric_limits<DurationUs>::max());
  return value ? std::optional(static_cast<DurationUs>(*value)) : std::nullopt;
}

std::optional<double> parse_share(std::string_view text) {
  double share = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, share, std::chars_format::fixed);
  const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  return plain && error == std::errc{} && rest == end ? std::optional(share) : std::nullopt;
}

std::string format_share(double share) {
  char digits[512];  // enough for the largest double, which has 309
  const auto end = std::to_chars(digits, digits + sizeof digits, share, std::chars_format::fixed).ptr;
  return {digits, end};
}

}  // namespace kilokv::server
