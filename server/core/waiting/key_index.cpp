#include "server/core/waiting/key_index.hpp"

#include <memory>
#include <utility>

#include "server/core/options.hpp"

namespace kilokv::server {
namespace {

// What a look at the entry takes of a step, which counts as a whole batch.
std::uint64_t cost_of_look(const Entry& entry) { return looks_of(entry) * kWholeBatch / kLooksPerStep; }

}  // namespace

std::uint64_t KeyIndex::bytes_per_key() {
  // It may be the only one of its key, or of its group. A group that is not inside takes less than a key.
  static_assert(sizeof(Group) <= sizeof(WaitedKey));
  return sizeof(Wait) + sizeof(WaitedKey) + kAllocationBytes + decltype(keys_)::kBytesPerElement;
}

void KeyIndex::link(Entry* entry, std::span<const KeyId> keys) {
  entry->wait_count = static_cast<std::uint32_t>(keys.size());
  entry->waits = std::make_unique<Wait[]>(keys.size());
  for (std::uint32_t i = 0; i < entry->wait_count; ++i) {
    Wait& wait = entry->waits[i];
    wait.entry = entry;
    wait.group = group_of(keys[i], entry->lane);
    wait.writes_seen = wait.group->key->writes;
    wait.group->waits.append(&wait);
  }
}

// The group of this lane for the key. It is made if it is not there yet, and has then seen all writes.
Group* KeyIndex::group_of(const KeyId& id, Lane* lane) {
  WaitedKey* const found = keys_.find(id);
  return group_of(found != nullptr ? found : keys_.insert(std::make_unique<WaitedKey>(id)), lane);
}

Group* KeyIndex::group_of(WaitedKey* key, Lane* lane) {
  if (key->inside.lane == lane) return &key->inside;
  if (key->inside.lane == nullptr) return start(&key->inside, key, lane);
  if (Group* const found = groups_.find(Group::Name{key, lane})) return found;
  auto group = std::make_unique<Group>();
  start(group.get(), key, lane);
  return groups_.insert(std::move(group));
}

Group* KeyIndex::start(Group* group, WaitedKey* key, Lane* lane) {
  group->key = key;
  group->lane = lane;
  group->writes_seen = key->writes;
  key->groups.append(group);
  return group;
}

void KeyIndex::unlink(Entry* entry) {
  for (std::uint32_t i = 0; i < entry->wait_count; ++i) {
    Wait& wait = entry->waits[i];
    wait.group->waits.remove(&wait);
    if (wait.group->waits.empty()) remove(wait.group);
  }
}

void KeyIndex::remove(Group* group) {
  WaitedKey* const key = group->key;
  key->groups.remove(group);
  if (group->is_written) group->lane->written.remove(group);
  if (group->lane->written.empty()) turns_.leave(&group->lane->looked_at);
  if (group == &key->inside) {
    key->inside = {};
  } else {
    groups_.erase(group);
  }
  if (!key->groups.empty()) return;
  if (key->is_written) written_.remove(key);
  keys_.erase(key);
}

void KeyIndex::written(std::span<const engine::BeforeImage> images) {
  if (keys_.empty()) return;
  for (const engine::BeforeImage& image : images) {
    WaitedKey* const key = keys_.find(image.id);
    if (key == nullptr) continue;
    ++key->writes;
    if (!std::exchange(key->is_written, true)) written_.append(key);
  }
  tell_lanes(images.size());
}

// Keys take turns, and so do the groups of a key.
void KeyIndex::tell_lanes(std::size_t steps) {
  for (; steps > 0 && !written_.empty(); --steps) {
    WaitedKey* const key = written_.first();
    written_.remove(key);
    if (Group* const group = key->groups.first(); group->writes_seen != key->writes) {
      group->writes_seen = key->writes;
      key->groups.remove(group);
      key->groups.append(group);
      tell(group);
    }
    key->is_written = key->groups.first()->writes_seen != key->writes;
    if (key->is_written) written_.append(key);
  }
}

void KeyIndex::tell(Group* group) {
  if (group->is_written) return;
  group->is_written = true;
  group->lane->written.append(group);
  if (!group->lane->looked_at.waits()) enter(group->lane);
}

Entry* KeyIndex::next_candidate() {
  while (Turn* const turn = turns_.next()) {
    Wait* const wait = next_wait(turn->lane);
    if (wait == nullptr) {
      turns_.leave(turn);
      continue;
    }
    turns_.took(turn, cost_of_look(*wait->entry));
    if (!turn->lane->written.empty()) enter(turn->lane);
    return wait->entry;
  }
  return nullptr;
}

// Null: the lane has none. Then it has no written groups any more.
Wait* KeyIndex::next_wait(Lane* lane) {
  Wait* found = nullptr;
  while (found == nullptr && !lane->written.empty()) {
    Group* const group = lane->written.first();
    lane->written.remove(group);
    const std::uint64_t writes = group->key->writes;
    if (Wait* const wait = group->waits.first(); wait->writes_seen != writes) {
      wait->writes_seen = writes;
      group->waits.remove(wait);
      group->waits.append(wait);
      found = wait;
    }
    group->is_written = group->waits.first()->writes_seen != writes;
    if (group->is_written) lane->written.append(group);
  }
  return found;
}

// Requires: the lane has written groups.
void KeyIndex::enter(Lane* lane) {
  turns_.enter(&lane->looked_at, cost_of_look(*lane->written.first()->waits.first()->entry));
}

}  // namespace kilokv::server
