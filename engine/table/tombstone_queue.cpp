#include "engine/table/tombstone_queue.hpp"

#include <algorithm>
#include <iterator>

namespace kilokv::engine {
namespace {

bool later(const Tombstone& a, const Tombstone& b) { return a.version > b.version; }

}  // namespace

void TombstoneQueue::add(const Tombstone& tombstone, const IsStale& is_stale) {
  ++size_;
  if (!segments_.empty() && tombstone.version < segments_.back().back().version) {
    late_.push_back(tombstone);
    std::push_heap(late_.begin(), late_.end(), later);
    return;
  }
  if (segments_.empty() || segments_.back().size() == kSegmentMax) {
    for (int i = 0; i < 2; ++i) clean_next(is_stale);
    segments_.emplace_back();
  }
  segments_.back().push_back(tombstone);
}

bool TombstoneQueue::front_is_late() const {
  return !late_.empty() && (segments_.empty() || late_.front().version < segments_.front()[taken_].version);
}

const Tombstone* TombstoneQueue::front() const {
  if (size_ == 0) return nullptr;
  return front_is_late() ? &late_.front() : &segments_.front()[taken_];
}

void TombstoneQueue::pop() {
  --size_;
  if (front_is_late()) {
    std::pop_heap(late_.begin(), late_.end(), later);
    late_.pop_back();
    if (late_.empty()) late_.shrink_to_fit();
  } else if (++taken_ == segments_.front().size()) {
    segments_.pop_front();
    taken_ = 0;
    if (next_cleaned_ > 0) --next_cleaned_;
  }
}

// Removes the stale entries of the next segment. The rest joins the segment before it, if both fit in one.
void TombstoneQueue::clean_next(const IsStale& is_stale) {
  if (segments_.empty()) return;
  if (next_cleaned_ >= segments_.size()) next_cleaned_ = 0;
  const auto at = segments_.begin() + static_cast<std::ptrdiff_t>(next_cleaned_);
  if (next_cleaned_ == 0) {
    at->erase(at->begin(), at->begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  size_ -= std::erase_if(*at, is_stale);
  if (next_cleaned_ > 0 && std::prev(at)->size() + at->size() <= kSegmentMax) {
    std::prev(at)->insert(std::prev(at)->end(), at->begin(), at->end());
    segments_.erase(at);
  } else if (at->empty()) {
    segments_.erase(at);
  } else {
    at->shrink_to_fit();
    ++next_cleaned_;
  }
}

std::size_t TombstoneQueue::memory_bytes() const {
  std::size_t bytes = late_.capacity() * sizeof(Tombstone);
  for (const Segment& segment : segments_) bytes += segment.capacity() * sizeof(Tombstone) + sizeof(Segment);
  return bytes;
}

}  // namespace kilokv::engine
