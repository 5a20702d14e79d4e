// What the parking lot keeps of each parked transaction and of each client, and how they are linked.
//
//   Lane       what one client has here: its sleepers by due time, its awake transactions, and its written groups
//   Entry      a parked transaction: asleep or awake in its lane, or chosen for a batch
//   WaitedKey  a key that somebody waits for: groups of the clients that wait for it. It has one group inside, because
//              most keys have one client
//   Group      transactions of one client that wait for one key: a wait for each. If the group inside became free, a
//              client can have two
//
// Invariants:
// - Waits in a group are ordered by the last write of the key that they have seen: first those that saw the oldest. So
//   are the groups of a key.
// - An entry is in the heap of its lane while it sleeps, in the list of awake ones while it is awake, and in neither
//   once it is chosen.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/base/types.hpp"
#include "server/core/waiting/indexed_heap.hpp"
#include "server/core/waiting/lane_turns.hpp"
#include "server/core/waiting/linked_list.hpp"
#include "server/core/waiting/parked.hpp"

namespace kilokv::server {

inline constexpr std::uint64_t kAllocationBytes = 16;  // the allocator's overhead

struct Entry;
struct Group;

struct Wait {
  Entry* entry = nullptr;
  Group* group = nullptr;
  Link<Wait> in_group;
  std::uint64_t writes_seen = 0;  // of the key
};

struct Entry : Parked {
  explicit Entry(Parked parked) : Parked(std::move(parked)) {}
  static bool is_due_before(const Entry& a, const Entry& b) {
    return a.due_us() != b.due_us() ? a.due_us() < b.due_us() : a.id < b.id;
  }

  Lane* lane = nullptr;
  std::unique_ptr<Wait[]> waits;
  std::uint32_t wait_count = 0;
  std::uint32_t asleep_place = kNoPlace;
  Link<Entry> in_awake;
};

struct WaitedKey;

struct Group {
  struct Name {
    const WaitedKey* key;
    const Lane* lane;
    friend bool operator==(const Name&, const Name&) = default;
  };
  Name name() const { return {key, lane}; }

  WaitedKey* key = nullptr;
  Lane* lane = nullptr;  // null: the group inside a key is free
  Link<Group> in_key, in_lane;
  LinkedList<Wait, &Wait::in_group> waits;
  std::uint64_t writes_seen = 0;  // of the key: the last one that the lane was told of
  bool is_written = false;        // it is in the lane's list
  Group* next_in_bucket = nullptr;
};

struct WaitedKey {
  explicit WaitedKey(const KeyId& key_id) : id(key_id) {}
  const KeyId& name() const { return id; }

  const KeyId id;
  Group inside;
  LinkedList<Group, &Group::in_key> groups;
  Link<WaitedKey> in_written;
  std::uint64_t writes = 0;  // batches that wrote the key
  bool is_written = false;   // there may be groups that were not told of its last write
  WaitedKey* next_in_bucket = nullptr;
};

// The clocks of its client go on from where they were when its last lane ended.
struct Lane {
  explicit Lane(Client* of) : client(of) {
    const double weight = client == nullptr ? 1 : client->user_weight.load(std::memory_order_relaxed);
    const Client::Waited before = client == nullptr ? Client::Waited() : client->waited;
    looked_at = {.lane = this, .weight = weight, .begin = before.looked_at};
    awake_turn = {.lane = this, .weight = weight, .begin = before.awake};
    due_turn = {.lane = this, .weight = weight, .begin = before.due};
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  static bool is_due_before(const Lane& a, const Lane& b) { return a.due_us < b.due_us; }
  // The lane is about to go.
  void keep_clocks() const {
    if (client != nullptr) client->waited = {looked_at.begin, awake_turn.begin, due_turn.begin};
  }

  Client* const client;  // null: nobody in particular
  std::uint64_t entries = 0;
  IndexedHeap<Entry, Entry::is_due_before, &Entry::asleep_place> asleep;
  LinkedList<Entry, &Entry::in_awake> awake;   // in the order in which they woke
  LinkedList<Group, &Group::in_lane> written;  // groups that may have candidates
  Turn looked_at, awake_turn, due_turn;        // for its candidates, for what is awake, for what is due
  TimeUs due_us = 0;                           // the earliest of its sleepers, while it is in the heap of lanes
  std::uint32_t due_place = kNoPlace;          // in this heap
};

}  // namespace kilokv::server
