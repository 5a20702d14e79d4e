// Sorted references to keys (table/key_arena.hpp), with a head for each key. A head is a number made of the four bytes
// that come after the prefix that all these keys share. If two heads differ, they compare as their keys do. So a search
// reads neighbouring numbers, and reads the bytes of a key only where two heads are equal.
//
// A head has zeros in place of bytes that its key does not have. So two keys with the same head may differ before the
// end of the head, if one of them ends there. They are compared as strings, as all keys with the same head are.
//
// Invariants: all keys share their first prefix() bytes. They may share more of them.
//
// Thread safety: none. A key takes 8 bytes, and there is room for some more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/base/prefetch.hpp"
#include "engine/table/key_arena.hpp"

namespace kilokv::engine {

class SortedKeys {
 public:
  // A key that is looked for, as it compares with the keys here.
  struct Sought {
    std::string_view key;
    std::size_t shared;  // leading bytes that it shares with all keys here; at most prefix()
    int side;            // -1: it is less than all keys here; 1: greater; 0: it has their prefix, and `head` decides
    std::uint32_t head;
  };

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t prefix() const { return prefix_; }
  std::uint32_t operator[](std::size_t position) const { return refs()[position]; }
  std::span<const std::uint32_t> references() const { return refs(); }
  std::uint32_t head(std::size_t position) const { return heads()[position]; }
  // Position of a reference that is here. It compares no keys.
  std::size_t position_of(std::uint32_t ref) const;

  Sought seek(std::string_view key, const KeyArena& arena) const;
  // The same for a key that has the prefix.
  Sought seek_with_prefix(std::string_view key) const { return {key, prefix_, 0, head_of(key, prefix_)}; }
  // Position of the first key that is not less than the sought one, and of the first one that is greater.
  std::size_t lower_bound(const Sought& sought, const KeyArena& arena) const;
  std::size_t upper_bound(const Sought& sought, const KeyArena& arena) const;
  bool is_less(const Sought& sought, std::size_t position, const KeyArena& arena) const;
  // Leading bytes that the sought key shares with the key at this position. If they share more than another key that is
  // at least as long as that key, the result may be too large.
  std::size_t shared_with(const Sought& sought, std::size_t position, const KeyArena& arena) const;

  // Makes the prefix no longer than `bytes`.
  void limit_prefix(std::size_t bytes, const KeyArena& arena) {
    if (bytes < prefix_) set_prefix(bytes, arena);
  }
  // Adds a key at its position. Requires: it has the prefix, and there are less than size_max keys.
  void insert(std::size_t position, std::uint32_t ref, std::uint32_t head, std::size_t size_max);
  // The same for a key that may lack the prefix.
  void insert(std::size_t position, std::uint32_t ref, const KeyArena& arena);
  void erase(std::size_t position);
  // Requires: the new key belongs at the same position.
  void replace(std::size_t position, std::uint32_t ref, const KeyArena& arena) {
    erase(position);
    insert(position, ref, arena);
  }
  // Replaces all keys. `heads`: as of a prefix of this length.
  void assign(std::span<const std::uint32_t> refs, std::span<const std::uint32_t> heads, std::size_t prefix,
              const KeyArena& arena);
  // The keys at position `keep` and after it leave. Returns them.
  SortedKeys cut(std::size_t keep, const KeyArena& arena);

  // Prefetches what a search reads, and the references that an insert at this position moves.
  void prefetch_heads() const { prefetch_lines(heads()); }
  void prefetch_refs(std::size_t from) const { prefetch_lines(refs().subspan(from)); }
  std::size_t memory_bytes() const { return std::size_t{capacity_} * kEntryBytes; }

  static constexpr std::size_t kEntryBytes = 2 * sizeof(std::uint32_t);
  static constexpr std::size_t kGrowth = 8;  // keys, while there are few

  static std::uint32_t head_of(std::string_view key, std::size_t prefix);
  static std::size_t shared_bytes(std::string_view a, std::string_view b);

 private:
  // An array of all heads, and then one of all references, each with room for `capacity_` keys.
  std::span<std::uint32_t> heads() { return {entries_.get(), size_}; }
  std::span<const std::uint32_t> heads() const { return {entries_.get(), size_}; }
  std::span<std::uint32_t> refs() { return {entries_.get() + capacity_, size_}; }
  std::span<const std::uint32_t> refs() const { return {entries_.get() + capacity_, size_}; }
  static void prefetch_lines(std::span<const std::uint32_t> items) {
    constexpr std::size_t kLine = 64 / sizeof(std::uint32_t);
    for (std::size_t i = 0; i < items.size() + kLine; i += kLine) prefetch_for_write(items.data() + i);
  }
  void set_prefix(std::size_t bytes, const KeyArena& arena);
  void lengthen_prefix(const KeyArena& arena);
  void reserve(std::size_t size, std::size_t size_max);
  void set_capacity(std::size_t capacity);

  std::unique_ptr<std::uint32_t[]> entries_;
  std::uint32_t size_ = 0, capacity_ = 0, prefix_ = 0;
};

}  // namespace kilokv::engine
