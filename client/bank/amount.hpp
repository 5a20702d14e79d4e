// Money: a signed 64-bit number of cents. It is read and written exactly, without floating point. Thread safety: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::bank {

using Cents = std::int64_t;

// Reads `12`, `12.3`, `12.34`, `1,000.00`: digits, in groups of three if there are commas, and at most two decimals.
// Returns nothing for any other text: signs, blanks, three decimals, or more than 92,233,720,368,547,758.07.
std::optional<Cents> parse_amount(std::string_view text);
// Says to a person why `text` is not an amount: `is negative: ...`, `is more than ...`. Requires: parse_amount()
// returned nothing.
std::string amount_problem(std::string_view text);

// 123456789 -> 1,234,567.89; -5 -> -0.05.
std::string format_amount(Cents amount);

}  // namespace kilokv::bank
