// Settings of strategies, as programs take them from flags, files and the environment: a name and a text. A strategy
// declares its settings beside the tuning that they fill (SettingOf). Programs know only what all of them have in
// common (StrategySetting), so that a new setting reaches flags, help, checks and documents without further edits.
//
// Thread safety: pure functions and constants.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::engine {

// Name, without dashes before it, to text. A setting that is not there has its default.
using SettingTexts = std::map<std::string, std::string, std::less<>>;

enum class SettingKind : std::uint8_t {
  number,        // low to high
  power_of_two,  // low to high, both powers of two
  on_off,        // "on" or "off"
  form,          // whatever is_form takes
};

struct StrategySetting {
  const char* name;  // in lower case, with dashes between words: --name is the flag
  const char* help;  // a plain sentence that can stand alone
  SettingKind kind = SettingKind::number;
  std::uint32_t low = 0, high = 0;
  std::uint32_t number = 0;                     // the default; of on_off: 0 or 1
  const char* form = "";                        // the default of a form
  const char* forms = "";                       // what a form takes, in words
  bool (*is_form)(std::string_view) = nullptr;  // whether a text is one
  bool for_measuring = false;                   // for benches: it costs time, and servers show nothing of it

  std::string default_text() const;
  std::string takes() const;  // in words
  // INVALID_ARGUMENT naming the setting, what it takes, the text, and the flag.
  [[nodiscard]] Status check(std::string_view text) const;
};

// The same with what it sets.
template <class Tuning>
struct SettingOf : StrategySetting {
  void (*assign)(std::string_view text, Tuning* tuning) = nullptr;  // requires: check(text)
};

// The number that the text says. Requires: check() accepts the text.
std::uint32_t setting_number(std::string_view text);

namespace detail {
template <class Member>
struct MemberOf;
template <class Value, class Owner>
struct MemberOf<Value Owner::*> {
  using Tuning = Owner;
};
}  // namespace detail

// Member: of the tuning, such as &KiloTuning::units. Its initial value is the default.
template <auto Member>
constexpr auto number_setting(const char* name, const char* help, std::uint32_t low, std::uint32_t high) {
  using Tuning = typename detail::MemberOf<decltype(Member)>::Tuning;
  const StrategySetting setting{name, help, SettingKind::number, low, high, Tuning{}.*Member};
  return SettingOf<Tuning>{setting, [](std::string_view text, Tuning* to) { to->*Member = setting_number(text); }};
}

template <auto Member>
constexpr auto power_of_two_setting(const char* name, const char* help, std::uint32_t low, std::uint32_t high) {
  auto setting = number_setting<Member>(name, help, low, high);
  setting.kind = SettingKind::power_of_two;
  return setting;
}

template <auto Member>
constexpr auto switch_setting(const char* name, const char* help) {
  using Tuning = typename detail::MemberOf<decltype(Member)>::Tuning;
  const StrategySetting setting{name, help, SettingKind::on_off, 0, 1, Tuning{}.*Member ? 1u : 0u};
  return SettingOf<Tuning>{setting, [](std::string_view text, Tuning* to) { to->*Member = text == "on"; }};
}

// What setting and tuning have no common member for.
template <class Tuning>
constexpr SettingOf<Tuning> form_setting(const char* name, const char* help, const char* otherwise, const char* forms,
                                         bool (*is_form)(std::string_view),
                                         void (*assign)(std::string_view text, Tuning* to)) {
  return {{name, help, SettingKind::form, 0, 0, 0, otherwise, forms, is_form}, assign};
}

// Fills the tuning with the texts that are there. Requires: check() of each.
template <class Tuning, class Settings>
void assign_settings(const SettingTexts& texts, const Settings& settings, Tuning* tuning) {
  for (const SettingOf<Tuning>& setting : settings) {
    if (const auto found = texts.find(setting.name); found != texts.end()) setting.assign(found->second, tuning);
  }
}

}  // namespace kilokv::engine
