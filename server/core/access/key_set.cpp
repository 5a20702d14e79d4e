#include "server/core/access/key_set.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::server {

KeyRange keys_with_prefix(std::string_view prefix) {
  std::string to(prefix);
  // The next string that does not begin with the prefix. Bytes of 255 have no next one.
  while (!to.empty() && to.back() == '\xff') to.pop_back();
  if (!to.empty()) to.back() = static_cast<char>(static_cast<unsigned char>(to.back()) + 1);
  return {std::string(prefix), std::move(to)};
}

KeySet::KeySet(std::vector<KeyRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const KeyRange& a, const KeyRange& b) { return a.from < b.from; });
  for (KeyRange& range : ranges) {
    if (ranges_.empty() || (!ranges_.back().to.empty() && ranges_.back().to < range.from)) {
      ranges_.push_back(std::move(range));
      continue;
    }
    std::string& end = ranges_.back().to;
    if (range.to.empty() || (!end.empty() && end < range.to)) end = std::move(range.to);
  }
  ranges_.shrink_to_fit();
}

// The range that has the key; null if none has it.
const KeyRange* KeySet::range_of(std::string_view key) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), key,
                                      [](std::string_view k, const KeyRange& range) { return k < range.from; });
  if (after == ranges_.begin()) return nullptr;
  const KeyRange& range = *std::prev(after);
  return range.to.empty() || key < range.to ? &range : nullptr;
}

bool KeySet::contains(std::string_view key) const { return range_of(key) != nullptr; }

bool KeySet::contains_all(std::string_view from, std::string_view to) const {
  const KeyRange* const range = range_of(from);
  if (range == nullptr) return false;
  return range->to.empty() || (!to.empty() && to <= range->to);
}

bool overlap(const KeyRange& a, const KeyRange& b) {
  return (b.to.empty() || a.from < b.to) && (a.to.empty() || b.from < a.to);
}

std::string_view KeySet::end_after(std::string_view key) const { return range_of(key)->to; }

}  // namespace kilokv::server
