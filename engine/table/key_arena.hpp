// The bytes of keys, on the host. A 32-bit reference names a key. The reference is the position of the key's entry in
// units of 4 bytes, so an arena holds up to 16 GiB. An entry is a 16-bit length and the bytes. A key of 16 bytes takes
// 20 bytes.
//
// Invariants: blocks of 1 MiB never move, so a view stays valid until its key is freed. A freed entry is reused for
// keys that need the same number of units. A device never sees key bytes.
//
// Thread safety: none.
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

  // Copies the key. Returns nothing if the arena is full. Requires: 1 to 1024 bytes.
  std::optional<std::uint32_t> add(std::string_view key);
  void remove(std::uint32_t ref);
  // Empty: the entry was freed and is not in use again.
  std::string_view view(std::uint32_t ref) const;
  // The memory of the entry of a key with so many bytes.
  static std::size_t memory_of(std::size_t key_bytes) { return units_for(key_bytes) * kUnitBytes; }
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
