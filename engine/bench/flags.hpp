// Command line flags by a table: --name VALUE or --name=VALUE. Switches take no value. It is small on purpose, because
// the engine builds with a compiler and CMake and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::engine::bench {

struct Flag {
  std::string name;           // without the dashes
  std::string value;          // what --help shows for the value; empty: the flag is a switch
  std::string default_value;  // with its unit, for --help
  std::string help;
  std::function<Status(std::string_view)> set;  // a switch gets an empty string
};

// Flags of the common types. Errors: INVALID_ARGUMENT, which names the flag, what it takes, and the value that was
// given.
Flag number_flag(const std::string& name, const std::string& unit, const std::string& help, std::uint64_t low,
                 std::uint64_t high, std::uint64_t* target);
Flag share_flag(const std::string& name, const std::string& help, double* target);             // 0 to 1
Flag duration_flag(const std::string& name, const std::string& help, double* target_seconds);  // 500ms, 3s
Flag choice_flag(const std::string& name, const std::vector<std::string>& choices, const std::string& help,
                 std::string* target);
Flag text_flag(const std::string& name, const std::string& value, const std::string& help, std::string* target);
Flag switch_flag(const std::string& name, const std::string& help, bool* target);

// The same for lists of values. Commas separate the values. There is at least one, and none is there twice. --help
// shows the default as this text.
Flag number_list_flag(const std::string& name, const std::string& default_value, const std::string& help,
                      std::uint64_t low, std::uint64_t high, std::vector<std::uint64_t>* target);
Flag real_list_flag(const std::string& name, const std::string& default_value, const std::string& help, double low,
                    double high, std::vector<double>* target);
Flag choice_list_flag(const std::string& name, const std::vector<std::string>& choices,
                      const std::string& default_value, const std::string& help, std::vector<std::string>* target);

// Sets what the arguments name. `given` gets the names of the flags. Errors: INVALID_ARGUMENT for an unknown flag, a
// missing value, or what a setter refuses.
Status parse_flags(const std::vector<Flag>& flags, const std::vector<std::string>& arguments,
                   std::vector<std::string>* given = nullptr);
// One line or more for each flag, with its default.
std::string describe_flags(const std::vector<Flag>& flags);

}  // namespace kilokv::engine::bench
