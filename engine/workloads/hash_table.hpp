// ht-h, ht-l: insertions into a chained hash table (the Hash Table of KILO TM, section 5: 8k entries for high and 80k
// for low contention; table 2: 23,040 transactions, each reads 1 word and writes 4).
//
// `keys` entries, each the head of a list. Element s, the s-th that is inserted, has a key (ht?k............), a value
// (ht?v............) and the element that follows it (ht?n............; absent at the end of a list), where ? is h or
// l; its entry (ht?e............) is its key modulo `keys`. An insertion reads the head, and writes all of its element
// and the head, with no guard: GET and PUT link what was first behind what is first now.
//
// The paper's run ends when the 23,040 elements are in. Here they go into a new table then, and the table before the
// last is given up: one transaction in 17 deletes 16 elements of it, and their heads; nothing else touches those. So a
// run of any length has three tables at most. Batches of more than two tables' elements can bring a deletion before its
// insertion, where the strategy chooses the order; what that leaves behind is in the way of nobody.
//
// Invariant of the last two tables: each element is in one list, that of its entry; values are those of their keys; no
// element is missing up to the last one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// Where the elements of a table are, and how its records are called.
struct HashTableLayout {
  static std::int64_t value_of(std::int64_t key) {
    auto mixer = static_cast<std::uint64_t>(key);
    return static_cast<std::int64_t>(splitmix64(&mixer) >> 1);
  }
  std::uint64_t table_of(std::uint64_t element) const { return element / elements; }
  std::uint64_t entry_of(std::uint64_t element, std::int64_t key) const {  // counted over all tables
    return table_of(element) * buckets + static_cast<std::uint64_t>(key) % buckets;
  }
  KeyName name(char field, std::uint64_t index) const {
    const std::array<char, KeyName::kPrefixBytes> prefix{'h', 't', letter, field};
    return {{prefix.data(), prefix.size()}, index};
  }

  char letter;
  std::uint64_t buckets;
  std::uint64_t elements;  // of each table
};

class HashTable {
 public:
  static constexpr std::uint64_t kElements = 23'040;
  static constexpr std::uint64_t kKeysMax = 1 << 20;  // so that the numbers of keys last for 10^10 insertions

  // Requires: buckets >= 1, elements >= 1. The letter tells the keys of one kind from those of another.
  HashTable(char letter, std::uint64_t buckets, std::uint64_t elements, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      if (next_ - swept_ == 2 * layout_.elements + kSwept) {
        sweep(sink);
      } else {
        insert(sink, next_++);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor&) const {}
  InvariantRule invariant() const;

 private:
  static constexpr std::uint64_t kSwept = 16;  // elements, by one transaction

  std::int64_t key_of(std::uint64_t element) const {
    std::uint64_t mixer = element ^ seed_;
    return static_cast<std::int64_t>(splitmix64(&mixer) >> 1);
  }

  template <TransactionSink Sink>
  void insert(Sink* sink, std::uint64_t element) {
    const std::int64_t key = key_of(element);
    const std::uint32_t head = sink->key(layout_.name('e', layout_.entry_of(element, key)).view());
    sink->op(OpKind::get, head, Operand::integer, 0);
    sink->op(OpKind::put, sink->key(layout_.name('n', element).view()), Operand::get, 0);
    sink->op(OpKind::put, sink->key(layout_.name('k', element).view()), Operand::integer, key);
    sink->op(OpKind::put, sink->key(layout_.name('v', element).view()), Operand::integer,
             HashTableLayout::value_of(key));
    sink->op(OpKind::put, head, Operand::integer, static_cast<std::int64_t>(element));
  }

  template <TransactionSink Sink>
  void sweep(Sink* sink) {
    const auto erase = [&](char field, std::uint64_t index) {
      sink->op(OpKind::del, sink->key(layout_.name(field, index).view()), Operand::integer, 0);
    };
    for (std::uint64_t i = 0; i < kSwept; ++i, ++swept_) {
      erase('e', layout_.entry_of(swept_, key_of(swept_)));
      for (const char field : {'n', 'k', 'v'}) erase(field, swept_);
    }
  }

  HashTableLayout layout_;
  std::uint64_t seed_;
  std::uint64_t next_ = 0, swept_ = 0;  // elements
};

}  // namespace kilokv::engine
