// Parked transactions: a WAIT guard was false at the end of their batch. They run again when a key of their guards was
// written or their time is up, and cost nothing until then.
//
// Indexes: by guard key (every key of every guard), by deadline (a heap), by request, by id. A range guard needs none:
// once false it stays false.
// A write to a key makes candidates of all who wait for it, in constant time however many they are; next_candidate()
// then hands them out one by one, so that the caller can spread the work over batches. Keys take turns, and so do those
// who wait for one key: each comes up again only after all others, though the key is written all the time.
// Memory: a one-key withdrawal in a session takes about 630 bytes of heap, 180 of them the packed transaction.
//
// Thread safety: the executor thread alone.
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
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// What is parked beside the transaction itself.
struct Parked {
  std::uint64_t id = 0;         // 0: given by park(); kept when the transaction is parked again
  std::shared_ptr<void> owner;  // whatever the caller needs to answer it
  std::optional<SessionId> session;
  std::uint64_t request = 0;  // number in the session
  std::uint32_t index = 0;    // in the request
  std::uint64_t arrival = 0;  // first arrival; unique, or ordered by index among those of one request
  BatchNumber admitted_batch = 0;
  TimeUs deadline_us = 0;   // against batch stamps
  std::uint32_t guard = 0;  // the deciding guard
  std::uint8_t precedence = 0;
  std::string packed;  // filled by park() (engine::pack_transaction)
};

class ParkingLot {
 public:
  ParkingLot(std::uint64_t parked_max, std::uint64_t parked_bytes_max);
  ~ParkingLot();
  ParkingLot(const ParkingLot&) = delete;
  ParkingLot& operator=(const ParkingLot&) = delete;

  // Parks transaction t of `columns`; returns its id. RESOURCE_EXHAUSTED beyond either limit: it is not parked.
  Result<std::uint64_t> park(const engine::TransactionColumns& columns, std::size_t t, Parked parked);

  // A batch wrote these keys (Engine::before_images).
  void written(std::span<const engine::BeforeImage> images);
  // The next one that waits for a key written since it last came up or was parked; null: none. It stays parked.
  const Parked* next_candidate();
  bool has_candidates() const { return !written_keys_.empty(); }
  // Appends the ids of at most `max` of those whose deadline is at or before `stamp_us`.
  void due(TimeUs stamp_us, std::size_t max, std::vector<std::uint64_t>* ids) const;
  // The earliest deadline; kNever (core/environment.hpp) when nothing is parked.
  TimeUs next_deadline_us() const;

  // Null if there is none such (any more); valid until it is taken.
  const Parked* find(std::uint64_t id) const;
  // Requires: find(id) != nullptr.
  Parked take(std::uint64_t id);

  // Ids of a request's parked transactions, or of one of them, in order of index.
  std::vector<std::uint64_t> of_request(const SessionId& session, std::uint64_t request,
                                        std::vector<std::uint32_t> indices) const;
  // In order of id, after `after_id`, at most `limit`.
  std::vector<const Parked*> list(std::uint64_t after_id, std::size_t limit) const;

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry;
  struct Wait {  // an entry in the list of those that wait for a key
    Entry* entry = nullptr;
    Wait* previous = nullptr;
    Wait* next = nullptr;
    std::uint64_t writes_seen = 0;
    KeyId key;
  };
  struct Waiters {  // for one key: first those that have not seen its last write, then those that have
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
    Entry* request_previous = nullptr;  // the other parked ones of its request
    Entry* request_next = nullptr;
  };
  struct RequestName {
    SessionId session;
    std::uint64_t number = 0;
    friend bool operator==(const RequestName&, const RequestName&) = default;
  };
  struct KeyIdHash {
    std::size_t operator()(const KeyId& key) const noexcept { return key.low; }
  };
  struct RequestNameHash {
    std::size_t operator()(const RequestName& name) const noexcept;
  };

  static std::uint64_t cost(const Parked& parked, std::size_t waits);
  Status check_limits(std::uint64_t bytes) const;
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
  void link_request(Entry* entry);
  void unlink_request(Entry* entry);
  void heap_put(std::size_t place, Entry* entry);
  void heap_rise(std::size_t place, Entry* entry);
  void heap_remove(Entry* entry);

  const std::uint64_t parked_max_;
  const std::uint64_t parked_bytes_max_;
  std::map<std::uint64_t, Entry> entries_;
  std::unordered_map<KeyId, Waiters, KeyIdHash> waiting_;
  std::deque<KeyId> written_keys_;  // that may have candidates
  // Two bits in a word for each key of waiting_, and for some that have left it: most written keys nobody waits for,
  // and one load, mostly from the cache, tells so.
  std::vector<std::uint64_t> filter_{0};
  std::size_t filter_keys_ = 0;  // added since the filter was built
  std::unordered_map<RequestName, Entry*, RequestNameHash> requests_;
  std::vector<Entry*> heap_;  // by deadline
  std::uint64_t last_id_ = 0;
  std::uint64_t memory_bytes_ = 0;
  std::vector<KeyId> keys_;  // scratch
};

}  // namespace kilokv::server
