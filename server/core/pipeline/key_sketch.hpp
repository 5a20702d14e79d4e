// Finds the keys with the largest sums of weights, in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005, section 3). Deviation: weights are not
// only 1, and a binary heap takes the place of the paper's stream summary. The heap has numbers of entries, so that a
// step in it moves no key.
//
// Guarantees, with S the sum of all weights and m the capacity: each key with more than S / m is there; no estimate is
// too low; and none is too high by more than its `error`, which is at most S / m.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/types.hpp"

namespace kilokv::server {

class KeySketch {
 public:
  struct Entry {
    KeyId id;
    std::string key;
    bool is_range = false;
    double weight = 0, error = 0;
  };

  explicit KeySketch(std::size_t capacity);

  // `id`: the same for the same key and the same `is_range`, and for nothing else. `weight`: above 0.
  void add(const KeyId& id, std::string_view key, bool is_range, double weight);
  // Multiplies all weights.
  void scale(double factor);

  double total() const { return total_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in no order

 private:
  struct IdHash {
    std::size_t operator()(const KeyId& id) const { return static_cast<std::size_t>(id.low); }
  };

  void sink(std::size_t at);
  void rise(std::size_t at);
  void swap(std::size_t a, std::size_t b);
  double weight_at(std::size_t place) const { return entries_[heap_[place]].weight; }

  const std::size_t capacity_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> heap_;    // numbers of entries; that with the least weight is the root
  std::vector<std::size_t> places_;  // of each entry, in the heap
  std::unordered_map<KeyId, std::size_t, IdHash> numbers_;
  double total_ = 0;
};

}  // namespace kilokv::server
