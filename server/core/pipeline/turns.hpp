// Whose turn it is: the order in which the requests of several clients leave the admission queue.
//
// Each client has a queue of its own, in which its requests keep their order. Clients are served in turns by cost. Time
// here is virtual: it is measured in batches, and the clock of a client advances by what its transactions cost. The
// client whose next request would end first is served first, but of a large request only the first eighth of a batch
// counts (start-time fair queueing: Goyal, Vin and Cheng, "Start-time fair queueing", SIGCOMM 1996, section 2;
// deviation: ordered by this end, not by the begin, so that a client with little work never waits for the turns of busy
// ones). A client that comes back after a pause starts at the present: it neither keeps credit nor pays for the past.
//
// A transaction may be too large for the room that a batch has left. Its client is then put off, and others go on. The
// first who was put off begins the next batch, but never two batches in a row. So a large transaction does not wait for
// ever while small ones come, and small ones wait for at most one large transaction. While a client is put off, the
// present stays with it.
//
// Clients have weights: the clock of a client with weight 3 advances a third as fast. A new weight counts from the next
// time that the client has no requests here.
//
// A turn is the client's part of a batch, by its weight among those of all clients that have requests here. So the
// turns of all busy clients fill one batch. A turn has at least one transaction.
//
// Invariant: a client that has requests is in the heap, or put off, or it is the one whose turn it is. A client without
// requests is nowhere.
//
// Thread safety: none; AdmissionQueue calls it with its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/clients/client.hpp"
#include "server/core/pipeline/admitted_request.hpp"

namespace kilokv::server {

class Turns {
 public:
  Turns() = default;
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Requires: the request has a client.
  void push(std::shared_ptr<AdmittedRequest> request);

  // A new batch begins: clients that were put off are offered again, and the first of them may go first.
  void begin_batch();
  // Gives the turn to a client, unless one has it, and returns its first request. Null: every client is put off, or has
  // no requests.
  std::shared_ptr<AdmittedRequest> next();

  // The functions below require: next() was not null. All but turn() end the turn.
  // The most that the client may take in this turn, in kWholeBatch-ths of a batch.
  std::uint64_t turn() const;
  // The batch took transactions of the request that cost so much. `all`: the request leaves.
  void took(std::uint64_t cost, bool all);
  // The request leaves without a turn.
  void remove();
  // The request does not fit into this batch.
  void put_off();

  bool empty() const { return heap_.empty() && put_off_.empty() && served_ == nullptr; }

 private:
  struct Place {
    double end = 0;            // virtual time at which its next request ends, or the first part of it
    std::uint64_t number = 0;  // among equals, who came first
    Client* client = nullptr;  // its requests keep it alive
  };
  static bool later(const Place& a, const Place& b);
  void enter(Client* client, bool first = false);

  std::vector<Place> heap_;  // the first is the next
  std::vector<Client*> put_off_;
  Client* served_ = nullptr;  // whose turn it is
  Client* first_ = nullptr;   // the client that was put off and may begin this batch; only compared
  double weights_ = 0;        // of all clients here
  double now_ = 0;            // virtual
  std::uint64_t entries_ = 0;
};

}  // namespace kilokv::server
