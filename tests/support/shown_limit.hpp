// Checks a refusal: its reason must name what is full, and its message must show the numbers that were compared. The
// actual value is beyond the limit, by the numbers that the reader sees. Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv {

// All whole numbers of the text, in order.
inline std::vector<std::uint64_t> numbers_in(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  bool open = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !open) numbers.push_back(0);
    if (is_digit) numbers.back() = 10 * numbers.back() + static_cast<std::uint64_t>(c - '0');
    open = is_digit;
  }
  return numbers;
}

// The first number of each part counts. `turn`: the flag, and the direction to change it, such as "raise --parked-max".
inline void expect_shown(const Status& refused, const std::string& turn, ErrorReason reason) {
  ASSERT_EQ(refused.code(), StatusCode::resource_exhausted) << refused.message();
  EXPECT_EQ(refused.reason(), reason) << refused.message();
  ASSERT_NE(refused.violation(), nullptr) << refused.message();
  const Violation& violation = *refused.violation();
  const auto actual = numbers_in(violation.actual), limit = numbers_in(violation.limit);
  ASSERT_FALSE(actual.empty() || limit.empty()) << refused.message();
  if (violation.limit.starts_with("less than ")) {
    EXPECT_GE(actual[0], limit[0]) << refused.message();
  } else {
    EXPECT_GT(actual[0], limit[0]) << refused.message();
  }
  EXPECT_FALSE(violation.field.empty()) << refused.message();
  EXPECT_TRUE(refused.retry_after_us().has_value()) << refused.message();
  EXPECT_NE(refused.message().find("(" + turn + ")"), std::string::npos) << refused.message();
}

}  // namespace kilokv
