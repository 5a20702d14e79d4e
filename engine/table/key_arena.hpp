// The bytes of keys, on the host. A 32-bit reference names a key. The reference is the position of the key's entry in
// units of 4 bytes, so an arena holds up to 16 GiB. An entry is a 16-bit word with the length, and the bytes. A key of
// 16 bytes takes 20 bytes, or up to 28 in the place of other keys.
//
// Entries fill blocks of 1 MiB. What keys leave is a free run, and two free runs that touch become one, so keys of any
// length can use it (boundary tags: Knuth, "The Art of Computer Programming", volume 1, section 2.5; deviation: a short
// run has no tag at its end, and a bit of the next entry stands for it). A key takes the smallest run that it fits
// into. A block without keys is given back to the system, if there is enough room without it.
//
// Invariants: a key's bytes never move, so a view stays valid until its key is freed. Two free runs never touch. A
// device never sees key bytes.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/prefetch.hpp"
#include "engine/base/zeroed_array.hpp"
#include "engine/table/key_room.hpp"

namespace kilokv::engine {

class KeyArena {
 public:
  KeyArena() { first_.fill(kNone); }

  // Copies the key. Returns nothing if the arena is full. Requires: 1 to 1024 bytes.
  std::optional<std::uint32_t> add(std::string_view key);
  void remove(std::uint32_t ref);
  std::string_view view(std::uint32_t ref) const;
  void prefetch(std::uint32_t ref) const { prefetch_for_read(at(ref)); }
  // Whether this number of keys surely fits, if their total length is this number of bytes.
  bool has_room_for(std::size_t keys, std::size_t key_bytes) const {
    constexpr std::size_t kUsed = (kBlockUnits - kUnitsMax) * kUnitBytes;  // in a block that has no room for a key
    const std::size_t bytes = key_bytes + keys * (memory_of(1) + kUnitBytes);
    return blocks_.size() - given_back_.size() + 1 + bytes / kUsed < kBlocksMax;
  }
  // The memory of the entry of a key with so many bytes.
  static std::size_t memory_of(std::size_t key_bytes) { return units_for(key_bytes) * kUnitBytes; }
  // The memory of the blocks for entries whose total size is this number of bytes.
  static std::size_t blocks_bytes(std::size_t entry_bytes) {
    constexpr std::size_t kBlockBytes = kBlockUnits * kUnitBytes;
    return (entry_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  std::size_t memory_bytes() const { return (blocks_.size() - given_back_.size()) * kBlockUnits * kUnitBytes; }
  // The part of memory_bytes() that new keys can use.
  KeyRoom room() const;

 private:
  static constexpr std::size_t kUnitBytes = KeyRoom::kUnitBytes;
  static constexpr std::uint32_t kBlockUnits = std::uint32_t{1} << 18;
  static constexpr std::size_t kBlocksMax = (std::size_t{1} << 14) - 1;  // so no reference is kNone
  static constexpr std::uint32_t kUnitsMin = KeyRoom::kShortMin;
  static constexpr std::uint32_t kUnitsMax = (1024 + 2 + kUnitBytes - 1) / kUnitBytes;
  static constexpr std::uint32_t kLong = KeyRoom::kLongMin;
  static_assert(kLong > kUnitsMax);
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  struct Block {
    ZeroedArray<char> bytes;       // none: given back
    std::uint32_t keys_units = 0;  // of all keys in it
  };

  static std::size_t units_for(std::size_t key_bytes);
  char* at(std::uint32_t ref) { return blocks_[ref / kBlockUnits].bytes.data() + ref % kBlockUnits * kUnitBytes; }
  const char* at(std::uint32_t ref) const { return const_cast<KeyArena*>(this)->at(ref); }
  std::optional<std::uint32_t> place(std::uint32_t* units);
  std::uint32_t smallest_run(std::uint32_t units) const;
  bool open_block();
  void close_block();
  void give_back(std::uint32_t block);
  std::uint32_t units_of_run(std::uint32_t run) const;
  void link(std::uint32_t run, std::uint32_t units);
  void unlink(std::uint32_t run, std::uint32_t units);
  void note_before(std::uint32_t end, std::uint32_t units);
  bool is_entry(std::uint32_t ref) const { return ref % kBlockUnits != 0 && ref != open_; }

  std::vector<Block> blocks_;
  std::vector<std::uint32_t> given_back_;  // blocks without memory
  // The block that is being filled has had no keys from here to its end. None: no block is.
  std::uint32_t open_ = kNone;
  std::array<std::uint32_t, kLong + 1> first_ = {};         // first run of each number of units; of kLong and more
  std::array<std::uint64_t, kLong / 64 + 1> has_run_ = {};  // one bit for each of these
  KeyRoom room_;                                            // without the end of the open block
};

}  // namespace kilokv::engine
