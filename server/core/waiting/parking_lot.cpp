#include "server/core/waiting/parking_lot.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/txn/kinds.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 1'000'000;
constexpr std::size_t kFilterBitsPerKey = 32;   // at least; about one lookup in 32 is then wasted on a wrong bit
constexpr std::uint64_t kAllocationBytes = 16;  // the allocator's overhead

Held* bytes_of_client(const Parked& parked) {
  if (parked.client == nullptr) return nullptr;
  Client* const client = parked.session ? parked.client->keeper() : parked.client;
  return client->account(&Client::parked_bytes);
}

}  // namespace

ParkingLot::ParkingLot(std::uint64_t parked_max, std::uint64_t parked_bytes_max)
    : parked_max_(parked_max),
      memory_bytes_(parked_bytes_max,
                    {ErrorReason::parked_full, "wait_timeout", " bytes of parked transactions", "--parked-bytes-max",
                     kRetryAfterUs},
                    SharedLimit::kLittleBytes) {}
ParkingLot::~ParkingLot() = default;

Result<std::uint64_t> ParkingLot::park(const engine::TransactionColumns& columns, std::size_t t, Parked parked) {
  parked.packed = engine::pack_transaction(columns, t);
  collect_keys(columns, t);
  const std::uint64_t bytes = cost(parked, keys_.size());
  if (parked.id != 0) {
    memory_bytes_.add(bytes_of_client(parked), bytes);
  } else {
    Status status = check_count();
    if (status.ok()) status = memory_bytes_.charge(bytes_of_client(parked), bytes);
    if (!status.ok()) return status;
    parked.id = ++last_id_;
  }
  const auto [it, inserted] = entries_.try_emplace(parked.id);
  KILOKV_CHECK(inserted && parked.id <= last_id_);
  Entry* entry = &it->second;
  entry->parked = std::move(parked);
  link_keys(entry);
  link_request(entry->parked);
  heap_.push_back(entry);
  heap_rise(heap_.size() - 1, entry);
  return entry->parked.id;
}

Parked ParkingLot::take(std::uint64_t id) {
  const auto it = entries_.find(id);
  KILOKV_CHECK(it != entries_.end());
  Entry* entry = &it->second;
  memory_bytes_.release(bytes_of_client(entry->parked), cost(entry->parked, entry->wait_count));
  unlink_keys(entry);
  unlink_request(entry->parked);
  heap_remove(entry);
  Parked parked = std::move(entry->parked);
  entries_.erase(it);
  return parked;
}

const Parked* ParkingLot::find(std::uint64_t id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second.parked;
}

Parked* ParkingLot::find(std::uint64_t id) {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second.parked;
}

void ParkingLot::written(std::span<const engine::BeforeImage> images) {
  if (waiting_.empty()) {
    return;
  }
  for (const engine::BeforeImage& image : images) {
    if (const std::uint64_t bits = filter_bits(image.id); (filter_word(image.id) & bits) != bits) {
      continue;
    }
    const auto it = waiting_.find(image.id);
    if (it == waiting_.end()) {
      continue;
    }
    ++it->second.writes;
    if (!std::exchange(it->second.listed, true)) {
      written_keys_.push_back(image.id);
    }
  }
}

Parked* ParkingLot::next_candidate() {
  while (!written_keys_.empty()) {
    const KeyId key = written_keys_.front();
    written_keys_.pop_front();
    const auto it = waiting_.find(key);
    if (it == waiting_.end()) {
      continue;
    }
    Waiters& waiters = it->second;
    Wait* wait = waiters.first;
    if (wait->writes_seen == waiters.writes) {
      waiters.listed = false;
      continue;
    }
    wait->writes_seen = waiters.writes;
    remove(&waiters, wait);
    append(&waiters, wait);
    written_keys_.push_back(key);
    return &wait->entry->parked;
  }
  return nullptr;
}

void ParkingLot::due(TimeUs stamp_us, std::size_t max, std::vector<std::uint64_t>* ids) const {
  std::vector<std::size_t> places{0};  // parents before children: only subtrees with a due entry are visited
  while (!places.empty() && max > 0) {
    const std::size_t place = places.back();
    places.pop_back();
    if (place < heap_.size() && heap_[place]->parked.deadline_us <= stamp_us) {
      if (!heap_[place]->parked.awake) {
        ids->push_back(heap_[place]->parked.id);
        --max;
      }
      places.push_back(2 * place + 1);
      places.push_back(2 * place + 2);
    }
  }
}

TimeUs ParkingLot::next_deadline_us() const { return heap_.empty() ? kNever : heap_.front()->parked.deadline_us; }

std::optional<ParkingLot::IdRange> ParkingLot::ids_of_request(const RequestName& name) const {
  const auto it = requests_.find(name);
  if (it == requests_.end()) {
    return std::nullopt;
  }
  return it->second.ids;
}

std::vector<const Parked*> ParkingLot::list(std::uint64_t after_id, std::size_t limit, std::uint64_t last_id) const {
  std::vector<const Parked*> listed;
  for (auto it = entries_.upper_bound(after_id); it != entries_.end() && it->first <= last_id && listed.size() < limit;
       ++it) {
    listed.push_back(&it->second.parked);
  }
  return listed;
}

Status ParkingLot::check_count() const {
  if (entries_.size() < parked_max_) return {};
  return Status::exhausted(ErrorReason::parked_full,
                           {"wait_timeout", std::to_string(parked_max_) + " parked transactions",
                            std::to_string(entries_.size() + 1) + " parked transactions", "--parked-max"},
                           kRetryAfterUs);
}

