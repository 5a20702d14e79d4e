#include <string>

#include "server/core/core_context.hpp"
#include "server/core/database.hpp"

namespace kilokv::server {
namespace {

Status at_least_one(std::uint64_t value, const char* knob) {
  if (value >= 1) return {};
  return Status::invalid({knob, "at least 1", std::to_string(value), knob});
}

Status no_more_than(std::uint64_t value, std::uint64_t limit, const char* knob, const char* other) {
  if (value <= limit) return {};
  return Status::invalid({knob, std::to_string(limit) + " (" + other + ")", std::to_string(value), knob});
}

std::uint64_t unsigned_of(DurationUs duration) { return duration < 0 ? 0 : static_cast<std::uint64_t>(duration); }

}  // namespace

Status DatabaseOptions::validate() const {
  const Status checks[] = {
      at_least_one(batch_max_transactions, "--batch-max-transactions"),
      // The ranks of a batch and its versions: passes x transactions must fit in 32 bits.
      no_more_than(batch_max_transactions, 1 << 24, "--batch-max-transactions", "2^24"),
      at_least_one(batch_max_bytes, "--batch-max-bytes"),
      // A log record is one value of the store, which holds less than 4 GiB.
      no_more_than(batch_max_bytes, std::uint64_t{1} << 31, "--batch-max-bytes", "2 GiB"),
      at_least_one(batch_in_flight_max, "--batch-in-flight-max"),
      at_least_one(queue_transactions_max, "--queue-transactions-max"),
      at_least_one(queue_bytes_max, "--queue-bytes-max"),
      at_least_one(sessions_max, "--sessions-max"),
      at_least_one(session_requests_max, "--session-requests-max"),
      at_least_one(unsigned_of(session_lease_us_min), "--session-lease-min"),
      no_more_than(unsigned_of(session_lease_us_min), unsigned_of(session_lease_us_default), "--session-lease-min",
                   "--session-lease-default"),
      no_more_than(unsigned_of(session_lease_us_default), unsigned_of(session_lease_us_max), "--session-lease-default",
                   "--session-lease-max"),
      at_least_one(scan_pairs_max, "--scan-pairs-max"),
      at_least_one(scan_bytes_max, "--scan-bytes-max"),
      at_least_one(scans_in_flight_max, "--scans-in-flight-max"),
      at_least_one(unsigned_of(checkpoint_interval_us), "--checkpoint-interval"),
      // A snapshot needs the tombstones of keys that were deleted after it.
      no_more_than(unsigned_of(snapshot_age_us_max), unsigned_of(tombstone_retention_us), "--snapshot-age-max",
                   "--tombstone-retention"),
  };
  for (const Status& check : checks) {
    if (!check.ok()) return check;
  }
  return {};
}

SessionLimits session_limits(const DatabaseOptions& options) {
  return {options.sessions_max, options.session_lease_us_min, options.session_lease_us_max,
          options.session_requests_max, options.session_bytes_max};
}

}  // namespace kilokv::server
