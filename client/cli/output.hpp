// What kilokv prints: values and pairs as text or JSON lines on standard output, errors on standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/command_line/exit_code.hpp"
#include "kilokv/client.hpp"
#include "kilokv/results.hpp"

namespace kilokv::client {

enum class OutputFormat : std::uint8_t { text, json };

// Integers as digits; bytes in double quotes, escaped as in C; absent as "(absent)".
std::string value_text(const ValueView& value);
// Printable keys as they are, others escaped as in C.
std::string key_text(std::string_view key);
// {"key": ..., "value": ..., "version": ...}; version null: the transaction's own write.
std::string read_json(std::string_view key, const ValueView& value, std::optional<std::uint64_t> version);

ValueView view_of(const Pair& pair);

// What happened, where, and what to do; returns the code to exit with.
ExitCode report(const Error& error);
// A transaction that did not commit.
ExitCode report(const ResultView& result);

}  // namespace kilokv::client