std::uint64_t ParkingLot::cost(const Parked& parked, std::size_t waits) {
  constexpr std::uint64_t kPointerBytes = sizeof(void*);
  constexpr std::uint64_t kHashNodeBytes = 2 * kPointerBytes + kAllocationBytes;
  constexpr std::uint64_t kTreeNodeBytes = 5 * kPointerBytes + kAllocationBytes;
  return parked.owner_bytes + sizeof(Entry) + kTreeNodeBytes + kPointerBytes + parked.packed.size() + kAllocationBytes +
         waits * (sizeof(Wait) + sizeof(KeyId) + sizeof(Waiters) + kHashNodeBytes + 4 * kFilterBitsPerKey / 8) +
         kAllocationBytes + (parked.session ? sizeof(RequestName) + sizeof(OfRequest) + kHashNodeBytes : 0);
}

// Collects the keys of all guards in keys_, each once.
void ParkingLot::collect_keys(const engine::TransactionColumns& columns, std::size_t t) {
  keys_.clear();
  for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
    if (uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]))) {
      continue;
    }
    keys_.push_back(columns.key_id[columns.guard_key[g]]);
    if (columns.guard_other[g] != engine::kNone) {
      keys_.push_back(columns.key_id[columns.guard_other[g]]);
    }
  }
  std::sort(keys_.begin(), keys_.end(),
            [](const KeyId& a, const KeyId& b) { return std::pair(a.high, a.low) < std::pair(b.high, b.low); });
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
}

void ParkingLot::link_keys(Entry* entry) {
  entry->wait_count = static_cast<std::uint32_t>(keys_.size());
  entry->waits = std::make_unique<Wait[]>(keys_.size());
  for (std::uint32_t i = 0; i < entry->wait_count; ++i) {
    const auto [it, inserted] = waiting_.try_emplace(keys_[i]);
    Wait& wait = entry->waits[i];
    wait.entry = entry;
    wait.writes_seen = it->second.writes;
    wait.key = keys_[i];
    append(&it->second, &wait);
    if (inserted) {
      add_to_filter(wait.key);
    }
  }
}

void ParkingLot::unlink_keys(Entry* entry) {
  for (std::uint32_t i = 0; i < entry->wait_count; ++i) {
    Wait& wait = entry->waits[i];
    const auto it = waiting_.find(wait.key);
    remove(&it->second, &wait);
    if (it->second.first == nullptr) {
      waiting_.erase(it);
    }
  }
}

void ParkingLot::append(Waiters* waiters, Wait* wait) {
  wait->previous = waiters->last;
  wait->next = nullptr;
  (waiters->last == nullptr ? waiters->first : waiters->last->next) = wait;
  waiters->last = wait;
}

void ParkingLot::remove(Waiters* waiters, Wait* wait) {
  (wait->previous == nullptr ? waiters->first : wait->previous->next) = wait->next;
  (wait->next == nullptr ? waiters->last : wait->next->previous) = wait->previous;
}

// Requires: `key` is new in waiting_.
void ParkingLot::add_to_filter(const KeyId& key) {
  if (++filter_keys_ * kFilterBitsPerKey > filter_.size() * 64) {
    rebuild_filter();  // adds the key, too
  } else {
    filter_word(key) |= filter_bits(key);
  }
}

// Makes the filter so large that as many keys again can come before the next rebuild.
void ParkingLot::rebuild_filter() {
  filter_.assign(std::bit_ceil(2 * waiting_.size() * kFilterBitsPerKey / 64), 0);
  filter_keys_ = waiting_.size();
  for (const auto& [key, waiters] : waiting_) {
    filter_word(key) |= filter_bits(key);
  }
}

void ParkingLot::link_request(const Parked& parked) {
  if (!parked.session) {
    return;
  }
  const RequestName name{*parked.session, parked.request};
  OfRequest& all = requests_.try_emplace(name, OfRequest{0, {parked.id, parked.id}}).first->second;
  ++all.count;
  all.ids.first = std::min(all.ids.first, parked.id);  // one that is parked again may come after later ones
  all.ids.last = std::max(all.ids.last, parked.id);
}

void ParkingLot::unlink_request(const Parked& parked) {
  if (!parked.session) {
    return;
  }
  const auto it = requests_.find({*parked.session, parked.request});
  if (--it->second.count == 0) {
    requests_.erase(it);
  }
}

void ParkingLot::heap_put(std::size_t place, Entry* entry) {
  heap_[place] = entry;
  entry->heap_place = static_cast<std::uint32_t>(place);
}

// Puts `entry` at its position on the path from `place`, which is free, to the root.
void ParkingLot::heap_rise(std::size_t place, Entry* entry) {
  while (place > 0 && heap_[(place - 1) / 2]->parked.deadline_us > entry->parked.deadline_us) {
    heap_put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  heap_put(place, entry);
}

void ParkingLot::heap_remove(Entry* entry) {
  Entry* last = heap_.back();
  heap_.pop_back();
  if (last == entry) {
    return;
  }
  std::size_t place = entry->heap_place;
  for (;;) {  // the earlier child moves up into the free place until `last` fits
    std::size_t child = 2 * place + 1;
    if (child + 1 < heap_.size() && heap_[child + 1]->parked.deadline_us < heap_[child]->parked.deadline_us) {
      ++child;
    }
    if (child >= heap_.size() || heap_[child]->parked.deadline_us >= last->parked.deadline_us) {
      break;
    }
    heap_put(place, heap_[child]);
    place = child;
  }
  heap_rise(place, last);
}

}  // namespace kilokv::server
