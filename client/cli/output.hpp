// What kilokv prints: values and pairs as text or as JSON lines on standard output, and errors on standard error.
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

// An integer as digits, bytes in double quotes with the escapes of C, and an absent value as "(absent)".
std::string value_text(const ValueView& value);
// A printable key as it is, another key with the escapes of C.
std::string key_text(std::string_view key);
// {"key": ..., "value": ..., "version": ...}. A null version means the transaction's own write.
// `expires_at_us`: when the key expires; 0: never, or not known.
std::string read_json(std::string_view key, const ValueView& value, std::optional<std::uint64_t> version,
                      std::int64_t expires_at_us = 0);

ValueView view_of(const Pair& pair);

// A time in UTC, such as 2026-01-31T12:00:00.123Z. `decimals`: 1 to 6, those of the seconds.
std::string utc_text(std::int64_t unix_us, int decimals);

// Prints what happened, where, and what to do. Returns the exit code.
ExitCode report(const Error& error);
// What report() tells as the value of --timeout. Requires: it is called before any other thread runs.
void tell_timeouts(const ClientOptions& server, std::uint64_t timeout_us);
// The same for a transaction that did not commit.
ExitCode report(const ResultView& result);

}  // namespace kilokv::client
