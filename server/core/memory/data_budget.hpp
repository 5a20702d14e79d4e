// The memory that the data may take: what --memory-limit leaves after everything else
// (DatabaseOptions::data_bytes_max).
//
// Invariant: what the engine holds, plus what admitted requests may still add to it, is within the limit. So a batch
// that was admitted always has its memory. A request reserves the most that it may add, and gives it back when all its
// transactions are answered. Until then, what it has added counts twice. That is safe, and it does not last.
//
// Deletes leave room among the keys (engine/table/key_room.hpp). When the memory is full, a request whose new keys all
// fit there reserves no memory for them.
//
// Clients share the room that is left for reservations, as SharedLimit says. So nobody can reserve all of it, although
// a transaction that waits may keep its reservation for long.
//
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "server/core/clients/shared_limit.hpp"

namespace kilokv::server {

// The most that a request may add to the data.
struct NewData {
  std::uint64_t records = 0;  // keys that may be new
  std::uint64_t bytes = 0;    // of these keys and of values, without the slots of the table
  // Values that are copied from other keys. Each may be as large as the largest value in the database.
  std::uint64_t copied_values = 0;
  std::uint64_t entry_bytes = 0;    // of `bytes`: what may come from engine::KeyRoom
  std::uint64_t longest_entry = 0;  // of a single key

  NewData& operator+=(const NewData& other) {
    records += other.records;
    bytes += other.bytes;
    copied_values += other.copied_values;
    entry_bytes += other.entry_bytes;
    longest_entry = std::max(longest_entry, other.longest_entry);
    return *this;
  }
  NewData& operator-=(const NewData& other) {  // the longest entry stays
    records -= other.records;
    bytes -= other.bytes;
    copied_values -= other.copied_values;
    entry_bytes -= other.entry_bytes;
    return *this;
  }
};

class DataBudget {
 public:
  // `limit`: --memory-limit, which the refusals show. `data_max`: the part of it for data; 0: there is no limit.
  DataBudget(std::uint64_t limit, std::uint64_t data_max) : limit_(limit), data_max_(data_max) {}

  // RESOURCE_EXHAUSTED: there is no memory for it now, or the client has its share. A retry can succeed, unless the
  // request alone is too large. `largest_value`: the largest one that is known. What is reserved already grows with it.
  // `client`: what the client has reserved; null: nobody in particular. release() gets the same.
  // `in_room` becomes true if room among the keys is reserved for the new ones; null: it must not be.
  Status reserve(const NewData& wanted, std::uint64_t largest_value, Held* client = nullptr, bool* in_room = nullptr);
  void release(const NewData& reserved, std::uint64_t largest_value, Held* client = nullptr, bool in_room = false);
  // What the engine holds now.
  void set_held(const engine::EngineMemory& held);

  engine::EngineMemory held() const;
  std::uint64_t data_max() const { return data_max_; }
  // For the start. RESOURCE_EXHAUSTED if the stored data, which takes `bytes`, does not fit.
  Status check_stored(std::uint64_t bytes) const;
  // For the replay of the log, which may need more for a while than the data has at its end. Nothing else needs memory
  // then. RESOURCE_EXHAUSTED if `bytes` are more than the whole limit.
  Status check_replay(std::uint64_t bytes) const;

 private:
  // With the most that the table takes while it grows.
  static std::uint64_t bytes_with(const engine::EngineMemory& held, const NewData& added, std::uint64_t largest_value,
                                  std::uint64_t in_room);
  // What a reservation counts as part of a share. It does not change until the release.
  static std::uint64_t share_bytes(const NewData& reserved, std::uint64_t largest_value);
  std::uint64_t room_left(const NewData& wanted) const;
  std::uint64_t bytes_in_room() const;
  Status check_share(std::uint64_t free_bytes, std::uint64_t wanted, const Held& client) const;
  Status does_not_fit(std::uint64_t bytes) const;

  const std::uint64_t limit_, data_max_;
  mutable std::mutex mutex_;
  engine::EngineMemory held_;
  NewData reserved_;
  NewData in_room_;                // the part of reserved_ that has room among the keys
  std::uint64_t share_bytes_ = 0;  // of all that is reserved
  std::uint64_t largest_value_ = 0;
};

}  // namespace kilokv::server
