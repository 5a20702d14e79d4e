// A set of keys: the union of ranges. Thread safety: a KeySet does not change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kilokv::server {

// The keys from `from` on that are less than `to`. An empty `to`: there is no upper bound.
struct KeyRange {
  std::string from, to;

  bool operator==(const KeyRange&) const = default;
};

// Whether a key is in both. Requires: neither is empty.
bool overlap(const KeyRange& a, const KeyRange& b);
// The range of all keys that begin with `prefix`.
KeyRange keys_with_prefix(std::string_view prefix);

class KeySet {
 public:
  KeySet() = default;
  explicit KeySet(std::vector<KeyRange> ranges);  // they may overlap

  bool contains(std::string_view key) const;
  // Whether each key of the range is in the set. Requires: from < to, or `to` is empty.
  bool contains_all(std::string_view from, std::string_view to) const;
  // The end of the keys from `key` on that are all in the set. Requires: contains(key). Empty: there is no end.
  std::string_view end_after(std::string_view key) const;
  bool empty() const { return ranges_.empty(); }

 private:
  const KeyRange* range_of(std::string_view key) const;

  std::vector<KeyRange> ranges_;  // ascending; they neither overlap nor touch
};

}  // namespace kilokv::server
