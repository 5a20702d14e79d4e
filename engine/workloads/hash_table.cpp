#include "engine/workloads/hash_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kilokv::engine {

namespace {

class ChainAudit : public StateAudit {
 public:
  explicit ChainAudit(const HashTableLayout& layout) : layout_(layout) {}

  void add(std::string_view name, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(name);
    switch (name[KeyName::kPrefixBytes - 1]) {
      case 'e': heads_[index] = static_cast<std::uint64_t>(integer); break;
      case 'k': elements_[index].key = integer; break;
      case 'v': elements_[index].value = integer; break;
      default: elements_[index].next = static_cast<std::uint64_t>(integer); break;
    }
  }

  std::string violation() const override {
    if (elements_.empty()) return heads_.empty() ? "" : "a list has a head and no elements";
    const std::uint64_t last = elements_.rbegin()->first, table = layout_.table_of(last);
    const std::uint64_t first_table = std::max<std::uint64_t>(table, 1) - 1, first = first_table * layout_.elements;
    for (std::uint64_t element = first; element <= last; ++element) {
      if (const char* const problem = problem_of(element)) return "element " + std::to_string(element) + problem;
    }
    std::uint64_t listed = 0;
    for (auto head = heads_.lower_bound(first_table * layout_.buckets); head != heads_.end(); ++head) {
      const std::optional<std::uint64_t> length = length_of(head->first, head->second);
      if (!length) return "the list of entry " + std::to_string(head->first) + " has an element of another one";
      listed += *length;
    }
    if (listed == last - first + 1) return {};
    return "elements in lists: expected " + std::to_string(last - first + 1) + ", got " + std::to_string(listed);
  }

 private:
  struct Element {
    std::optional<std::int64_t> key, value;
    std::optional<std::uint64_t> next;
  };

  const char* problem_of(std::uint64_t element) const {
    const auto found = elements_.find(element);
    if (found == elements_.end()) return " is missing";
    const auto& [key, value, next] = found->second;
    if (!key || !value) return " is not whole";
    return *value == HashTableLayout::value_of(*key) ? nullptr : " has not the value of its key";
  }

  // Returns nothing if one of the list's elements belongs to another list. A list links to elements that were inserted
  // before, or, if the strategy chose the order, after. No list has more elements than there are in all.
  std::optional<std::uint64_t> length_of(std::uint64_t entry, std::uint64_t head) const {
    std::optional<std::uint64_t> at = head;
    std::uint64_t length = 0;
    for (; at && length <= elements_.size(); ++length) {
      const auto found = elements_.find(*at);
      if (found == elements_.end() || !found->second.key) return std::nullopt;
      if (layout_.entry_of(*at, *found->second.key) != entry) return std::nullopt;
      at = found->second.next;
    }
    return length;
  }

  HashTableLayout layout_;
  std::map<std::uint64_t, std::uint64_t> heads_;  // by entry
  std::map<std::uint64_t, Element> elements_;
};

}  // namespace

HashTable::HashTable(char letter, std::uint64_t buckets, std::uint64_t elements, std::uint64_t seed)
    : layout_{letter, buckets, elements}, seed_(seed) {}

InvariantRule HashTable::invariant() const {
  return {.statement = "each element of the last two tables is in the list of its entry, once",
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<ChainAudit>(layout_)};
}

}  // namespace kilokv::engine
