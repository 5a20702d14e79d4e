// Whose turn it is among the clients that wait for the same thing. The order is that of the queue
// (core/pipeline/turns.hpp), for single transactions: time is virtual, the clock of a client advances by what its
// transactions cost, and the client whose next transaction would end first is served first. So a client with little
// work never waits for the work of busy ones.
//
// The present advances with what is served, as if all who have something were served at the same time, but never so far
// that a newcomer with little would come after others. So who has much is not passed for ever by newcomers with much:
// by those with more than a sixteenth of a batch. Newcomers with less pass always.
//
// What does not fit is put off, and others go on. The first who was put off begins the next batch, but never two
// batches in a row. It keeps this right until it is served.
//
// Invariant: a client that has something is in the heap or put off. A client without is nowhere.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "server/core/waiting/indexed_heap.hpp"

namespace kilokv::server {

struct Lane;

// The place of one client in turns of one kind.
struct Turn {
  Lane* lane = nullptr;
  double weight = 1;         // as Client::user_weight
  double begin = 0;          // virtual time at which its next transaction begins
  double end = 0;            // and ends, or the first part of it
  std::uint64_t number = 0;  // among equals, who came first
  std::uint32_t place = kNoPlace;
  bool is_put_off = false;

  bool waits() const { return place != kNoPlace || is_put_off; }
};

class LaneTurns {
 public:
  // The client has something, and the first of it costs so much of kWholeBatch. Requires: it had nothing here.
  void enter(Turn* turn, std::uint64_t cost);
  // The client has nothing any more. Does nothing if it had nothing.
  void leave(Turn* turn);
  // Who is next; null: all are put off, or nobody has anything.
  Turn* next() const { return heap_.empty() ? nullptr : heap_.first(); }
  // The client of next() is served at this cost. It leaves; if it has more, it enters again.
  void took(Turn* turn, std::uint64_t cost);
  // What the client of next() has does not fit into this batch.
  void put_off(Turn* turn);
  // A new batch begins. Those that were put off are offered again, and the first of them may go first.
  void begin_batch();

  bool empty() const { return heap_.empty() && put_off_.empty(); }

 private:
  static bool before(const Turn& a, const Turn& b) { return a.end != b.end ? a.end < b.end : a.number < b.number; }
  void push(Turn* turn);

  IndexedHeap<Turn, before, &Turn::place> heap_;
  std::vector<Turn*> put_off_;
  const Turn* first_ = nullptr;  // who was put off and may begin this batch; only compared
  bool had_first_ = false;       // somebody who was put off has begun this batch, or will
  double weights_ = 0;           // of all who have something
  double now_ = 0;               // virtual
  std::uint64_t entries_ = 0;
};

}  // namespace kilokv::server
