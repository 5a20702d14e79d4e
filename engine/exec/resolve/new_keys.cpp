#include "engine/exec/resolve/new_keys.hpp"

#include <algorithm>
#include <utility>

#include "engine/table/sorted_keys.hpp"

namespace kilokv::engine {
namespace {

// Bytes of a head by which all keys are sorted at once. The keys of a batch seldom share more than these.
constexpr std::size_t kSortedBytes = 4;
// Fewer keys are sorted faster by comparing them.
constexpr std::size_t kRadixSortMin = 128;

}  // namespace

std::size_t NewKeys::shared_prefix() const {
  std::string_view prefix = keys_.front().key;
  for (const NewKey& key : keys_) {
    if (!key.key.starts_with(prefix)) prefix = prefix.substr(0, SortedKeys::shared_bytes(prefix, key.key));
  }
  return prefix.size();
}

// A radix sort by the highest bytes of the heads, from the lowest of these bytes to the highest. It takes a few ns for
// each key, where comparing them takes ten times as much.
void NewKeys::sort_by_first_bytes() {
  std::array<std::array<std::uint32_t, 256>, kSortedBytes> counts{};
  for (const Entry& entry : entries_) {
    for (std::size_t byte = 0; byte < kSortedBytes; ++byte) ++counts[byte][entry.head >> (56 - 8 * byte) & 255];
  }
  other_.resize(entries_.size());
  for (std::size_t byte = kSortedBytes; byte-- > 0;) {
    std::array<std::uint32_t, 256>& ends = counts[byte];
    std::uint32_t begin = 0;
    for (std::uint32_t& count : ends) begin += std::exchange(count, begin);
    for (const Entry& entry : entries_) other_[ends[entry.head >> (56 - 8 * byte) & 255]++] = entry;
    entries_.swap(other_);
  }
}

void NewKeys::sort() {
  positions_.resize(keys_.size());
  if (keys_.empty()) return;
  const std::size_t prefix = shared_prefix();
  entries_.clear();
  for (std::uint32_t i = 0; i < keys_.size(); ++i) {
    const std::uint64_t high = SortedKeys::head_of(keys_[i].key, prefix);
    entries_.push_back({high << 32 | SortedKeys::head_of(keys_[i].key, prefix + 4), i});
  }
  const auto less = [this](const Entry& a, const Entry& b) {
    return a.head != b.head ? a.head < b.head : keys_[a.position].key < keys_[b.position].key;
  };
  if (entries_.size() < kRadixSortMin) {
    std::sort(entries_.begin(), entries_.end(), less);
  } else if (!std::is_sorted(entries_.begin(), entries_.end(), less)) {
    sort_by_first_bytes();
    for (auto begin = entries_.begin(); begin != entries_.end();) {
      auto end = begin + 1;
      while (end != entries_.end() && end->head >> 32 == begin->head >> 32) ++end;
      if (end - begin > 1) std::sort(begin, end, less);
      begin = end;
    }
  }
  sorted_.clear();
  for (const Entry& entry : entries_) {
    const NewKey& key = keys_[entry.position];
    if (sorted_.empty() || sorted_.back().id != key.id) sorted_.push_back(key);
    positions_[entry.position] = static_cast<std::uint32_t>(sorted_.size() - 1);
  }
  keys_.swap(sorted_);
}

}  // namespace kilokv::engine
