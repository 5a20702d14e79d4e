// Parked transactions. A transaction is parked if a WAIT guard was false at the end of its batch. It runs again after a
// write to a key of its guards, at a time of its guards, or at its deadline. It costs no time until then.
//
// Indexes: by guard key (key_index.hpp: every key of every guard), by due time, by request (the range of its ids), and
// by id. A range guard needs none: once false, it stays false.
//
// Each client has a lane (lane.hpp). What is due and what is awake are two kinds. For each kind, the lanes take turns
// (lane_turns.hpp), measured by what the transactions take of a batch. So no client waits for all the work of another.
// The sleepers of a lane are in a heap of their own, by due time. Those that are due stay in it until their turn comes.
// So no step walks over all that are due.
//
// Invariants:
// - A lane with sleepers is in the heap of lanes, by the earliest of their due times, or it is among those that have
//   something due. It is moved by begin_batch(), a bounded number of lanes in each batch.
// - A lane lives while something of its client is parked.
// - What is chosen is neither due nor awake, and stays parked until it is taken.
//
// Memory: a one-key withdrawal in a session takes about 800 bytes of heap; 180 of them are the packed transaction. What
// its request takes counts, too.
//
// Thread safety: only the executor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/request_identity.hpp"
#include "server/core/waiting/key_index.hpp"
#include "server/core/waiting/lane.hpp"
#include "server/core/waiting/lane_turns.hpp"
#include "server/core/waiting/parked.hpp"

namespace kilokv::server {

class ParkingLot {
 public:
  ParkingLot(std::uint64_t parked_max, std::uint64_t parked_bytes_max);
  ~ParkingLot();
  ParkingLot(const ParkingLot&) = delete;
  ParkingLot& operator=(const ParkingLot&) = delete;

  // Parks transaction t of `columns`, and returns its id. RESOURCE_EXHAUSTED beyond either limit, or beyond the
  // client's share of the bytes; then it is not parked. A transaction that was parked before always has room.
  Result<std::uint64_t> park(const engine::TransactionColumns& columns, std::size_t t, Parked parked);

  // A batch wrote these keys (Engine::before_images). Makes candidates of the transactions that wait for them. Where
  // many clients wait for one key, written() tells only some of them. tell_lanes() tells the next ones, at most
  // `steps`.
  void written(std::span<const engine::BeforeImage> images) { keys_.written(images); }
  void tell_lanes(std::size_t steps) { keys_.tell_lanes(steps); }
  // The next candidate, in the turns of the clients: a transaction that waits for a key which was written after it last
  // came up or was parked. Null if there is none. It stays parked.
  Parked* next_candidate() { return keys_.next_candidate(); }
  bool has_candidates() const { return keys_.has_candidates(); }

  // Changes Parked::next_time_us. Requires: it sleeps.
  void set_next_time(Parked* parked, TimeUs next_time_us);
  // Wakes it. Requires: it is parked, neither awake nor chosen.
  void wake(Parked* parked);
  std::size_t awake() const { return awake_count_; }

  // A batch with this stamp begins. What was put off is offered again.
  void begin_batch(TimeUs stamp_us);
  // Whose turn it is of those that are awake, and of those that are due and not awake. Null: there is none, or all that
  // have one are put off.
  Parked* next_awake();
  Parked* next_due();
  // The functions below require: next_awake() or next_due() has just returned it. It goes into the batch, at a cost of
  // Parked::part, and has to be taken before the next batch; or its client is put off until the next batch.
  void choose(Parked* parked);
  void put_off(Parked* parked);
  // The stamp of the last batch for which parked transactions were looked at.
  TimeUs stamp_us() const { return due_through_us_; }
  // When a transaction that sleeps is due: the earliest of these times. If some were due when the last batch began, and
  // are left, the stamp of this batch. kNever (core/environment.hpp): none sleeps.
  TimeUs next_due_us() const;

  // Null if no such transaction is parked (any more). The pointer is valid until the transaction is taken.
  const Parked* find(std::uint64_t id) const;
  // Removes the transaction and returns it. Requires: find(id) != nullptr.
  Parked take(std::uint64_t id);

  struct IdRange {
    std::uint64_t first = 0, last = 0;  // both are in it
  };
  // A range that holds the ids of all parked transactions of a request. It may also hold ids of others. Null if none of
  // the request is parked.
  std::optional<IdRange> ids_of_request(const RequestName& name) const;
  // How many transactions of a request are parked.
  std::uint64_t count_of_request(const RequestName& name) const {
    const auto it = requests_.find(name);
    return it == requests_.end() ? 0 : it->second.count;
  }
  struct Page {
    std::vector<const Parked*> parked;
    bool has_more = false;
  };
  // At most `limit` parked transactions with ids above `after_id`, up to `last_id`, in order of id. Large ones are
  // fewer: as many as kLooksPerStep looks allow, and at least one. Requires: limit > 0.
  Page list(std::uint64_t after_id, std::size_t limit, std::uint64_t last_id = UINT64_MAX) const;

  // The id that was given last.
  std::uint64_t last_id() const { return last_id_; }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::uint64_t memory_bytes() const { return memory_bytes_.held(); }

 private:
  struct OfRequest {  // the parked transactions of one request
    std::uint64_t count = 0;
    IdRange ids;  // of all that were parked since the first of them was
  };

  static std::uint64_t cost(const Parked& parked, std::size_t waits);
  static std::uint64_t bytes_of_lane();
  Status check_count() const;
  void collect_keys(const engine::TransactionColumns& columns, std::size_t t);
  void link_request(const Parked& parked);
  void unlink_request(const Parked& parked);
  void file(Lane* lane);
  void leave_awake(Entry* entry);
  void leave_queue(Entry* entry);

  const std::uint64_t parked_max_;
  std::map<std::uint64_t, Entry> entries_;
  std::unordered_map<Client*, Lane> lanes_;
  KeyIndex keys_;
  IndexedHeap<Lane, Lane::is_due_before, &Lane::due_place> by_due_;  // lanes with nothing due
  LaneTurns due_, awake_;
  TimeUs due_through_us_ = INT64_MIN;  // the stamp of the last batch
  std::size_t awake_count_ = 0;
  std::unordered_map<RequestName, OfRequest, RequestNameHash> requests_;
  std::uint64_t last_id_ = 0;
  SharedLimit memory_bytes_;
  std::vector<KeyId> key_ids_;  // scratch
};

}  // namespace kilokv::server
