// Turns bytes into lower-case hexadecimal digits, and digits into bytes.
#pragma once

#include <absl/strings/escaping.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::client {

inline std::string to_hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

// Empty unless `digits` are pairs of hexadecimal digits.
inline std::optional<std::string> from_hex(std::string_view digits) {
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  if (digits.size() % 2 != 0 || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  return absl::HexStringToBytes(absl::string_view(digits.data(), digits.size()));
}

}  // namespace kilokv::client
