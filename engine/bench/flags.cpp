#include "engine/bench/flags.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <system_error>

namespace kilokv::engine::bench {

namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Status invalid(const std::string& name, const std::string& takes, std::string_view met) {
  return Status::invalid({name, takes, std::string(met), "--" + name});
}

std::optional<double> parse_seconds(std::string_view text) {
  const bool in_milliseconds = text.ends_with("ms");
  if (!in_milliseconds && !text.ends_with("s")) return std::nullopt;
  text.remove_suffix(in_milliseconds ? 2 : 1);
  const auto number = parse_number<double>(text);
  if (!number || !std::isfinite(*number) || *number <= 0) return std::nullopt;
  return in_milliseconds ? *number / 1000 : *number;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : separator) + word;
  return all;
}

// Returns at least one part. It may be empty.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// Appends `value` to the list. A value that is there already is refused, because it would only be measured twice.
template <class T, class Value>
Status add_once(const std::string& name, std::string_view met, const Value& value, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), value) != list->end()) return invalid(name, "each once", met);
  list->emplace_back(value);
  return {};
}

template <class T>
std::function<Status(std::string_view)> list_setter(const std::string& name, const std::string& takes, T low, T high,
                                                    std::vector<T>* target) {
  return [=](std::string_view text) {
    std::vector<T> numbers;
    for (const std::string_view part : split(text)) {
      const auto number = parse_number<T>(part);
      if (!number || !(*number >= low && *number <= high)) return invalid(name, takes, part);
      if (Status status = add_once(name, part, *number, &numbers); !status.ok()) return status;
    }
    *target = numbers;
    return Status();
  };
}

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

}  // namespace

Flag number_flag(const std::string& name, const std::string& unit, const std::string& help, std::uint64_t low,
                 std::uint64_t high, std::uint64_t* target) {
  const std::string of_unit = unit.empty() ? "" : " " + unit;
  const std::string takes = std::to_string(low) + " to " + std::to_string(high) + of_unit;
  return {name, "N", std::to_string(*target) + of_unit, help, [=](std::string_view text) {
            const auto number = parse_number<std::uint64_t>(text);
            if (!number || *number < low || *number > high) return invalid(name, takes, text);
            *target = *number;
            return Status();
          }};
}

Flag share_flag(const std::string& name, const std::string& help, double* target) {
  return {name, "SHARE", text_of(*target), help, [=](std::string_view text) {
            const auto number = parse_number<double>(text);
            if (!number || !(*number >= 0 && *number <= 1)) return invalid(name, "0 to 1", text);
            *target = *number;
            return Status();
          }};
}

Flag duration_flag(const std::string& name, const std::string& help, double* target_seconds) {
  return {name, "TIME", text_of(*target_seconds) + "s", help, [=](std::string_view text) {
            const auto seconds = parse_seconds(text);
            if (!seconds) return invalid(name, "a duration such as 500ms or 3s", text);
            *target_seconds = *seconds;
            return Status();
          }};
}

Flag choice_flag(const std::string& name, const std::vector<std::string>& choices, const std::string& help,
                 std::string* target) {
  return {name, joined(choices, "|"), *target, help, [=](std::string_view text) {
            if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
              return invalid(name, joined(choices, "|"), text);
            }
            *target = text;
            return Status();
          }};
}

Flag text_flag(const std::string& name, const std::string& value, const std::string& help, std::string* target) {
  return {name, value, target->empty() ? "none" : *target, help, [=](std::string_view text) {
            if (text.empty()) return invalid(name, value, "nothing");
            *target = text;
            return Status();
          }};
}

Flag number_list_flag(const std::string& name, const std::string& default_value, const std::string& help,
                      std::uint64_t low, std::uint64_t high, std::vector<std::uint64_t>* target) {
  const std::string takes = std::to_string(low) + " to " + std::to_string(high) + ", separated by commas";
  return {name, "N,N", default_value, help, list_setter<std::uint64_t>(name, takes, low, high, target)};
}

Flag real_list_flag(const std::string& name, const std::string& default_value, const std::string& help, double low,
                    double high, std::vector<double>* target) {
  const std::string takes = text_of(low) + " to " + text_of(high) + ", separated by commas";
  return {name, "X,X", default_value, help, list_setter<double>(name, takes, low, high, target)};
}

Flag choice_list_flag(const std::string& name, const std::vector<std::string>& choices,
                      const std::string& default_value, const std::string& help, std::vector<std::string>* target) {
  return {name, "NAME,NAME", default_value, help + ": " + joined(choices, ", "), [=](std::string_view text) {
            std::vector<std::string> chosen;
            for (const std::string_view part : split(text)) {
              if (std::find(choices.begin(), choices.end(), part) == choices.end()) {
                return invalid(name, joined(choices, ", "), part);
              }
              if (Status status = add_once(name, part, part, &chosen); !status.ok()) return status;
            }
            *target = chosen;
            return Status();
          }};
}

Flag switch_flag(const std::string& name, const std::string& help, bool* target) {
  return {name, "", "off", help, [=](std::string_view) {
            *target = true;
            return Status();
          }};
}

Status parse_flags(const std::vector<Flag>& flags, const std::vector<std::string>& arguments,
                   std::vector<std::string>* given) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const Flag* flag = nullptr;
    for (const Flag& candidate : flags) {
      if (argument.substr(0, equals) == "--" + candidate.name) flag = &candidate;
    }
    if (flag == nullptr) {
      return {StatusCode::invalid_argument, "unknown flag " + arguments[i] + "; --help lists the flags"};
    }
    const bool is_switch = flag->value.empty(), has_value = equals != std::string_view::npos;
    if (is_switch && has_value) return invalid(flag->name, "no value", argument.substr(equals + 1));
    if (!is_switch && !has_value && i + 1 == arguments.size()) return invalid(flag->name, flag->value, "nothing");
    std::string_view value;
    if (has_value) {
      value = argument.substr(equals + 1);
    } else if (!is_switch) {
      value = arguments[++i];
    }
    if (Status status = flag->set(value); !status.ok()) return status;
    if (given != nullptr) given->push_back(flag->name);
  }
  return {};
}

std::string describe_flags(const std::vector<Flag>& flags) {
  constexpr std::size_t kHelpColumn = 24;
  std::string text;
  for (const Flag& flag : flags) {
    std::string left = "  --" + flag.name + (flag.value.empty() ? "" : " " + flag.value);
    left.resize(std::max(kHelpColumn, left.size() + 2), ' ');
    text += left + flag.help + " (default " + flag.default_value + ")\n";
  }
  return text;
}

}  // namespace kilokv::engine::bench
