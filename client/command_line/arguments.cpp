// Role: see arguments.hpp.
#include "client/command_line/arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iostream>

#include "client/command_line/exit_code.hpp"

namespace kilokv::client {
namespace {

struct UnitName {
  std::string_view name;
  std::uint64_t factor;
};
// From small to large.
constexpr std::array<UnitName, 5> kDurations = {
    {{"us", 1}, {"ms", 1'000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}}};
constexpr std::array<UnitName, 5> kSizes = {
    {{"", 1}, {"B", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}}};

// The number at the start of the text, and what follows it; none if there is no number, or none that fits.
template <class T>
std::optional<std::pair<T, std::string_view>> leading_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  return std::pair(number, text.substr(static_cast<std::size_t>(rest - text.data())));
}

template <class T>
std::optional<T> number(std::string_view text) {
  const auto leading = leading_number<T>(text);
  return leading && leading->second.empty() ? std::optional(leading->first) : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto leading = leading_number<std::uint64_t>(text);
  if (!leading) return std::nullopt;
  for (const UnitName& unit : kSizes) {
    if (leading->second != unit.name) continue;
    const bool fits = leading->first <= std::numeric_limits<std::uint64_t>::max() / unit.factor;
    return fits ? std::optional(leading->first * unit.factor) : std::nullopt;
  }
  return std::nullopt;
}

// A transform that replaces the text by what `read` makes of it, or says that it is not `wanted`.
CLI::Validator reader(std::string wanted, std::function<std::optional<std::string>(std::string_view)> read) {
  const auto replace = [wanted = std::move(wanted), read = std::move(read)](std::string& text) {
    const auto value = read(text);
    if (!value) return "\"" + text + "\" is not " + wanted;
    text = *value;
    return std::string();
  };
  return {replace, ""};
}

std::string quoted(const std::string& word) { return "\"" + word + "\""; }

// What is wrong where words are left over that nothing takes, or a command is missing.
std::string misfit(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* chosen = &app;
  std::string path = app.get_name();
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    path += " " + chosen->get_name();
  }
  const std::vector<std::string> left = app.remaining(true);
  const bool needs_command = chosen->get_require_subcommand_min() > 0;
  if (!left.empty() && left.front().size() > 1 && left.front().front() == '-') {
    return "unknown flag " + quoted(left.front()) + "; " + path + " --help lists the flags";
  }
  if (needs_command) {
    std::string known;
    for (const CLI::App* command : chosen->get_subcommands([](const CLI::App*) { return true; })) {
      known += (known.empty() ? "" : " ") + command->get_name();
    }
    return (left.empty() ? "a command is missing" : "unknown command " + quoted(left.front())) +
           "; known here: " + known;
  }
  if (left.empty()) return error.what();
  return "unexpected " + quoted(left.front()) + "; " + path + " --help says what it takes";
}

}  // namespace

std::optional<std::int64_t> parse_duration_us(std::string_view text) {
  double count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(count) || std::signbit(count)) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  const auto found = std::find_if(kDurations.begin(), kDurations.end(), [&](const auto& u) { return u.name == unit; });
  if (found == kDurations.end()) return count == 0 && unit.empty() ? std::optional<std::int64_t>(0) : std::nullopt;
  const double microseconds = std::round(count * static_cast<double>(found->factor));
  if (microseconds >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(microseconds);
}

std::string format_duration(std::int64_t microseconds) {
  const auto us = static_cast<std::uint64_t>(microseconds);
  const UnitName* best = kDurations.begin();
  for (const UnitName& unit : kDurations) {
    if (us != 0 && us % unit.factor == 0) best = &unit;
  }
  return us == 0 ? "0" : std::to_string(us / best->factor) + std::string(best->name);
}

CLI::Validator whole_number(std::uint64_t min, std::uint64_t max) {
  return reader("a whole number from " + std::to_string(min) + " to " + std::to_string(max),
                [=](std::string_view text) -> std::optional<std::string> {
                  const auto value = number<std::uint64_t>(text);
                  return value && *value >= min && *value <= max ? std::optional(std::to_string(*value)) : std::nullopt;
                });
}

CLI::Validator signed_number() {
  return reader("a whole number from -9223372036854775808 to 9223372036854775807",
                [](std::string_view text) -> std::optional<std::string> {
                  const auto value = number<std::int64_t>(text);
                  return value ? std::optional(std::to_string(*value)) : std::nullopt;
                });
}

CLI::Validator real_number(double min, double max) {
  std::string wanted = "a number of " + CLI::detail::to_string(min) + " or more";
  if (std::isfinite(max))
    wanted = "a number from " + CLI::detail::to_string(min) + " to " + CLI::detail::to_string(max);
  return reader(wanted, [=](std::string_view text) -> std::optional<std::string> {
    const auto value = number<double>(text);
    const bool good = value && std::isfinite(*value) && *value >= min && *value <= max;
    return good ? std::optional(std::string(text)) : std::nullopt;
  });
}

CLI::Validator size_in_bytes(std::uint64_t min, std::uint64_t max) {
  return reader("a size such as 100 or 4KiB, from " + std::to_string(min) + " to " + std::to_string(max) + " bytes",
                [=](std::string_view text) -> std::optional<std::string> {
                  const auto value = parse_size(text);
                  return value && *value >= min && *value <= max ? std::optional(std::to_string(*value)) : std::nullopt;
                });
}

CLI::Validator duration(std::int64_t min_us) {
  const std::string least = min_us == 0 ? "" : ", at least " + format_duration(min_us);
  return reader("a duration such as 500ms or 3s" + least, [=](std::string_view text) -> std::optional<std::string> {
    const auto value = parse_duration_us(text);
    return value && *value >= min_us ? std::optional(std::to_string(*value)) : std::nullopt;
  });
}

CLI::Validator endpoint() {
  return reader("HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:7070",
                [](std::string_view text) -> std::optional<std::string> {
                  const std::size_t colon = text.rfind(':');
                  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
                  const auto port = number<std::uint64_t>(text.substr(colon + 1));
                  return port && *port >= 1 && *port <= 65'535 ? std::optional(std::string(text)) : std::nullopt;
                });
}

CLI::Validator one_of(std::vector<std::string> choices) {
  std::string wanted = "one of";
  for (const std::string& choice : choices) wanted += " " + choice;
  return reader(wanted, [choices = std::move(choices)](std::string_view text) -> std::optional<std::string> {
    const bool known = std::find(choices.begin(), choices.end(), text) != choices.end();
    return known ? std::optional(std::string(text)) : std::nullopt;
  });
}

const char* const kCommit = KILOKV_COMMIT;

void add_version_flag(CLI::App* app) {
  app->set_version_flag("--version", app->get_name() + " " + KILOKV_VERSION + " (commit " + kCommit + ")",
                        "print version and commit and exit");
}

std::optional<int> parse_arguments(CLI::App* app, int argc, const char* const* argv) {
  try {
    app->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& done) {  // --help or --version, printed by exit()
    app->exit(done);
    return std::cout.flush().good() ? static_cast<int>(ExitCode::ok) : static_cast<int>(ExitCode::other);
  } catch (const CLI::RequiredError& error) {
    std::cerr << app->get_name() << ": " << misfit(*app, error) << '\n';
  } catch (const CLI::ExtrasError& error) {
    std::cerr << app->get_name() << ": " << misfit(*app, error) << '\n';
  } catch (const CLI::ParseError& error) {
    std::cerr << app->get_name() << ": " << error.what() << '\n';
  }
  return static_cast<int>(ExitCode::usage);
}

}  // namespace kilokv::client
