// Bytes as lower-case hexadecimal digits. Thread safety: pure functions.
#pragma once

#include <array>
#include <bit>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::server {

inline void append_hex(unsigned char byte, std::string* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  *text += {kDigits[byte >> 4], kDigits[byte & 15]};
}

inline std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) append_hex(byte, &text);
  return text;
}

inline std::string hex_of(std::string_view bytes) {
  return hex_of({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

// The digits of the 16 bytes that a hash is in the protocol and in files.
inline std::string hex_of(const Hash128& hash) {
  return hex_of(std::bit_cast<std::array<unsigned char, sizeof(Hash128)>>(hash));
}

}  // namespace kilokv::server
