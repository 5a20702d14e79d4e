// Command line flags by a table: --name VALUE or --name=VALUE; switches take no value. Small on purpose: the engine
// builds with nothing but a compiler.
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
  std::string value;          // what stands for the value in --help; empty: a switch
  std::string default_value;  // with its unit, for --help
  std::string help;
  std::function<Status(std::string_view)> set;  // of a switch: called with an empty string
};

// Setters for the common types. Errors: INVALID_ARGUMENT naming the flag, what it takes and the value met.
Flag number_flag(const std::string& name, const std::string& unit, const std::string& help, std::uint64_t low,
                 std::uint64_t high, std::uint64_t* target);
Flag share_flag(const std::string& name, const std::string& help, double* target);             // 0 to 1
Flag duration_flag(const std::string& name, const std::string& help, double* target_seconds);  // 500ms, 3s
Flag choice_flag(const std::string& name, const std::vector<std::string>& choices, const std::string& help,
                 std::string* target);
Flag text_flag(const std::string& name, const std::string& value, const std::string& help, std::string* target);
Flag switch_flag(const std::string& name, const std::string& help, bool* target);

// The same for lists: values separated by commas, at least one, none twice. The default that --help shows is given as
// text.
Flag number_list_flag(const std::string& name, const std::string& default_value, const std::string& help,
                      std::uint64_t low, std::uint64_t high, std::vector<std::uint64_t>* target);
Flag real_list_flag(const std::string& name, const std::string& default_value, const std::string& help, double low,
                    double high, std::vector<double>* target);
Flag choice_list_flag(const std::string& name, const std::vector<std::string>& choices,
                      const std::string& default_value, const std::string& help, std::vector<std::string>* target);

// Sets what the arguments name; `given` gets the names. Errors: INVALID_ARGUMENT for an unknown flag, a missing value,
// or what a setter says.
Status parse_flags(const std::vector<Flag>& flags, const std::vector<std::string>& arguments,
                   std::vector<std::string>* given = nullptr);
// One line or more for each flag, with its default.
std::string describe_flags(const std::vector<Flag>& flags);

}  // namespace kilokv::engine::bench
