// ht-h, ht-l: insertions into a chained hash table (the Hash Table of KILO TM, section 5: 8k entries for high and 80k
// for low contention; table 2: 23,040 transactions, each reads 1 word and writes 4).
//
// `keys` entries; each is the head of a list. Element s, the s-th that is inserted, has a key (ht?k............), a
// value (ht?v............) and a link to the element after it (ht?n............; absent at the end of a list), where ?
// is h or l. Its entry (ht?e............) is its key modulo `keys`. An insertion reads the head, and writes all of its
// element and the head, with no guard: GET and PUT link the new first element to the old one.
//
// The paper's run ends when the 23,040 elements are in. Here the next elements go into a new table, and the table
// before the last one is deleted: one transaction in 17 deletes 16 elements of it, and their heads. No other
// transaction touches these records. So a run of any length has three tables at most. If a batch holds more than two
// tables' elements and the strategy chooses the order, a deletion can come before its insertion. The records that this
// leaves do no harm.
//
// Invariant of the last two tables: each element is in exactly one list, that of its entry. Values are those of their
// keys. No element up to the last one is missing.
// Thread safety: one thread for each object.
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

// The positions of the elements of a table, and the names of its records.
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
  static constexpr std::uint64_t kKeysMax = 1 << 20;  // so that the numbers of keys suffice for 10^10 insertions

  // Requires: buckets >= 1, elements >= 1. The letter makes the keys of one kind differ from those of another.
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
  static constexpr std::uint64_t kSwept = 16;  // elements that one transaction deletes

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
