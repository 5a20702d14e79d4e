#include "server/core/waiting/parking_lot.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/txn/kinds.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 1'000'000;
constexpr std::size_t kLanesPerBatch = 1024;  // that become due; about a quarter of a millisecond
constexpr std::uint64_t kPointerBytes = sizeof(void*);
constexpr std::uint64_t kHashNodeBytes = 2 * kPointerBytes + kAllocationBytes;

Held* bytes_of_client(const Parked& parked) {
  Client* const client = parked.holder();
  return client == nullptr ? nullptr : client->account(&Client::parked_bytes);
}

}  // namespace

ParkingLot::ParkingLot(std::uint64_t parked_max, std::uint64_t parked_bytes_max)
    : parked_max_(parked_max),
      memory_bytes_(parked_bytes_max,
                    {ErrorReason::parked_full, "wait_timeout", " bytes of parked transactions", "--parked-bytes-max",
                     kRetryAfterUs},
                    SharedLimit::kLittleBytes) {}
ParkingLot::~ParkingLot() = default;

static std::uint32_t range_guards_of(const engine::TransactionColumns& columns, std::size_t t) {
  const auto* const kinds = columns.guard_kind.data();
  return static_cast<std::uint32_t>(
      std::count_if(kinds + columns.guard_begin(t), kinds + columns.guard_end[t],
                    [](std::uint8_t kind) { return engine::uses_range(static_cast<engine::GuardKind>(kind)); }));
}

Result<std::uint64_t> ParkingLot::park(const engine::TransactionColumns& columns, std::size_t t, Parked parked) {
  parked.packed = engine::pack_transaction(columns, t);
  parked.range_guards = range_guards_of(columns, t);
  parked.awake = false;
  collect_keys(columns, t);
  Client* const holder = parked.holder();
  const std::uint64_t bytes = cost(parked, key_ids_.size()) + (lanes_.contains(holder) ? 0 : bytes_of_lane());
  if (parked.id != 0) {
    memory_bytes_.add(bytes_of_client(parked), bytes);
  } else {
    Status status = check_count();
    if (status.ok()) status = memory_bytes_.charge(bytes_of_client(parked), bytes);
    if (!status.ok()) return status;
    parked.id = ++last_id_;
  }
  const std::uint64_t id = parked.id;
  const auto [it, inserted] = entries_.try_emplace(id, std::move(parked));
  KILOKV_CHECK(inserted && id <= last_id_);
  Entry* const entry = &it->second;
  Lane* const lane = &lanes_.try_emplace(holder, holder).first->second;
  entry->lane = lane;
  ++lane->entries;
  keys_.link(entry, key_ids_);
  link_request(*entry);
  lane->asleep.push(entry);
  file(lane);
  return id;
}

Parked ParkingLot::take(std::uint64_t id) {
  const auto it = entries_.find(id);
  KILOKV_CHECK(it != entries_.end());
  Entry* const entry = &it->second;
  Lane* const lane = entry->lane;
  std::uint64_t bytes = cost(*entry, entry->wait_count);
  leave_queue(entry);
  keys_.unlink(entry);
  unlink_request(*entry);
  if (--lane->entries == 0) {
    bytes += bytes_of_lane();
    keys_.forget(lane);
    due_.leave(&lane->due_turn);
    awake_.leave(&lane->awake_turn);
    lane->keep_clocks();
    lanes_.erase(entry->holder());
  }
  memory_bytes_.release(bytes_of_client(*entry), bytes);
  Parked parked = std::move(*entry);
  entries_.erase(it);
  return parked;
}

