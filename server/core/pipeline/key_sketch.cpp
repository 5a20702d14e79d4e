#include "server/core/pipeline/key_sketch.hpp"

#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {

KeySketch::KeySketch(std::size_t capacity) : capacity_(capacity) {
  KILOKV_CHECK(capacity > 0);
  heap_.reserve(capacity);
  places_.reserve(capacity);
}

void KeySketch::add(const KeyId& id, std::string_view key, bool is_range, double weight) {
  total_ += weight;
  if (const auto found = places_.find(id); found != places_.end()) {
    heap_[found->second].weight += weight;
    return sink(found->second);
  }
  if (heap_.size() < capacity_) {
    heap_.push_back({id, std::string(key), is_range, weight, 0});
    places_.emplace(id, heap_.size() - 1);
    return rise(heap_.size() - 1);
  }
  // The new key takes the place of the one with the least weight, and may have had all of that weight before.
  Entry& least = heap_.front();
  auto node = places_.extract(least.id);
  node.key() = id;
  places_.insert(std::move(node));
  least.id = id;
  least.key = key;
  least.is_range = is_range;
  least.error = least.weight;
  least.weight += weight;
  sink(0);
}

void KeySketch::scale(double factor) {
  total_ *= factor;
  for (Entry& entry : heap_) {
    entry.weight *= factor;
    entry.error *= factor;
  }
}

// Moves an entry that has become heavier away from the root.
void KeySketch::sink(std::size_t at) {
  for (;;) {
    std::size_t least = at;
    for (std::size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap_.size(); ++child) {
      if (heap_[child].weight < heap_[least].weight) least = child;
    }
    if (least == at) return;
    swap(at, least);
    at = least;
  }
}

void KeySketch::rise(std::size_t at) {
  while (at > 0 && heap_[at].weight < heap_[(at - 1) / 2].weight) {
    swap(at, (at - 1) / 2);
    at = (at - 1) / 2;
  }
}

void KeySketch::swap(std::size_t a, std::size_t b) {
  std::swap(heap_[a], heap_[b]);
  places_.find(heap_[a].id)->second = a;
  places_.find(heap_[b].id)->second = b;
}

}  // namespace kilokv::server
