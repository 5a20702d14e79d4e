// local-ht: work-items that insert their numbers into a hash table of few buckets (the HT of GPU-LocalTM, "Hardware
// support for local memory transactions on GPU architectures", section 5.1.1). For the paper's HT2 to HT256, `keys` is
// 2 to 256.
//
// A work-group has 256 items and its own table with `keys` buckets, each of which can take all items. Item i belongs to
// bucket i modulo `keys`, so with 256 buckets there is no conflict, as in the paper. The paper's transaction reads a
// location of the bucket. If the location is empty, it writes the item's number there. Otherwise it tries the next
// location. Here this is not possible: the record to write would depend on what was read, but a transaction names its
// records before it runs. Therefore each bucket has a counter of its items (lhtc............), and the items of the
// bucket contend for it. The item adds 1 to the counter. The sum is the item's location. The item stores this location
// in its own record (lhtp............). So the table tells the location of each item, and not the item at each
// location. The transaction is: ADD 1, GET the sum, PUT it.
//
// Work-groups run one after the other. A batch of 256 transactions is one work-group of the paper. When 64 later tables
// are full, one transaction deletes a table, because in the paper a table of local memory does not outlive its
// work-group.
//
// Invariant of the last 64 tables: if a bucket has k items, their locations are 1 to k, each once. All tables but the
// last are full.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class LocalHashTable {
 public:
  static constexpr std::uint64_t kItems = 256;  // of one work-group
  static constexpr std::uint64_t kTablesKept = 64;
  static constexpr std::uint64_t kKeysMax = 256;

  // Requires: 1 <= buckets <= kKeysMax.
  LocalHashTable(std::uint64_t buckets, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const bool is_full = next_ == kItems;
      if (is_full) begin_table(table_ + 1);
      sink->begin(0, 0);
      if (is_full && table_ > kTablesKept) {
        give_up(sink, table_ - kTablesKept - 1);
      } else {
        insert(sink, (first_ + next_++) % kItems);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor&) const {}
  InvariantRule invariant() const;

 private:
  static KeyName count_of(std::uint64_t table, std::uint64_t bucket) { return {"lhtc", table * kItems + bucket}; }
  static KeyName location_of(std::uint64_t table, std::uint64_t item) { return {"lhtp", table * kItems + item}; }

  void begin_table(std::uint64_t table) {
    table_ = table;
    next_ = 0;
    first_ = random_.below(kItems);
  }

  template <TransactionSink Sink>
  void insert(Sink* sink, std::uint64_t item) {
    const std::uint32_t count = sink->key(count_of(table_, item % buckets_).view());
    sink->op(OpKind::add, count, Operand::integer, 1);
    sink->op(OpKind::get, count, Operand::integer, 0);
    sink->op(OpKind::put, sink->key(location_of(table_, item).view()), Operand::get, 1);
  }

  template <TransactionSink Sink>
  void give_up(Sink* sink, std::uint64_t table) {
    const auto erase = [&](const KeyName& name) { sink->op(OpKind::del, sink->key(name.view()), Operand::integer, 0); };
    for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) erase(count_of(table, bucket));
    for (std::uint64_t item = 0; item < kItems; ++item) erase(location_of(table, item));
  }

  std::uint64_t buckets_;
  Random random_;
  std::uint64_t table_ = 0;  // the table that is filled now
  std::uint64_t next_ = 0;   // the number of its items that were sent
  std::uint64_t first_ = 0;  // the item that was sent first; the others follow in a circle
};

}  // namespace kilokv::engine
