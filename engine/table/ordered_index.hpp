// The keys of the table in key order, for ranges. Sorted chunks of 32-bit key references (table/key_arena.hpp), found
// through an ordered map of chunk bounds: about 6 bytes a key, 4 when keys come in order.
//
// Invariants: a chunk holds the keys from its bound to the next chunk's; the first bound is empty; no other chunk is
// empty; a bound is the view of a key in its chunk, so it lives as long as the chunk needs it.
// Not thread-safe. Host only: ranges are resolved before a batch goes to a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "engine/table/key_arena.hpp"

namespace kilokv::engine {

class OrderedIndex {
 public:
  // `keys` must outlive it.
  explicit OrderedIndex(const KeyArena* keys) : keys_(keys) { chunks_.emplace(std::string_view{}, Chunk{}); }

  // Requires: the key is in the arena and not in the index.
  void insert(std::uint32_t key_ref);
  // Requires: the key is in the index and still in the arena.
  void erase(std::uint32_t key_ref);

  // Calls f(key_ref, key) for the keys of [from, to) in order until it returns false. `to` empty: no upper bound.
  // f must not change the index.
  template <class F>
  void scan(std::string_view from, std::string_view to, const F& f) const {
    auto chunk = std::prev(chunks_.upper_bound(from));
    std::size_t i = lower_bound(chunk->second, from);
    for (; chunk != chunks_.end(); ++chunk, i = 0) {
      for (; i < chunk->second.size(); ++i) {
        const std::uint32_t ref = chunk->second[i];
        const std::string_view key = keys_->view(ref);
        if (!to.empty() && key >= to) return;
        if (!f(ref, key)) return;
      }
    }
  }

  std::size_t memory_bytes() const;

 private:
  using Chunk = std::vector<std::uint32_t>;
  using Chunks = std::map<std::string_view, Chunk>;

  static constexpr std::size_t kChunkKeysMax = 512;

  // Position of the first key of the chunk that is not less than `key`.
  std::size_t lower_bound(const Chunk& chunk, std::string_view key) const;
  Chunks::iterator split(Chunks::iterator chunk, std::size_t position);

  const KeyArena* keys_;
  Chunks chunks_;
};

}  // namespace kilokv::engine
