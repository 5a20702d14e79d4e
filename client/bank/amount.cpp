// Role: see amount.hpp.
#include "client/bank/amount.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/measure/text.hpp"

namespace kilokv::bank {
namespace {

constexpr std::uint64_t kCentsMax = std::numeric_limits<Cents>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Multiplies by ten and adds the digit. False if the result does not fit.
bool push_digit(std::uint64_t* number, char digit) {
  const auto value = static_cast<std::uint64_t>(digit - '0');
  if (*number > (kCentsMax - value) / 10) return false;
  *number = *number * 10 + value;
  return true;
}

// The whole part without its commas; nothing if a group does not have three digits.
std::optional<std::string> without_commas(std::string_view whole) {
  if (whole.find(',') == std::string_view::npos) return std::string(whole);
  std::string digits;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool comma_place = (whole.size() - i) % 4 == 0;
    if ((whole[i] == ',') != comma_place) return std::nullopt;
    if (!comma_place) digits += whole[i];
  }
  if (whole.front() == ',') return std::nullopt;
  return digits;
}

// All digits, with those of the cents last; nothing if `text` does not have the form of an amount.
std::optional<std::string> digits_of(std::string_view text) {
  const std::size_t point = text.find('.');
  const auto whole = without_commas(text.substr(0, point));
  if (!whole || whole->empty()) return std::nullopt;
  std::string decimals(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (point != std::string_view::npos && (decimals.empty() || decimals.size() > 2)) return std::nullopt;
  decimals.resize(2, '0');
  std::string digits = *whole + decimals;
  return std::all_of(digits.begin(), digits.end(), is_digit) ? std::optional(std::move(digits)) : std::nullopt;
}

}  // namespace

std::optional<Cents> parse_amount(std::string_view text) {
  const auto digits = digits_of(text);
  if (!digits) return std::nullopt;
  std::uint64_t cents = 0;
  for (const char c : *digits) {
    if (!push_digit(&cents, c)) return std::nullopt;
  }
  return static_cast<Cents>(cents);
}

std::string amount_problem(std::string_view text) {
  if (digits_of(text)) return "is more than the largest amount, " + format_amount(kCentsMax);
  if (text.starts_with('-') && digits_of(text.substr(1))) return "is negative: an amount is 0.00 or more";
  return "is not an amount such as 12.34";
}

std::string format_amount(Cents amount) {
  const bool negative = amount < 0;
  const auto cents =
      negative ? std::uint64_t{0} - static_cast<std::uint64_t>(amount) : static_cast<std::uint64_t>(amount);
  const std::uint64_t rest = cents % 100;
  return (negative ? "-" : "") + bench::grouped(cents / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest);
}

}  // namespace kilokv::bank
