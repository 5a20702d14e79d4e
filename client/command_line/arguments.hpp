// What the command lines of kilokv, kilokv-bank and kilokv-bench share: how values are read, and the errors for wrong
// ones. Each reader below is a CLI11 transform. It takes the text as typed, and accepts the whole text or refuses it.
// CLI11 puts the name of the flag before the error.
//
// Thread safety: pure functions, except parse_arguments(), which writes to standard output and standard error.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/command_line/cli11.hpp"

namespace kilokv::client {

// Reads `500ms`, `3s`, `10us`, `2m`, `1h` or `1.5s`; 0 needs no unit. Empty for any other text, also for a negative
// duration.
std::optional<std::int64_t> parse_duration_us(std::string_view text);
// Writes in the largest unit that is exact. parse_duration_us() reads the text back.
std::string format_duration(std::int64_t microseconds);

CLI::Validator whole_number(std::uint64_t min = 0, std::uint64_t max = std::numeric_limits<std::uint64_t>::max());
CLI::Validator signed_number();  // of 64 bits
CLI::Validator real_number(double min, double max);
CLI::Validator size_in_bytes(std::uint64_t min, std::uint64_t max);  // 4096, or with B, KiB, MiB, GiB
CLI::Validator duration(std::int64_t min_us);                        // the result is in microseconds
CLI::Validator endpoint();                                           // HOST:PORT
CLI::Validator one_of(std::vector<std::string> choices);
CLI::Validator some_text();  // not the empty text, which a script has if a variable is not set

// The command line of a program, and a command of it. A file that constructs a CLI::App compiles all of that class, and
// of its formatter and its reader of configuration files. That takes seconds. So only arguments.cpp constructs one.
std::shared_ptr<CLI::App> make_app(const std::string& description, const std::string& name);
CLI::App* add_subcommand(CLI::App* app, const std::string& name, const std::string& description);

// Prints the version: `kilokv 0.1.0 (commit 1a2b3c4d5e6f)`. Every program has this flag.
void add_version_flag(CLI::App* app);
extern const char* const kCommit;  // of git; "unknown" without git

// Adds the command `help [COMMAND]`. Requires: the app has all its other commands.
void add_help_command(CLI::App* app);

// Reads the command line. Empty: the program goes on. Otherwise the message is printed, and the result is the exit
// code. For an unknown command the message lists the known ones. For an unknown command or flag it suggests a name that
// is similar. For a wrong value it shows the flag and the value as typed. Requires: the app has the program's name.
std::optional<int> parse_arguments(CLI::App* app, int argc, const char* const* argv);

}  // namespace kilokv::client
