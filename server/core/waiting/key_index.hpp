// Which parked transactions wait for which key, and in which order they are looked at after a write.
//
// A write to a key makes candidates of all transactions that wait for it. The lanes of the clients are told first, then
// each lane's turn brings its candidates up one by one. So the caller can spread the work over batches. Clients take
// turns, measured by looks (parked.hpp). Within a lane, keys take turns, and so do the transactions that wait for one
// key: each comes up again only after all others, even if the key is written all the time.
//
// To tell lanes takes one step for each key and client. written() does as many as the batch wrote keys. The rest, of
// keys that many clients wait for, is left to tell_lanes().
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/engine.hpp"
#include "server/core/waiting/growing_table.hpp"
#include "server/core/waiting/lane.hpp"
#include "server/core/waiting/lane_turns.hpp"

namespace kilokv::server {

class KeyIndex {
 public:
  // The entry waits for these keys from now on, and has seen all writes to them. Requires: its lane is set, and each
  // key is there once.
  void link(Entry* entry, std::span<const KeyId> keys);
  void unlink(Entry* entry);
  // Nothing of the lane is linked any more, and it is about to go.
  void forget(Lane* lane) { turns_.leave(&lane->looked_at); }

  // A batch wrote these keys.
  void written(std::span<const engine::BeforeImage> images);
  void tell_lanes(std::size_t steps);
  // An entry with a key that was written after the entry last came up, or was linked. Null: the lanes that were told
  // have none.
  Entry* next_candidate();
  // Whether there may be candidates, or lanes that have to be told.
  bool has_candidates() const { return !written_.empty() || !turns_.empty(); }

  static std::uint64_t bytes_per_key();  // of each entry, at most

 private:
  struct HashOfKey {  // a key id is a keyed hash already
    std::uint64_t operator()(const KeyId& key) const noexcept { return key.low; }
  };
  struct HashOfGroup {
    std::uint64_t operator()(const Group::Name& name) const noexcept {
      const auto lane = reinterpret_cast<std::uintptr_t>(name.lane);
      return name.key->id.low ^ lane * 0x9E3779B97F4A7C15u;
    }
  };

  Group* group_of(const KeyId& id, Lane* lane);
  Group* group_of(WaitedKey* key, Lane* lane);
  static Group* start(Group* group, WaitedKey* key, Lane* lane);
  void remove(Group* group);
  void tell(Group* group);
  static Wait* next_wait(Lane* lane);
  void enter(Lane* lane);

  GrowingTable<WaitedKey, HashOfKey> keys_;  // no transaction waits for most of the written keys: its filter shows that
  GrowingTable<Group, HashOfGroup> groups_;  // those that are not inside their keys
  LinkedList<WaitedKey, &WaitedKey::in_written> written_;
  LaneTurns turns_;  // of lanes with written groups
};

}  // namespace kilokv::server
