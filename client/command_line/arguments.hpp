// What the command lines of kilokv, kilokv-bank and kilokv-bench have in common: how values are read, and what is said
// of a wrong one. Each reader below is a CLI11 transform: it takes the text as typed and refuses all of it or nothing,
// and CLI11 puts the name of the flag before what is wrong.
//
// Thread safety: pure functions, but for parse_arguments(), which writes to standard output and standard error.
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

// `500ms`, `3s`, `10us`, `2m`, `1h`, `1.5s`; 0 needs no unit. None if it is anything else, or negative.
std::optional<std::int64_t> parse_duration_us(std::string_view text);
// In the largest unit that is exact, as parse_duration_us() reads it.
std::string format_duration(std::int64_t microseconds);

CLI::Validator whole_number(std::uint64_t min = 0, std::uint64_t max = std::numeric_limits<std::uint64_t>::max());
CLI::Validator signed_number();  // of 64 bits
CLI::Validator real_number(double min, double max);
CLI::Validator size_in_bytes(std::uint64_t min, std::uint64_t max);  // 4096, or with B, KiB, MiB, GiB
CLI::Validator duration(std::int64_t min_us);                        // leaves microseconds
CLI::Validator endpoint();                                           // HOST:PORT
CLI::Validator one_of(std::vector<std::string> choices);

// The command line of a program, and a command of it. A file that constructs a CLI::App compiles all of that class, and
// of its formatter and its reader of configuration files, for seconds. So only arguments.cpp does.
std::shared_ptr<CLI::App> make_app(const std::string& description, const std::string& name);
CLI::App* add_subcommand(CLI::App* app, const std::string& name, const std::string& description);

// Shown by --version: `kilokv 0.1.0 (commit 1a2b3c4d5e6f)`. Every program has this flag.
void add_version_flag(CLI::App* app);
extern const char* const kCommit;  // of git; "unknown" without it

// The command `help`, and `help COMMAND`. Requires: the app has all its other commands.
void add_help_command(CLI::App* app);

// Reads the command line. None: go on; else the code to exit with, and all is said. The message names what is wrong:
// the unknown command with those that are known, the unknown flag, each with the name that may have been meant, or the
// flag and its value as typed.
// Requires: the app has the program's name.
std::optional<int> parse_arguments(CLI::App* app, int argc, const char* const* argv);

}  // namespace kilokv::client
