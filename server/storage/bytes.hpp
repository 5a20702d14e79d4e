// The bytes of storage's formats: little-endian values, and keys that sort as their numbers do.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/core/bytes.hpp"

namespace kilokv::server::storage {

using bytes::load;
using bytes::put;
using bytes::Reader;

// Big-endian, so that the keys sort as the numbers do.
inline std::string ordered_key(std::uint64_t number) {
  std::string key(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) key[i] = static_cast<char>(number >> (56 - 8 * i));
  return key;
}

// Requires: at least 8 bytes.
inline std::uint64_t number_of_key(std::string_view key) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8 | static_cast<unsigned char>(key[i]);
  return number;
}

}  // namespace kilokv::server::storage
