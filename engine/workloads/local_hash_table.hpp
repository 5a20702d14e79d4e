// local-ht: work-items that insert their numbers into a hash table of few buckets (the HT of GPU-LocalTM, "Hardware
// support for local memory transactions on GPU architectures", section 5.1.1; HT2 to HT256 are `keys` of 2 to 256).
//
// A work-group has 256 items and its own table with `keys` buckets, each of which can take all items. Item i belongs to
// bucket i modulo `keys`, so 256 buckets have no conflict, as in the paper. The paper's transaction reads a location of
// the bucket, and writes the item's number there if it is empty; otherwise it tries the next one. Here the record that
// is written would then depend on what was read. Therefore the item takes the next location from the bucket's number of
// items (lhtc............), which its items contend for, and stores the location itself (lhtp............). This is the
// table seen from the items. The transaction is: ADD 1, GET the sum, PUT it.
//
// Work-groups follow one another; a batch of 256 is one of the paper's. A table is deleted, in one transaction, when 64
// later tables are full, because tables of local memory do not stay.
//
// Invariant of the last 64 tables: the items of a bucket have the locations 1 to their number, each once. All tables
// but the last are full.
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
  std::uint64_t table_ = 0, next_ = 0, first_ = 0;  // items sent of this table, and the first one
};

}  // namespace kilokv::engine
