// Settings of strategies. A setting is a name and a text, and programs take it from flags, files and the environment. A
// strategy declares its settings beside its tuning, the struct that the settings fill (SettingOf). Programs know only
// what all settings have in common (StrategySetting). So a new setting reaches flags, help, checks and documents
// without further edits.
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

// From the name of a setting, without leading dashes, to its text. A setting that is missing here has its default.
using SettingTexts = std::map<std::string, std::string, std::less<>>;

enum class SettingKind : std::uint8_t {
  number,        // from low to high
  power_of_two,  // from low to high; both are powers of two
  on_off,        // "on" or "off"
  form,          // every text that is_form accepts
};

struct StrategySetting {
  const char* name;  // in lower case, with dashes between words; the flag is --name
  const char* help;  // one plain sentence that needs no other
  SettingKind kind = SettingKind::number;
  std::uint32_t low = 0, high = 0;
  std::uint32_t number = 0;                     // the default; for on_off: 0 or 1
  const char* form = "";                        // the default of a setting of kind `form`
  const char* forms = "";                       // which texts is_form accepts, in words
  bool (*is_form)(std::string_view) = nullptr;  // whether the text is accepted; for the kind `form`
  bool for_measuring = false;                   // only for benches: it costs time, and servers do not show it

  std::string default_text() const;
  std::string takes() const;  // which texts it accepts, in words
  // The usual form of the text, so that texts can be compared: 1 for 01. Requires: check() accepts the text.
  std::string plain(std::string_view text) const;
  // INVALID_ARGUMENT if the setting does not accept the text. The message names the setting, what it accepts, the text,
  // and the flag.
  [[nodiscard]] Status check(std::string_view text) const;
};

// A setting, and how it fills the tuning.
template <class Tuning>
struct SettingOf : StrategySetting {
  void (*assign)(std::string_view text, Tuning* tuning) = nullptr;  // requires: check(text) is OK
};

// The number in the text. Requires: check() accepts the text.
std::uint32_t setting_number(std::string_view text);

namespace detail {
template <class Member>
struct MemberOf;
template <class Value, class Owner>
struct MemberOf<Value Owner::*> {
  using Tuning = Owner;
};
}  // namespace detail

// A number. `Member` is the member of the tuning that it sets, such as &KiloTuning::units. The initial value of the
// member is the default.
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

// A setting that is not simply one member of the tuning. `otherwise`: the default.
template <class Tuning>
constexpr SettingOf<Tuning> form_setting(const char* name, const char* help, const char* otherwise, const char* forms,
                                         bool (*is_form)(std::string_view),
                                         void (*assign)(std::string_view text, Tuning* to)) {
  return {{name, help, SettingKind::form, 0, 0, 0, otherwise, forms, is_form}, assign};
}

// Fills the tuning from the texts. A setting without a text leaves its member as it is. Requires: check() accepts each
// text.
template <class Tuning, class Settings>
void assign_settings(const SettingTexts& texts, const Settings& settings, Tuning* tuning) {
  for (const SettingOf<Tuning>& setting : settings) {
    if (const auto found = texts.find(setting.name); found != texts.end()) setting.assign(found->second, tuning);
  }
}

}  // namespace kilokv::engine
