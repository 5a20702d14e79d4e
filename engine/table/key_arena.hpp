// Where the host keeps the bytes of keys. A key is named by a 32-bit reference: the position of its entry in units of
// 4 bytes, so an arena holds up to 16 GiB. An entry is a 16-bit length and the bytes; 16-byte keys take 20 bytes.
//
// Blocks of 1 MiB never move: views stay valid until the key is freed. Freed entries are reused for keys of the same
// number of units. Not thread-safe. Host only: a device never sees key bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/zeroed_array.hpp"

namespace kilokv::engine {

class KeyArena {
 public:
  KeyArena() { free_.fill(kNoEntry); }

  // Copies the key in. None: the arena is full. Requires: 1 to 1024 bytes.
  std::optional<std::uint32_t> add(std::string_view key);
  void remove(std::uint32_t ref);
  // Empty: the entry was freed (and not reused).
  std::string_view view(std::uint32_t ref) const;
  std::size_t memory_bytes() const { return blocks_.size() * kBlockUnits * kUnitBytes; }

 private:
  static constexpr std::size_t kUnitBytes = 4;
  static constexpr std::size_t kBlockUnits = std::size_t{1} << 18;
  static constexpr std::size_t kBlocksMax = std::size_t{1} << 14;
  static constexpr std::size_t kUnitsMax = (1024 + 2 + kUnitBytes - 1) / kUnitBytes;
  static constexpr std::uint32_t kNoEntry = 0xFFFFFFFFu;

  static std::size_t units_for(std::size_t key_bytes);
  char* at(std::uint32_t ref) { return blocks_[ref / kBlockUnits].data() + ref % kBlockUnits * kUnitBytes; }
  const char* at(std::uint32_t ref) const { return const_cast<KeyArena*>(this)->at(ref); }
  std::optional<std::uint32_t> take(std::size_t units);

  std::vector<ZeroedArray<char>> blocks_;
  std::size_t used_units_ = kBlockUnits;                // of the last block
  std::array<std::uint32_t, kUnitsMax + 1> free_ = {};  // first freed entry of each number of units
};

}  // namespace kilokv::engine
