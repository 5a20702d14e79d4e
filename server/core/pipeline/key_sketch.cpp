#include "server/core/pipeline/key_sketch.hpp"

#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {

KeySketch::KeySketch(std::size_t capacity) : capacity_(capacity) {
  KILOKV_CHECK(capacity > 0);
  entries_.reserve(capacity);
  heap_.reserve(capacity);
  places_.reserve(capacity);
  numbers_.reserve(capacity);
}

void KeySketch::add(const KeyId& id, std::string_view key, bool is_range, double weight) {
  total_ += weight;
  if (const auto found = numbers_.find(id); found != numbers_.end()) {
    entries_[found->second].weight += weight;
    return sink(places_[found->second]);
  }
  if (entries_.size() < capacity_) {
    const std::size_t number = entries_.size();
    entries_.push_back({id, std::string(key), is_range, weight, 0});
    heap_.push_back(number);
    places_.push_back(number);
    numbers_.emplace(id, number);
    return rise(number);
  }
  // The new key takes the place of the one with the least weight, and may have had all of that weight before.
  Entry& least = entries_[heap_.front()];
  auto node = numbers_.extract(least.id);
  node.key() = id;
  numbers_.insert(std::move(node));
  least.id = id;
  least.key = key;
  least.is_range = is_range;
  least.error = least.weight;
  least.weight += weight;
  sink(0);
}

void KeySketch::scale(double factor) {
  total_ *= factor;
  for (Entry& entry : entries_) {
    entry.weight *= factor;
    entry.error *= factor;
  }
}

// Moves an entry that has become heavier away from the root.
void KeySketch::sink(std::size_t at) {
  for (;;) {
    std::size_t least = at;
    for (std::size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap_.size(); ++child) {
      if (weight_at(child) < weight_at(least)) least = child;
    }
    if (least == at) return;
    swap(at, least);
    at = least;
  }
}

void KeySketch::rise(std::size_t at) {
  while (at > 0 && weight_at(at) < weight_at((at - 1) / 2)) {
    swap(at, (at - 1) / 2);
    at = (at - 1) / 2;
  }
}

void KeySketch::swap(std::size_t a, std::size_t b) {
  std::swap(heap_[a], heap_[b]);
  places_[heap_[a]] = a;
  places_[heap_[b]] = b;
}

}  // namespace kilokv::server
