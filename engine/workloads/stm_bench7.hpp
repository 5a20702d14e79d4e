// stmbench7: long traversals and short operations on a tree of assemblies (STMBench7 of Guerraoui, Kapalka and Vitek,
// 2007, as Tarlovskyy runs it, "Accelerating Validation in Software Transactional Memory", 2020, sections 4 and 6.3,
// with long traversals enabled, read, write or read-write dominated).
//
// `keys` atomic parts, 200 of each composite part. The base assemblies, of three composite parts each, are the leaves
// of a tree of complex assemblies, of three assemblies each, with as many levels as it takes to have no fewer base
// assemblies than composite parts: 500 composite parts make STMBench7's 7 levels and 729 base assemblies. An atomic
// part has x (s7ax............), y (s7ay............) and a build date (s7ad............), a composite part the sum of
// the dates of its parts (s7cd............), an assembly the number of changes below it (s7as............).
//
// 18 transactions have 1 long traversal, 8 short traversals and 9 short operations. These are the shares of STMBench7
// without its structure modifications: those would change the records of a traversal, and a footprint must be known
// before. update_share of each kind are updates; 0.1, 0.4 and 0.9 are STMBench7's read, read-write and write dominated
// mixes.
//   long traversal    the way down to a base assembly, its composite parts, and x of all their atomic parts, about 610
//                     records (STMBench7 visits all base assemblies: a transaction has 1,024 operations at most); an
//                     update swaps x and y of the first atomic part of each composite part
//   short traversal   the way down to one atomic part, its x and y; an update swaps them
//   short operation   the dates of 10 atomic parts; an update makes them later, and their composite parts' sums with
//                     them. Half of the updates are of assemblies: they count a change all the way down
//
// Invariant: x and y of each atomic part are those of the start, possibly swapped. The date of each composite part is
// the sum of its parts' dates. The number of changes of each complex assembly is the sum of those of its three
// assemblies.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// Which part belongs to which: it depends only on the number of atomic parts. Assembly 0 is the root; assemblies 3 * a
// + 1 to 3 * a + 3 are below a.
struct DesignLibrary {
  static constexpr std::uint64_t kParts = 200, kFanout = 3;

  explicit DesignLibrary(std::uint64_t atomic_parts);
  static std::uint64_t composite_of(std::uint64_t part) { return part / kParts; }
  // The composite part at one of the three places of a base assembly.
  std::uint64_t component(std::uint64_t assembly, std::uint64_t place) const {
    std::uint64_t mixer = assembly * kFanout + place;
    return splitmix64(&mixer) % composites;
  }
  std::uint64_t parts_of(std::uint64_t composite) const {
    return composite + 1 < composites ? kParts : parts - composite * kParts;
  }
  static std::int64_t x(std::uint64_t part) { return number(3 * part); }
  static std::int64_t y(std::uint64_t part) { return number(3 * part + 1); }
  static std::int64_t date(std::uint64_t part) { return number(3 * part + 2); }

  std::uint64_t parts, composites, assemblies = 1;
  std::uint64_t first_base = 0;  // assemblies from here on are base assemblies

 private:
  static std::int64_t number(std::uint64_t seed) { return static_cast<std::int64_t>(splitmix64(&seed) % 1'000'000); }
};

class StmBench7 {
 public:
  // Requires: keys >= 1, 0 <= update_share <= 1.
  StmBench7(std::uint64_t keys, double update_share, std::uint64_t seed)
      : library_(keys), update_share_(update_share), random_(seed) {}

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::uint64_t kind = random_.below(18);
      const bool updates = random_.chance(update_share_);
      operations_ = 0;
      sink->begin(0, 0);
      if (kind == 0) {
        traverse_all(sink, updates);
      } else if (kind <= 8) {
        traverse_one(sink, updates);
      } else if (updates && random_.chance(0.5)) {
        descend(sink, OpKind::add);
      } else {
        visit_dates(sink, updates);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr int kDates = 10;

  template <TransactionSink Sink>
  std::uint32_t one(Sink* sink, OpKind kind, const KeyName& name, std::int64_t value = 0,
                    Operand operand = Operand::integer) {
    const std::uint32_t key = sink->key(name.view());
    sink->op(kind, key, operand, value);
    ++operations_;
    return key;
  }

  // Visits all assemblies on the way to a random base assembly: gets each, or counts a change of each. Returns the last
  // one.
  template <TransactionSink Sink>
  std::uint64_t descend(Sink* sink, OpKind kind) {
    std::uint64_t assembly = 0;
    while (true) {
      one(sink, kind, {"s7as", assembly}, kind == OpKind::add ? 1 : 0);
      if (assembly >= library_.first_base) return assembly;
      assembly = assembly * DesignLibrary::kFanout + 1 + random_.below(DesignLibrary::kFanout);
    }
  }

  template <TransactionSink Sink>
  void swap(Sink* sink, std::uint64_t part) {
    const std::int64_t first = operations_;
    one(sink, OpKind::get, {"s7ax", part});
    one(sink, OpKind::get, {"s7ay", part});
    one(sink, OpKind::put, {"s7ax", part}, first + 1, Operand::get);
    one(sink, OpKind::put, {"s7ay", part}, first, Operand::get);
  }

  template <TransactionSink Sink>
  void traverse_all(Sink* sink, bool updates) {
    const std::uint64_t base = descend(sink, OpKind::get);
    for (std::uint64_t place = 0; place < DesignLibrary::kFanout; ++place) {
      const std::uint64_t composite = library_.component(base, place), first = composite * DesignLibrary::kParts;
      one(sink, OpKind::get, {"s7cd", composite});
      for (std::uint64_t i = 0; i < library_.parts_of(composite); ++i) one(sink, OpKind::get, {"s7ax", first + i});
      if (updates) swap(sink, first);
    }
  }

  template <TransactionSink Sink>
  void traverse_one(Sink* sink, bool updates) {
    const std::uint64_t composite =
        library_.component(descend(sink, OpKind::get), random_.below(DesignLibrary::kFanout));
    const std::uint64_t part = composite * DesignLibrary::kParts + random_.below(library_.parts_of(composite));
    one(sink, OpKind::get, {"s7cd", composite});
    if (updates) return swap(sink, part);
    one(sink, OpKind::get, {"s7ax", part});
    one(sink, OpKind::get, {"s7ay", part});
  }

  template <TransactionSink Sink>
  void visit_dates(Sink* sink, bool updates) {
    for (int i = 0; i < kDates; ++i) {
      const std::uint64_t part = random_.below(library_.parts);
      one(sink, updates ? OpKind::add : OpKind::get, {"s7ad", part}, updates ? 1 : 0);
      if (updates) one(sink, OpKind::add, {"s7cd", DesignLibrary::composite_of(part)}, 1);
    }
  }

  DesignLibrary library_;
  double update_share_;
  Random random_;
  std::int64_t operations_ = 0;  // of the transaction so far
};

}  // namespace kilokv::engine
