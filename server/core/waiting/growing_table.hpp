// A hash table that never takes long for one element, however many it has: it grows by one bucket at a time (linear
// hashing: Litwin, "Linear hashing: a new tool for file and table addressing", VLDB 1980). A table that grows by
// rehashing stands still for a good part of a second when it has millions of elements.
//
// Each bucket has a filter: a word with three bits for each of its elements, and no others. Most names that are looked
// up are not there, and one load of a word, mostly from the cache, shows that. About one lookup in 500 is wasted on
// wrong bits.
//
// It never shrinks.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kilokv::server {

// `T` has a name(), which does not change, and a link `next_in_bucket`. `Hash` gives 64 random bits for a name.
template <class T, class Hash>
class GrowingTable {
 public:
  // What an element takes beside itself, at most. What elements took that have left is used again, but not freed.
  static constexpr std::size_t kBytesPerElement = sizeof(std::uint64_t) + sizeof(T*);

  GrowingTable() { chunks_.push_back(std::make_unique<Chunk>()); }
  ~GrowingTable() {
    for (std::size_t i = 0; i < buckets_; ++i) {
      for (T* element = *bucket(i).first; element != nullptr;) {
        delete std::exchange(element, element->next_in_bucket);
      }
    }
  }
  GrowingTable(const GrowingTable&) = delete;
  GrowingTable& operator=(const GrowingTable&) = delete;

  bool empty() const { return size_ == 0; }

  template <class Name>
  T* find(const Name& name) const {  // null: it is not there
    const std::uint64_t hash = Hash()(name);
    const Bucket at = bucket(place_of(hash));
    if ((*at.filter & filter_bits(hash)) != filter_bits(hash)) return nullptr;
    T* element = *at.first;
    while (element != nullptr && !(element->name() == name)) element = element->next_in_bucket;
    return element;
  }

  // Its address stays. Requires: its name is not there.
  T* insert(std::unique_ptr<T> element) {
    if (++size_ > buckets_) grow();
    const std::uint64_t hash = hash_of(*element);
    add(bucket(place_of(hash)), element.get(), hash);
    return element.release();
  }

  // Destroys it. Requires: it is there.
  void erase(T* element) {
    --size_;
    const Bucket at = bucket(place_of(hash_of(*element)));
    T* left = *at.first;
    clear(at);
    while (left != nullptr) {
      T* const next = left->next_in_bucket;
      if (left != element) add(at, left, hash_of(*left));
      left = next;
    }
    delete element;
  }

 private:
  static constexpr std::size_t kChunkBuckets = 4096;
  struct Chunk {
    std::array<std::uint64_t, kChunkBuckets> filters{};
    std::array<T*, kChunkBuckets> firsts{};  // elements
  };
  struct Bucket {
    std::uint64_t* filter;
    T** first;
  };

  static std::uint64_t hash_of(const T& element) { return Hash()(element.name()); }
  static std::uint64_t filter_bits(std::uint64_t hash) {
    return std::uint64_t{1} << (hash & 63) | std::uint64_t{1} << (hash >> 58) | std::uint64_t{1} << (hash >> 52 & 63);
  }
  // Those that are not there yet have their elements in the bucket without the highest bit.
  std::size_t place_of(std::uint64_t hash) const {
    const std::size_t place = (hash >> 6) & mask_;
    const std::size_t is_there = place < buckets_;
    return place & (mask_ >> 1 | (0 - is_there));  // a branch would be guessed wrong
  }
  Bucket bucket(std::size_t place) const {
    Chunk* const chunk = chunks_[place / kChunkBuckets].get();
    return {&chunk->filters[place % kChunkBuckets], &chunk->firsts[place % kChunkBuckets]};
  }

  static void clear(Bucket at) {
    *at.filter = 0;
    *at.first = nullptr;
  }
  static void add(Bucket at, T* element, std::uint64_t hash) {
    *at.filter |= filter_bits(hash);
    element->next_in_bucket = std::exchange(*at.first, element);
  }

  // Adds one bucket, and moves elements of another to it.
  void grow() {
    const std::size_t place = buckets_++;
    if (place > mask_) mask_ = 2 * mask_ + 1;
    if (place / kChunkBuckets == chunks_.size()) chunks_.push_back(std::make_unique<Chunk>());
    const Bucket from = bucket(place & mask_ >> 1);
    T* element = *from.first;
    clear(from);
    while (element != nullptr) {
      T* const next = element->next_in_bucket;
      const std::uint64_t hash = hash_of(*element);
      add(bucket(place_of(hash)), element, hash);
      element = next;
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // of one bucket at least
  std::size_t buckets_ = 1;
  std::size_t mask_ = 0;  // of ones, the smallest that holds all places
  std::size_t size_ = 0;
};

}  // namespace kilokv::server