const Parked* ParkingLot::find(std::uint64_t id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

void ParkingLot::set_next_time(Parked* parked, TimeUs next_time_us) {
  auto* const entry = static_cast<Entry*>(parked);
  Lane* const lane = entry->lane;
  lane->asleep.remove(entry);
  entry->next_time_us = next_time_us;
  lane->asleep.push(entry);
  file(lane);
}

void ParkingLot::wake(Parked* parked) {
  auto* const entry = static_cast<Entry*>(parked);
  Lane* const lane = entry->lane;
  lane->asleep.remove(entry);
  file(lane);
  entry->awake = true;
  ++awake_count_;
  lane->awake.append(entry);
  if (!lane->awake_turn.waits()) awake_.enter(&lane->awake_turn, lane->awake.first()->part);
}

void ParkingLot::begin_batch(TimeUs stamp_us) {
  due_through_us_ = std::max(due_through_us_, stamp_us);
  for (std::size_t i = 0; i < kLanesPerBatch && !by_due_.empty(); ++i) {
    if (by_due_.first()->due_us > due_through_us_) break;
    file(by_due_.first());
  }
  due_.begin_batch();
  awake_.begin_batch();
}

// Puts the lane where it belongs, after its earliest due time or the stamp has changed.
void ParkingLot::file(Lane* lane) {
  const bool has_sleepers = !lane->asleep.empty();
  const TimeUs due_us = has_sleepers ? lane->asleep.first()->due_us() : kNever;
  const bool has_due = has_sleepers && due_us <= due_through_us_;
  if (by_due_.has(*lane)) {
    if (!has_due && lane->due_us == due_us) return;
    by_due_.remove(lane);
  }
  lane->due_us = due_us;
  if (has_due) {
    if (!lane->due_turn.waits()) due_.enter(&lane->due_turn, lane->asleep.first()->part);
    return;
  }
  due_.leave(&lane->due_turn);
  if (has_sleepers) by_due_.push(lane);
}

Parked* ParkingLot::next_awake() {
  const Turn* const turn = awake_.next();
  return turn == nullptr ? nullptr : turn->lane->awake.first();
}

Parked* ParkingLot::next_due() {
  const Turn* const turn = due_.next();
  return turn == nullptr ? nullptr : turn->lane->asleep.first();
}

void ParkingLot::choose(Parked* parked) {
  auto* const entry = static_cast<Entry*>(parked);
  Lane* const lane = entry->lane;
  if (!entry->awake) {
    due_.took(&lane->due_turn, entry->part);
    lane->asleep.remove(entry);
    return file(lane);
  }
  awake_.took(&lane->awake_turn, entry->part);
  leave_awake(entry);
  if (!lane->awake.empty()) awake_.enter(&lane->awake_turn, lane->awake.first()->part);
}

void ParkingLot::put_off(Parked* parked) {
  Lane* const lane = static_cast<Entry*>(parked)->lane;
  parked->awake ? awake_.put_off(&lane->awake_turn) : due_.put_off(&lane->due_turn);
}

void ParkingLot::leave_awake(Entry* entry) {
  entry->lane->awake.remove(entry);
  entry->awake = false;
  --awake_count_;
}

void ParkingLot::leave_queue(Entry* entry) {
  Lane* const lane = entry->lane;
  if (entry->awake) {
    leave_awake(entry);
    if (lane->awake.empty()) awake_.leave(&lane->awake_turn);
  } else if (lane->asleep.has(*entry)) {
    lane->asleep.remove(entry);
    file(lane);
  }
}

TimeUs ParkingLot::next_due_us() const {
  if (!due_.empty()) return due_through_us_;
  return by_due_.empty() ? kNever : by_due_.first()->due_us;
}

std::optional<ParkingLot::IdRange> ParkingLot::ids_of_request(const RequestName& name) const {
  const auto it = requests_.find(name);
  if (it == requests_.end()) return std::nullopt;
  return it->second.ids;
}

ParkingLot::Page ParkingLot::list(std::uint64_t after_id, std::size_t limit, std::uint64_t last_id) const {
  Page page;
  std::size_t looks = 0;
  for (auto it = entries_.upper_bound(after_id); it != entries_.end() && it->first <= last_id; ++it) {
    page.has_more = page.parked.size() == limit || looks >= kLooksPerStep;
    if (page.has_more) break;
    page.parked.push_back(&it->second);
    looks += looks_of(it->second);
  }
  return page;
}

Status ParkingLot::check_count() const {
  if (entries_.size() < parked_max_) return {};
  return Status::exhausted(ErrorReason::parked_full,
                           {"wait_timeout", std::to_string(parked_max_) + " parked transactions",
                            std::to_string(entries_.size() + 1) + " parked transactions", "--parked-max"},
                           kRetryAfterUs);
}

std::uint64_t ParkingLot::cost(const Parked& parked, std::size_t waits) {
  constexpr std::uint64_t kTreeNodeBytes = 5 * kPointerBytes + kAllocationBytes;
  return parked.owner_bytes + sizeof(Entry) + kTreeNodeBytes + 2 * kPointerBytes + parked.packed.size() +
         kAllocationBytes + waits * KeyIndex::bytes_per_key() + kAllocationBytes +
         (parked.session ? sizeof(RequestName) + sizeof(OfRequest) + kHashNodeBytes : 0);
}

std::uint64_t ParkingLot::bytes_of_lane() {
  constexpr std::uint64_t kPlaces = 3;  // in heaps: of what is looked at, awake, and due or asleep
  return sizeof(Lane) + kPointerBytes + kHashNodeBytes + kAllocationBytes + kPlaces * kPointerBytes;
}

// Collects the keys of all guards in key_ids_, each once.
void ParkingLot::collect_keys(const engine::TransactionColumns& columns, std::size_t t) {
  key_ids_.clear();
  for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
    if (uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]))) continue;
    if (columns.guard_key[g] != engine::kNone) key_ids_.push_back(columns.key_id[columns.guard_key[g]]);
    if (columns.guard_other[g] != engine::kNone) key_ids_.push_back(columns.key_id[columns.guard_other[g]]);
  }
  std::sort(key_ids_.begin(), key_ids_.end(),
            [](const KeyId& a, const KeyId& b) { return std::pair(a.high, a.low) < std::pair(b.high, b.low); });
  key_ids_.erase(std::unique(key_ids_.begin(), key_ids_.end()), key_ids_.end());
}

void ParkingLot::link_request(const Parked& parked) {
  if (!parked.session) return;
  const RequestName name{*parked.session, parked.request};
  OfRequest& all = requests_.try_emplace(name, OfRequest{0, {parked.id, parked.id}}).first->second;
  ++all.count;
  all.ids.first = std::min(all.ids.first, parked.id);  // one that is parked again may come after later ones
  all.ids.last = std::max(all.ids.last, parked.id);
}

void ParkingLot::unlink_request(const Parked& parked) {
  if (!parked.session) return;
  const auto it = requests_.find({*parked.session, parked.request});
  if (--it->second.count == 0) requests_.erase(it);
}

}  // namespace kilokv::server
