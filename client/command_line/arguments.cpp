// Role: see arguments.hpp.
#include "client/command_line/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iostream>

#include "client/command_line/exit_code.hpp"
#include "client/command_line/suggestion.hpp"

namespace kilokv::client {
namespace {

struct UnitName {
  std::string_view name;
  std::uint64_t factor;
};
// From the smallest unit to the largest.
constexpr std::array<UnitName, 5> kDurations = {
    {{"us", 1}, {"ms", 1'000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}}};
constexpr std::array<UnitName, 5> kSizes = {
    {{"", 1}, {"B", 1}, {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}}};

// The names of units as a sentence has them: "us, ms, s, m or h".
template <std::size_t N>
std::string names_of(const std::array<UnitName, N>& units) {
  std::string names;
  for (const UnitName& unit : units) {
    if (unit.name.empty()) continue;
    if (!names.empty()) names += &unit == &units.back() ? " or " : ", ";
    names += unit.name;
  }
  return names;
}

// In the largest unit that is exact.
std::string in_units(std::uint64_t number, const std::array<UnitName, 5>& units) {
  const UnitName* best = units.begin();
  for (const UnitName& unit : units) {
    if (number != 0 && number % unit.factor == 0) best = &unit;
  }
  return number == 0 ? "0" : std::to_string(number / best->factor) + std::string(best->name);
}

std::string duration_text() { return "a duration: a number with " + names_of(kDurations) + ", such as 500ms or 3s"; }

// The number at the start of the text, and the text after it. Empty if there is no number, or if it does not fit.
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

// A transform that replaces the text by the result of `read`. If there is none, the error says that the text is not
// `wanted`.
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

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const auto meant = nearest(word, known);
  return meant ? "; did you mean " + quoted(*meant) + "?" : "";
}

// The command that the command line chose, and its path: the program's name and the commands down to it.
struct Chosen {
  explicit Chosen(const CLI::App& root) : app(&root), path(root.get_name()) {
    while (!app->get_subcommands().empty()) {
      app = app->get_subcommands().front();
      path += " " + app->get_name();
    }
  }
  const CLI::App* app;
  std::string path;
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string known;
  const std::vector<std::string> names = command_names(app);
  for (const std::string& name : names) known += (known.empty() ? "" : " ") + name;
  if (word.empty()) return "a command is missing; known here: " + known;
  const std::string meant = did_you_mean(word, names);
  return "unknown command " + quoted(word) + meant + (meant.empty() ? "; known" : " Known") + " here: " + known;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool has_flag(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> names = flag_names(app);
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string unknown_flag(const Chosen& chosen, const std::string& word) {
  const std::string typed = word.substr(0, word.find('='));
  const std::string start = "unknown flag " + quoted(typed);
  if (has_flag(*chosen.app, typed)) {
    return start + " before the command; write it after the command: " + chosen.path + " " + typed;
  }
  const auto commands = commands_of(*chosen.app);
  const auto owner =
      std::find_if(commands.begin(), commands.end(), [&](const CLI::App* app) { return has_flag(*app, typed); });
  if (owner != commands.end()) {
    return start + " here; write it after a command: " + chosen.path + " " + (*owner)->get_name() + " " + typed;
  }
  std::vector<std::string> known;
  for (const CLI::App* app = chosen.app; app != nullptr; app = app->get_fallthrough() ? app->get_parent() : nullptr) {
    const std::vector<std::string> names = flag_names(*app);
    known.insert(known.end(), names.begin(), names.end());
  }
  const std::size_t dashes = std::min(typed.find_first_not_of('-'), typed.size());
  const std::string meant = did_you_mean("--" + typed.substr(dashes), known);  // -endpoint is meant as --endpoint
  return start + (meant.empty() ? "; " + chosen.path + " --help lists the flags" : meant);
}

// Says what is wrong if words are left over that no argument takes, or if something is missing.
std::string misfit(const CLI::App& app, const CLI::ParseError& error) {
  const Chosen chosen(app);
  const std::vector<std::string> left = app.remaining(true);
  const std::string first = left.empty() ? "" : left.front();
  if (first.size() > 1 && first.front() == '-') return unknown_flag(chosen, first);
  if (chosen.app->get_require_subcommand_min() > 0) return unknown_command(*chosen.app, first);
  const std::string advice = "; " + chosen.path + " --help says what it takes";
  return (left.empty() ? error.what() : "unexpected " + quoted(first)) + advice;
}

// `--wait 5`: without a unit, the 5 is no duration, so it is a word of its own. Says so, if it is the first word that
// nothing takes. Empty: it is not.
std::string wait_without_unit(const CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> left = app.remaining(true);
  if (left.empty() || !number<double>(left.front())) return {};
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i - 1];
    if (flag.starts_with("--wait") && flag.find('=') == std::string::npos && left.front() == argv[i]) {
      return flag + ": " + quoted(left.front()) + " is not " + duration_text();
    }
  }
  return {};
}

// Says what is wrong if a flag is given too often, or has a wrong value. CLI11's message begins with the flag.
std::string wrong_count(const CLI::App& root, const CLI::ParseError& error) {
  std::string text = error.what();
  for (const CLI::App* app = Chosen(root).app; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      const std::string name = option->get_name();
      if (text.find(name) == std::string::npos) continue;
      if (option->get_items_expected_max() == 0)
        return name + " takes no value: leave out the \"=\" and the text after it";
      if (option->count() > 1) return name + " is given " + std::to_string(option->count()) + " times: give it once";
      return name + " needs a value";
    }
  }
  return text;
}

std::string exclusion(const CLI::ExcludesError& error) {
  std::string text = error.what();
  constexpr std::string_view kWord = " excludes ";
  const std::size_t at = text.find(kWord);
  if (at != std::string::npos) text.replace(at, kWord.size(), " and ");
  return text + " exclude each other: give one of them";
}

// The words in the order that CLI11 takes: the last one first. CLI11 gives a flag with an optional value its value only
// after "=". So `--wait 5s` becomes `--wait=5s`. If the value is required, both forms mean the same.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool flags_ended = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    flags_ended = flags_ended || word == "--";
    const bool waits =
        !words.empty() && words.back().starts_with("--wait") && words.back().find('=') == std::string::npos;
    if (waits && !flags_ended && word != "0" && parse_duration_us(word)) {
      words.back().append("=").append(word);
    } else {
      words.emplace_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// The first flag that ends with its "=". CLI11 would take the next word for its value. Empty: there is none.
std::string flag_without_value(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      return std::string(word.substr(0, word.size() - 1));
  }
  return {};
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
  return in_units(static_cast<std::uint64_t>(microseconds), kDurations);
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
  const std::string example = in_units(std::clamp(std::uint64_t{1} << 20, min, max), kSizes);
  return reader("a size from " + in_units(min, kSizes) + " to " + in_units(max, kSizes) + ": a number with " +
                    names_of(kSizes) + ", such as " + example + ", or a number of bytes",
                [=](std::string_view text) -> std::optional<std::string> {
                  const auto value = parse_size(text);
                  return value && *value >= min && *value <= max ? std::optional(std::to_string(*value)) : std::nullopt;
                });
}

CLI::Validator duration(std::int64_t min_us) {
  const std::string least = min_us == 0 ? "" : "; at least " + format_duration(min_us);
  return reader(duration_text() + least, [=](std::string_view text) -> std::optional<std::string> {
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

CLI::Validator some_text() {
  return reader("a text of one character or more",
                [](std::string_view text) { return text.empty() ? std::nullopt : std::optional(std::string(text)); });
}

std::shared_ptr<CLI::App> make_app(const std::string& description, const std::string& name) {
  return std::make_shared<CLI::App>(description, name);
}

CLI::App* add_subcommand(CLI::App* app, const std::string& name, const std::string& description) {
  return app->add_subcommand(name, description);
}

const char* const kCommit = KILOKV_COMMIT;

void add_version_flag(CLI::App* app) {
  app->set_version_flag("--version", app->get_name() + " " + KILOKV_VERSION + " (commit " + kCommit + ")",
                        "print the version and the commit, and exit");
}

void add_help_command(CLI::App* app) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app->add_subcommand("help", "Print the help of the program or of a command, as --help does");
  help->add_option("command", *words, "the command, such as " + command_names(*app).front());
  help->callback([app, words] {
    const CLI::App* told = app;
    std::string path = app->get_name();
    for (const std::string& word : *words) {
      const auto commands = commands_of(*told);
      const auto found = std::find_if(commands.begin(), commands.end(), [&](auto* c) { return c->get_name() == word; });
      if (found == commands.end() && commands.empty()) throw CLI::ValidationError(path + " has no commands of its own");
      if (found == commands.end()) throw CLI::ValidationError(unknown_command(*told, word));
      told = *found;
      path += " " + word;
    }
    std::cout << told->get_formatter()->make_help(told, path, CLI::AppFormatMode::Normal);
    throw CLI::Success();
  });
}

std::optional<int> parse_arguments(CLI::App* app, int argc, const char* const* argv) {
  const auto refuse = [app](const std::string& what) {
    std::cerr << app->get_name() << ": " << what << '\n';
    return static_cast<int>(ExitCode::usage);
  };
  const auto refuse_misfit = [&](const CLI::ParseError& error) {
    const std::string wait = wait_without_unit(*app, argc, argv);
    return refuse(wait.empty() ? misfit(*app, error) : wait);
  };
  if (const std::string flag = flag_without_value(argc, argv); !flag.empty()) return refuse(flag + " needs a value");
  try {
    app->parse(words_of(argc, argv));
    return std::nullopt;
  } catch (const CLI::Success& done) {  // --help or --version, printed by exit()
    app->exit(done);
    return std::cout.flush().good() ? static_cast<int>(ExitCode::ok) : static_cast<int>(ExitCode::other);
  } catch (const CLI::RequiredError& error) {
    return refuse_misfit(error);
  } catch (const CLI::ExtrasError& error) {
    return refuse_misfit(error);
  } catch (const CLI::ArgumentMismatch& error) {
    return refuse(wrong_count(*app, error));
  } catch (const CLI::ConversionError& error) {
    return refuse(wrong_count(*app, error));
  } catch (const CLI::ExcludesError& error) {
    return refuse(exclusion(error));
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
}

}  // namespace kilokv::client
