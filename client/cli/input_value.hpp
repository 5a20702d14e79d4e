// The value that a written text stands for: an argument of `put`, or a cell of a CSV file. Thread safety: a pure
// function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace kilokv::client {

// An integer only if the text is written as integers are printed, so that 007 and +5 keep their characters. Bytes
// otherwise, and always with `as_bytes`. Empty: it is an integer outside the range.
std::optional<std::variant<std::int64_t, std::string_view>> parse_value(std::string_view text, bool as_bytes);

}  // namespace kilokv::client
