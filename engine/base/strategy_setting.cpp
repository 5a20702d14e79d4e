#include "engine/base/strategy_setting.hpp"

#include <charconv>
#include <optional>

namespace kilokv::engine {
namespace {

// A message lists at most this many powers of two. If there are more, it names only the largest.
constexpr int kListedMax = 6;

std::optional<std::uint32_t> parse(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_taken(const StrategySetting& setting, std::string_view text) {
  if (setting.kind == SettingKind::form) return setting.is_form(text);
  if (setting.kind == SettingKind::on_off) return text == "on" || text == "off";
  const auto number = parse(text);
  if (!number || *number < setting.low || *number > setting.high) return false;
  return setting.kind == SettingKind::number || std::has_single_bit(*number);
}

std::string powers_of_two(std::uint32_t low, std::uint32_t high) {
  if (std::bit_width(high) - std::bit_width(low) >= kListedMax) return "a power of two to " + std::to_string(high);
  std::string text = std::to_string(low);
  for (std::uint64_t power = 2 * std::uint64_t{low}; power <= high; power *= 2) {
    text += (power == high ? " or " : ", ") + std::to_string(power);
  }
  return text;
}

}  // namespace

std::string StrategySetting::default_text() const {
  if (kind == SettingKind::form) return form;
  if (kind == SettingKind::on_off) return number != 0 ? "on" : "off";
  return std::to_string(number);
}

std::string StrategySetting::takes() const {
  switch (kind) {
    case SettingKind::number: return std::to_string(low) + " to " + std::to_string(high);
    case SettingKind::power_of_two: return powers_of_two(low, high);
    case SettingKind::on_off: return "on or off";
    case SettingKind::form: break;
  }
  return forms;
}

Status StrategySetting::check(std::string_view text) const {
  if (is_taken(*this, text)) return {};
  return Status::invalid({name, takes(), std::string(text), std::string("--") + name});
}

std::string StrategySetting::plain(std::string_view text) const {
  const bool is_number = kind == SettingKind::number || kind == SettingKind::power_of_two;
  return is_number ? std::to_string(setting_number(text)) : std::string(text);
}

std::uint32_t setting_number(std::string_view text) { return parse(text).value_or(0); }

}  // namespace kilokv::engine
