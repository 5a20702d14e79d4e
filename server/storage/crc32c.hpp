// CRC-32C (Castagnoli) of ISA-L, which uses the fastest instructions of the processor. Thread safety: pure function.
#pragma once

#include <isa-l/crc.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kilokv::server::storage {

// `start`: the CRC of the bytes before, or 0 at the beginning. crc32c(b, crc32c(a)) is the CRC of a followed by b.
inline std::uint32_t crc32c(std::string_view bytes, std::uint32_t start = 0) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // ISA-L counts in int
  std::uint32_t state = ~start;
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kPieceBytes);
    auto* from = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(from, static_cast<int>(piece), state);
    bytes.remove_prefix(piece);
  }
  return ~state;
}

}  // namespace kilokv::server::storage
