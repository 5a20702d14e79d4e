#include "server/core/memory/data_budget.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace kilokv::server {
namespace {

// After this time, requests in flight may have ended, or a delete may have made room.
constexpr std::int64_t kRetryAfterUs = 100000;
constexpr std::uint64_t kEntryBytesMin = engine::KeyRoom::kShortMin * engine::KeyRoom::kUnitBytes;

}  // namespace

// `in_room`: entries of new keys that take the places of deleted keys.
std::uint64_t DataBudget::bytes_with(const engine::EngineMemory& held, const NewData& added,
                                     std::uint64_t largest_value, std::uint64_t in_room) {
  const std::uint64_t table = engine::table_bytes_until(held.slots, held.records + added.records);
  const std::uint64_t copies = added.copied_values * engine::new_value_bytes(largest_value);
  // The other entries open a block if the long free runs do not hold them.
  const std::uint64_t entries = added.entry_bytes - std::min(added.entry_bytes, in_room);
  const std::uint64_t in_runs = held.key_room.long_units * engine::KeyRoom::kUnitBytes;
  const std::uint64_t opened = engine::key_blocks_bytes(entries - std::min(entries, in_runs));
  const std::uint64_t rest = added.bytes - added.entry_bytes;
  return table + held.key_bytes + held.index_bytes + held.value_bytes + rest + std::max(entries, opened) + copies;
}

// The table grows in steps, for which nobody in particular pays.
std::uint64_t DataBudget::share_bytes(const NewData& reserved, std::uint64_t largest_value) {
  return reserved.bytes + reserved.copied_values * engine::new_value_bytes(largest_value);
}

// Requires: the lock. `free_bytes`: what would be left with the request.
Status DataBudget::check_share(std::uint64_t free_bytes, std::uint64_t wanted, const Held& client) const {
  if (share_bytes_ == 0) return {};
  const std::uint64_t sum = share_bytes_ + wanted;
  const auto beyond = SharedLimit::beyond_share(free_bytes + sum, sum, client, wanted);
  if (!beyond) return {};
  return Status::exhausted(
      ErrorReason::memory_full,
      {"memory", std::to_string(beyond->most) + " bytes of new data" + beyond->for_whom + " at the moment",
       std::to_string(beyond->held) + " bytes that unanswered requests" + beyond->whose + " may add, with this request",
       "--memory-limit"},
      kRetryAfterUs);
}

// How many keys like the longest of these have room. Requires: the lock. A key that has room already takes the places
// of all keys that it is as long as, and of one more.
std::uint64_t DataBudget::room_left(const NewData& wanted) const {
  if (wanted.longest_entry == 0) return 0;
  const std::uint64_t taken = in_room_.entry_bytes / wanted.longest_entry + in_room_.records;
  const std::uint64_t keys = held_.key_room.keys_of(wanted.longest_entry);
  return keys - std::min(keys, taken);
}

// What the keys that have room do not need of other memory. Requires: the lock. Blocks of memory that get empty go back
// to the system, so there may be less room than was reserved.
std::uint64_t DataBudget::bytes_in_room() const {
  if (in_room_.records == 0) return 0;
  const std::uint64_t keys = held_.key_room.keys_of(in_room_.longest_entry);
  return keys >= in_room_.records ? in_room_.entry_bytes : std::min(in_room_.entry_bytes, keys * kEntryBytesMin);
}

Status DataBudget::reserve(const NewData& wanted, std::uint64_t largest_value, Held* client, bool* in_room) {
  if (data_max_ == 0 || wanted.records == 0) return {};
  const std::scoped_lock lock(mutex_);
  NewData with = reserved_;
  with += wanted;
  const std::uint64_t share = share_bytes(wanted, largest_value);
  largest_value = std::max(largest_value, largest_value_);
  std::uint64_t needed = bytes_with(held_, with, largest_value, bytes_in_room());
  const std::uint64_t keys_left = needed > data_max_ && in_room != nullptr ? room_left(wanted) : 0;
  const bool uses_room = keys_left > 0 && keys_left >= wanted.records;
  if (uses_room) needed = bytes_with(held_, with, largest_value, bytes_in_room() + wanted.entry_bytes);
  if (needed <= data_max_) {
    if (client != nullptr) {
      const std::uint64_t room = uses_room ? (keys_left - wanted.records) * wanted.longest_entry : 0;
      if (Status status = check_share(data_max_ - needed + room, share, *client); !status.ok()) return status;
      client->add(share);
    }
    reserved_ = with;
    if (uses_room) in_room_ += wanted;
    if (in_room != nullptr) *in_room = uses_room;
    share_bytes_ += share;
    largest_value_ = largest_value;
    return {};
  }
  // The rest of the limit is kept for what is not data.
  const std::uint64_t rest = limit_ - data_max_;
  const bool never = bytes_with({}, wanted, largest_value, 0) > data_max_;
  return Status::exhausted(ErrorReason::memory_full,
                           {"memory", std::to_string(limit_) + " bytes",
                            std::to_string(needed + rest) + " bytes needed = " + std::to_string(needed) +
                                " of data, with new data + " + std::to_string(rest) + " kept for everything else",
                            "--memory-limit"},
                           never ? Status::kNoRetry : std::optional<std::int64_t>(kRetryAfterUs));
}

void DataBudget::release(const NewData& reserved, std::uint64_t largest_value, Held* client, bool in_room) {
  if (data_max_ == 0 || reserved.records == 0) return;
  const std::scoped_lock lock(mutex_);
  const std::uint64_t share = share_bytes(reserved, largest_value);
  reserved_ -= reserved;
  if (in_room) in_room_ -= reserved;
  if (in_room_.records == 0) in_room_.longest_entry = 0;
  share_bytes_ -= share;
  if (client != nullptr) client->subtract(share);
}

void DataBudget::set_held(const engine::EngineMemory& held) {
  const std::scoped_lock lock(mutex_);
  held_ = held;
}

engine::EngineMemory DataBudget::held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

Status DataBudget::check_stored(std::uint64_t bytes) const {
  return data_max_ == 0 || bytes <= data_max_ ? Status() : does_not_fit(bytes);
}

Status DataBudget::check_replay(std::uint64_t bytes) const {
  return data_max_ == 0 || bytes <= limit_ ? Status() : does_not_fit(bytes);
}

// A higher limit leaves at least the same part of it for data.
Status DataBudget::does_not_fit(std::uint64_t bytes) const {
  const double enough = static_cast<double>(limit_) * static_cast<double>(bytes) / static_cast<double>(data_max_);
  return Status::exhausted(
      ErrorReason::memory_full,
      {"memory", std::to_string(limit_) + " bytes, of which " + std::to_string(data_max_) + " are for data",
       std::to_string(bytes) + " bytes needed by the stored data, for which a limit of " +
           std::to_string(static_cast<std::uint64_t>(enough) + 1) + " bytes is enough",
       "--memory-limit"},
      Status::kNoRetry);
}

}  // namespace kilokv::server
