// skiplist: inserts, deletes and searches in a skip list of at most 5 levels (PR-STM, section 4.4).
//
// The list holds numbers from 1 to 2 * keys; at the start it holds the even ones. A record is a node on one level (skl0
// to skl4, then the number; 0 is the head of every level). Its value is the next number on that level, or 2 * keys + 1
// at the end. A hash of the number gives its levels: each further one with probability 1/4.
//
// A footprint must be known before its transaction runs, so a search cannot walk the list inside a transaction. The
// generator acts like a client that read the list before: it keeps a copy of the list, and takes the nodes of a
// transaction from the copy. A drawn number is inserted if it is not there, and deleted if it is. So, as in the paper,
// no insert and no delete is without effect. A search (read_only_share of the transactions) gets every node on its way.
//
// Guards `next == value in the copy` on everything that a change writes make a wrong copy harmless: the list then stays
// as it was. They are WAIT guards: if a strategy lets a change overtake another one that it builds on, it waits for
// that one. The numbers in a call differ (if there are enough), so no node has the same next value twice in a batch,
// and no wrong overtaking is possible. With one generator, all of whose transactions run, every change commits, in any
// order. With two generators on one database, more and more changes expire. A search guards its last node, and fails if
// it was overtaken.
//
// Invariant: every level is one sorted list from head to end, and has exactly the numbers of level 0 that reach this
// level.
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/ordered_bits.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class Skiplist {
 public:
  static constexpr std::size_t kLevels = 5;
  // A search walks the top level, so it grows with the list. This bound keeps it well below the operations that a
  // transaction may have.
  static constexpr std::uint64_t kKeysMax = 1 << 17;

  // Requires: 1 <= keys <= kKeysMax.
  Skiplist(std::uint64_t keys, const DistributionOptions& distribution, double read_only_share, std::uint64_t seed);

  static std::size_t height_of(std::uint64_t number);
  static KeyName node(std::size_t level, std::uint64_t number) {
    const std::array<char, KeyName::kPrefixBytes> prefix{'s', 'k', 'l', static_cast<char>('0' + level)};
    return {{prefix.data(), prefix.size()}, number};
  }

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    ++calls_;
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::uint64_t number = draw_number();
      sink->begin(0, 0);
      if (read_only_share_ > 0 && random_.chance(read_only_share_)) {
        search(sink, number);
      } else if (levels_[0].contains(number)) {
        erase(sink, number);
      } else {
        insert(sink, number);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  std::uint64_t draw_number();

  template <TransactionSink Sink>
  static void expect_next(Sink* sink, OnFalse on_false, std::uint32_t key, std::uint64_t next) {
    sink->guard(GuardKind::equal, on_false, key, static_cast<std::int64_t>(next), kNone);
  }
  template <TransactionSink Sink>
  static void set_next(Sink* sink, std::uint32_t key, std::uint64_t next) {
    sink->op(OpKind::put, key, Operand::integer, static_cast<std::int64_t>(next));
  }

  template <TransactionSink Sink>
  void search(Sink* sink, std::uint64_t number) {
    const std::uint64_t last = levels_[0].before(number);
    expect_next(sink, OnFalse::fail, sink->key(node(0, last).view()), levels_[0].after(last));
    std::uint64_t at = 0;
    for (std::size_t level = kLevels; level-- > 0;) {
      while (true) {
        sink->op(OpKind::get, sink->key(node(level, at).view()), Operand::integer, 0);
        const std::uint64_t next = levels_[level].after(at);
        if (next >= number) break;
        at = next;
      }
    }
  }

  template <TransactionSink Sink>
  void insert(Sink* sink, std::uint64_t number) {
    const std::size_t height = height_of(number);
    std::array<std::uint32_t, kLevels> before{}, own{};
    std::array<std::uint64_t, kLevels> next{};
    for (std::size_t level = 0; level < height; ++level) {
      const std::uint64_t at = levels_[level].before(number);
      next[level] = levels_[level].after(number);
      before[level] = sink->key(node(level, at).view());
      own[level] = sink->key(node(level, number).view());
      expect_next(sink, OnFalse::wait, before[level], next[level]);
      levels_[level].insert(number);
    }
    for (std::size_t level = 0; level < height; ++level) {
      set_next(sink, before[level], number);
      set_next(sink, own[level], next[level]);
    }
  }

  template <TransactionSink Sink>
  void erase(Sink* sink, std::uint64_t number) {
    const std::size_t height = height_of(number);
    std::array<std::uint32_t, kLevels> before{}, own{};
    std::array<std::uint64_t, kLevels> next{};
    for (std::size_t level = 0; level < height; ++level) {
      next[level] = levels_[level].after(number);
      before[level] = sink->key(node(level, levels_[level].before(number)).view());
      own[level] = sink->key(node(level, number).view());
      expect_next(sink, OnFalse::wait, before[level], number);
      expect_next(sink, OnFalse::wait, own[level], next[level]);
      levels_[level].erase(number);
    }
    for (std::size_t level = 0; level < height; ++level) {
      set_next(sink, before[level], next[level]);
      sink->op(OpKind::del, own[level], Operand::integer, 0);
    }
  }

  std::uint64_t end() const { return 2 * keys_ + 1; }

  std::uint64_t keys_;
  double read_only_share_;
  KeyDistribution numbers_;
  Random random_;
  std::vector<std::uint32_t> last_call_;  // the last call that drew each number
  std::uint32_t calls_ = 0;
  std::vector<OrderedBits> levels_;  // the copy: the numbers of each level, with head and end
};

}  // namespace kilokv::engine
