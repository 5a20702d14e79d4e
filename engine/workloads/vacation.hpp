// vacation: customers book and cancel rooms of a few types that are sold out (STAMP's vacation, as PR-STM runs it,
// section 4.2).
//
// `keys` customers with one room each, and one type for every 150 customers; no room is free at the start. A type has
// the records free (vafr............) and used (vaus............), as STAMP's reservations have. A customer has the
// number of rooms that they hold (vacu............). A booking waits for a free room of its type (WAIT guard free >=
// 1). A cancellation waits for a room to give back (WAIT guard rooms held >= 1). They come in pairs (pairs.hpp): a
// customer who holds a room of a drawn type cancels it, and another customer books that type. The booking is sent
// first. If wait_share is below 1, the other transactions pass a room to another customer without reading its type,
// with a FAIL guard. read_only_share of the transactions read what is free and used of a type, and what a customer
// holds.
//
// The numbers of the types are 100 apart, as in the paper, where one lock covers neighbours. Here keys are hashed, so
// the distance makes no difference to a strategy that locks by slot.
//
// Two pairs for one room in one batch can block each other: the second booking takes the room that the first one waited
// for, and its cancellation waits for the first booking. Then the first booking and the second cancellation expire.
// After that, the same customers hold the same rooms as without the blocking.
//
// The generator knows from what it sent before who holds which room. The database counts rooms, and does not name them.
// Another generator can make some cancellations wait until they expire, but does no other harm.
// Invariant: free + used of each type are its rooms. The rooms that customers hold are the used ones. No number is
// below 0.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/pairs.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The number of types, and the rooms of each.
struct Hotel {
  static constexpr std::uint64_t kRoomsPerType = 150;

  explicit Hotel(std::uint64_t rooms_of_all)
      : rooms(rooms_of_all), types((rooms + kRoomsPerType - 1) / kRoomsPerType) {}
  std::uint64_t type_of(std::uint64_t room) const { return room % types; }
  std::uint64_t rooms_of(std::uint64_t type) const { return (rooms - type + types - 1) / types; }

  std::uint64_t rooms, types;
};

class Vacation {
 public:
  // Requires: 2 <= keys < 2^32, wait_lag >= 1.
  Vacation(std::uint64_t keys, const DistributionOptions& distribution, const SemanticOptions& options,
           std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t left = transactions; left > 0; --left) {
      switch (pairs_.draw(&random_, left)) {
        case Turn::reads: ask(sink); break;
        case Turn::plain: hand_over(sink, draw()); break;
        case Turn::first_half: {
          const Change change = draw();
          pairs_.open(change);
          half(sink, change, pairs_.waits_first());
          break;
        }
        case Turn::second_half: half(sink, pairs_.close(), !pairs_.waits_first()); break;
      }
    }
  }

  // Appends the second halves of all open pairs.
  template <TransactionSink Sink>
  void close(Sink* sink) {
    while (!pairs_.empty()) half(sink, pairs_.close(), !pairs_.waits_first());
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  // A room of `type` that passes from one customer to another.
  struct Change {
    std::uint64_t type;
    std::uint32_t from, to;
  };

  static KeyName free_of(std::uint64_t type) { return {"vafr", type * kInterval}; }
  static KeyName used_of(std::uint64_t type) { return {"vaus", type * kInterval}; }
  static KeyName customer(std::uint64_t number) { return {"vacu", number}; }
  Change draw();

  template <TransactionSink Sink>
  void half(Sink* sink, const Change& change, bool books) {
    sink->begin(pairs_.precedence(books), wait_timeout_us_);
    const std::uint32_t free = sink->key(free_of(change.type).view());
    const std::uint32_t used = sink->key(used_of(change.type).view());
    const std::uint32_t held = sink->key(customer(books ? change.to : change.from).view());
    const std::int64_t rooms = books ? 1 : -1;
    sink->guard(GuardKind::greater_equal, OnFalse::wait, books ? free : held, 1, kNone);
    sink->op(OpKind::add, free, Operand::integer, -rooms);
    sink->op(OpKind::add, used, Operand::integer, rooms);
    sink->op(OpKind::add, held, Operand::integer, rooms);
    sink->end();
  }

  template <TransactionSink Sink>
  void hand_over(Sink* sink, const Change& change) {
    sink->begin(0, 0);
    const std::uint32_t from = sink->key(customer(change.from).view());
    const std::uint32_t to = sink->key(customer(change.to).view());
    sink->guard(GuardKind::greater_equal, OnFalse::fail, from, 1, kNone);
    sink->op(OpKind::add, from, Operand::integer, -1);
    sink->op(OpKind::add, to, Operand::integer, 1);
    sink->end();
  }

  template <TransactionSink Sink>
  void ask(Sink* sink) {
    const std::uint64_t type = types_.draw(&random_);
    sink->begin(0, 0);
    for (const KeyName& name : {free_of(type), used_of(type), customer(random_.below(hotel_.rooms))}) {
      sink->op(OpKind::get, sink->key(name.view()), Operand::integer, 0);
    }
    sink->end();
  }

  static constexpr std::uint64_t kInterval = 100;

  Hotel hotel_;
  DurationUs wait_timeout_us_;
  KeyDistribution types_;
  Random random_;
  OpenPairs<Change> pairs_;
  std::vector<std::uint32_t> holder_;  // of each room
};

}  // namespace kilokv::engine
