#include "server/core/memory/data_budget.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace kilokv::server {
namespace {

// After this time, requests in flight may have ended, or a delete may have made room.
constexpr std::int64_t kRetryAfterUs = 100000;

}  // namespace

std::uint64_t DataBudget::bytes_with(const engine::EngineMemory& held, const NewData& added,
                                     std::uint64_t largest_value) {
  const std::uint64_t table = engine::table_bytes_until(held.slots, held.records + added.records);
  const std::uint64_t copies = added.copied_values * engine::new_value_bytes(largest_value);
  return table + held.key_bytes + held.index_bytes + held.value_bytes + added.bytes + copies;
}

Status DataBudget::reserve(const NewData& wanted, std::uint64_t largest_value) {
  if (data_max_ == 0 || wanted.records == 0) return {};
  const std::scoped_lock lock(mutex_);
  NewData with = reserved_;
  with += wanted;
  largest_value = std::max(largest_value, largest_value_);
  const std::uint64_t needed = bytes_with(held_, with, largest_value);
  if (needed <= data_max_) {
    reserved_ = with;
    largest_value_ = largest_value;
    return {};
  }
  // The rest of the limit is kept for what is not data.
  const std::uint64_t rest = limit_ - data_max_;
  const bool never = bytes_with({}, wanted, largest_value) > data_max_;
  return Status::exhausted(ErrorReason::memory_full,
                           {"memory", std::to_string(limit_) + " bytes",
                            std::to_string(needed + rest) + " bytes needed = " + std::to_string(needed) +
                                " of data, with new data + " + std::to_string(rest) + " kept for everything else",
                            "--memory-limit"},
                           never ? Status::kNoRetry : std::optional<std::int64_t>(kRetryAfterUs));
}

void DataBudget::release(const NewData& reserved) {
  if (data_max_ == 0) return;
  const std::scoped_lock lock(mutex_);
  reserved_ -= reserved;
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
