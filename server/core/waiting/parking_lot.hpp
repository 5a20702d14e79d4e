// Parked transactions. A transaction is parked if a WAIT guard was false at the end of its batch. It runs again after a
// write to a key of its guards, or when its time is up. It costs no time until then.
//
// Indexes: by guard key (every key of every guard), by deadline (a heap), by request (the range of its ids), and by id.
// A range guard needs none: once false, it stays false.
//
// A write to a key makes candidates of all transactions that wait for the key, in constant time. next_candidate() then
// returns them one by one, so that the caller can spread the work over batches. Keys take turns, and so do the
// transactions that wait for one key: each comes up again only after all others, even if the key is written all the
// time.
//
// Memory: a one-key withdrawal in a session takes about 640 bytes of heap; 180 of them are the packed transaction. What
// its request takes counts, too.
//
// Thread safety: only the executor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// What is parked together with the transaction itself.
struct Parked {
  std::uint64_t id = 0;         // 0: park() gives one; kept when the transaction is parked again
  std::shared_ptr<void> owner;  // the object with which the caller answers it
  Client* client = nullptr;     // who sent it; lives as long as `owner`; null: nobody in particular
  std::optional<SessionId> session;
  std::uint64_t request = 0;  // number in the session
  std::uint32_t index = 0;    // in the request
  std::uint64_t arrival = 0;  // of its first arrival; unique, or ordered by index within one request
  BatchNumber admitted_batch = 0;
  TimeUs since_us = 0;      // stamp of the batch that parked it first
  TimeUs deadline_us = 0;   // compared with batch stamps
  std::uint32_t guard = 0;  // the deciding guard
  std::uint8_t precedence = 0;
  bool awake = false;             // the caller's mark: it is to run again, although its deadline is not over
  std::uint64_t owner_bytes = 0;  // its part of what `owner` takes
  std::string packed;             // filled by park() (engine::pack_transaction)
};

class ParkingLot {
 public:
  ParkingLot(std::uint64_t parked_max, std::uint64_t parked_bytes_max);
  ~ParkingLot();
  ParkingLot(const ParkingLot&) = delete;
  ParkingLot& operator=(const ParkingLot&) = delete;

  // Parks transaction t of `columns`, and returns its id. RESOURCE_EXHAUSTED beyond either limit, or beyond the
  // client's share of the bytes; then it is not parked. A transaction that was parked before always has room.
  Result<std::uint64_t> park(const engine::TransactionColumns& columns, std::size_t t, Parked parked);

  // A batch wrote these keys (Engine::before_images). Makes candidates of the transactions that wait for them.
  void written(std::span<const engine::BeforeImage> images);
  // The next candidate: a transaction that waits for a key which was written after it last came up or was parked. Null
  // if there is none. It stays parked.
  Parked* next_candidate();
  bool has_candidates() const { return !written_keys_.empty(); }
  // Appends the ids of at most `max` transactions whose deadline is at or before `stamp_us`, and which are not awake.
  void due(TimeUs stamp_us, std::size_t max, std::vector<std::uint64_t>* ids) const;
  // The earliest deadline; kNever (core/environment.hpp) if nothing is parked.
  TimeUs next_deadline_us() const;

  // Null if no such transaction is parked (any more). The pointer is valid until the transaction is taken.
  const Parked* find(std::uint64_t id) const;
  Parked* find(std::uint64_t id);
  // Removes the transaction and returns it. Requires: find(id) != nullptr.
  Parked take(std::uint64_t id);

  struct IdRange {
    std::uint64_t first = 0, last = 0;  // both are in it
  };
  // A range that holds the ids of all parked transactions of a request. It may also hold ids of others. Null if none of
  // the request is parked.
  std::optional<IdRange> ids_of_request(const RequestName& name) const;
  // At most `limit` parked transactions with ids above `after_id`, up to `last_id`, in order of id.
  std::vector<const Parked*> list(std::uint64_t after_id, std::size_t limit, std::uint64_t last_id = UINT64_MAX) const;

  // The id that was given last.
  std::uint64_t last_id() const { return last_id_; }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::uint64_t memory_bytes() const { return memory_bytes_.held(); }

 private:
  struct Entry;
  struct Wait {  // an entry in the list of transactions that wait for a key
    Entry* entry = nullptr;
    Wait* previous = nullptr;
    Wait* next = nullptr;
    std::uint64_t writes_seen = 0;
    KeyId key;
  };
  struct Waiters {  // for one key: first those that have not seen its last write, then the others
    Wait* first = nullptr;
    Wait* last = nullptr;
    std::uint64_t writes = 0;  // batches that wrote the key
    bool listed = false;       // in written_keys_
  };
  struct Entry {
    Parked parked;
    std::unique_ptr<Wait[]> waits;
    std::uint32_t wait_count = 0;
    std::uint32_t heap_place = 0;
  };
  struct OfRequest {  // the parked transactions of one request
    std::uint64_t count = 0;
    IdRange ids;  // of all that were parked since the first of them was
  };
  struct KeyIdHash {
    std::size_t operator()(const KeyId& key) const noexcept { return key.low; }
  };

  static std::uint64_t cost(const Parked& parked, std::size_t waits);
  Status check_count() const;
  void collect_keys(const engine::TransactionColumns& columns, std::size_t t);
  void link_keys(Entry* entry);
  void unlink_keys(Entry* entry);
  static void append(Waiters* waiters, Wait* wait);
  static void remove(Waiters* waiters, Wait* wait);
  void add_to_filter(const KeyId& key);
  void rebuild_filter();
  std::uint64_t& filter_word(const KeyId& key) { return filter_[(key.low >> 6) & (filter_.size() - 1)]; }
  static std::uint64_t filter_bits(const KeyId& key) {
    return std::uint64_t{1} << (key.low & 63) | std::uint64_t{1} << (key.high & 63);
  }
  void link_request(const Parked& parked);
  void unlink_request(const Parked& parked);
  void heap_put(std::size_t place, Entry* entry);
  void heap_rise(std::size_t place, Entry* entry);
  void heap_remove(Entry* entry);

  const std::uint64_t parked_max_;
  std::map<std::uint64_t, Entry> entries_;
  std::unordered_map<KeyId, Waiters, KeyIdHash> waiting_;
  std::deque<KeyId> written_keys_;  // keys that may have candidates
  // A Bloom filter: two bits in one word for each key of waiting_, and for some keys that have left it. No transaction
  // waits for most of the written keys, and one load, mostly from the cache, shows that.
  std::vector<std::uint64_t> filter_{0};
  std::size_t filter_keys_ = 0;  // added since the filter was built
  std::unordered_map<RequestName, OfRequest, RequestNameHash> requests_;
  std::vector<Entry*> heap_;  // by deadline
  std::uint64_t last_id_ = 0;
  SharedLimit memory_bytes_;
  std::vector<KeyId> keys_;  // scratch
};

}  // namespace kilokv::server
