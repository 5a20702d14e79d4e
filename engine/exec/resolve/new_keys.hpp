// The keys that a batch creates, each once and in key order, so that the record store can add them together.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class NewKeys {
 public:
  void clear() { keys_.clear(); }
  // Adds a key, which may be there already.
  void add(KeyId id, std::string_view key) { keys_.push_back({id, key}); }
  // Sorts the keys, and drops those that are there twice.
  void sort();
  std::span<const NewKey> keys() const { return keys_; }
  // For each key that was added, in the order of add(): its position among keys().
  std::span<const std::uint32_t> positions() const { return positions_; }

 private:
  // A key, by its position in the order of add(), with the eight bytes after the prefix that all keys share, as a
  // number.
  struct Entry {
    std::uint64_t head;
    std::uint32_t position;
  };

  std::size_t shared_prefix() const;
  void sort_by_first_bytes();

  std::vector<NewKey> keys_, sorted_;
  std::vector<Entry> entries_, other_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace kilokv::engine
