#include "server/core/options.hpp"

#include <cstdio>
#include <string>

#include "server/core/environment.hpp"
#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kMany = std::uint64_t{1} << 32;     // transactions, sessions
constexpr std::uint64_t kAnySize = std::uint64_t{1} << 60;  // bytes that are only compared

struct Setting {
  enum class Unit : std::uint8_t { count, size, duration };
  const char* name;
  std::uint64_t value, min, max;
  Unit unit = Unit::count;
};

Setting duration(const char* name, DurationUs value, DurationUs min = 0) {
  // A negative value becomes larger than any bound.
  return {name, static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(min), kDurationUsMax,
          Setting::Unit::duration};
}

Setting size(const char* name, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
  return {name, value, min, max, Setting::Unit::size};
}

Status check(const Setting& setting) {
  if (setting.value >= setting.min && setting.value <= setting.max) return {};
  const auto text = [&](std::uint64_t value) {
    switch (setting.unit) {
      case Setting::Unit::size: return format_size(value);
      case Setting::Unit::duration: return format_duration(static_cast<DurationUs>(value));
      case Setting::Unit::count: break;
    }
    return std::to_string(value);
  };
  return Status::invalid(
      {setting.name, text(setting.min) + " to " + text(setting.max), text(setting.value), setting.name});
}

Status no_more_than(DurationUs value, DurationUs limit, const char* setting, const char* other) {
  if (value <= limit) return {};
  return Status::invalid({setting, format_duration(limit) + " (" + other + ")", format_duration(value), setting});
}

}  // namespace

Status DatabaseOptions::validate() const {
  for (const Setting& setting : {
           // Ranks and versions of a batch: passes x transactions must fit into 32 bits.
           Setting{"--batch-max-transactions", batch_max_transactions, 1, std::uint64_t{1} << 24},
           // A log record is one value of the store, and a value is less than 4 GiB. A record may be kStoredValueParts
           // times as long as this setting, and a single transaction may need more: kTransactionLogBytesMax.
           size("--batch-max-bytes", batch_max_bytes, 1, std::uint64_t{1} << 27),
           // The key bytes of all pairs that a batch returns are counted in 32 bits.
           Setting{"--batch-max-reads", batch_max_reads, 1, std::uint64_t{1} << 21},
           duration("--batch-max-delay", batch_max_delay_us),
           Setting{"--batch-in-flight-max", batch_in_flight_max, 1, 1024},
           // Smaller jumps are not noticed.
           duration("--clock-jump-max", clock_jump_us_max, 1000000),
           duration("--clock-gap-max", clock_gap_us_max, 1000000),
           Setting{"--queue-transactions-max", queue_transactions_max, 1, kMany},
           // Queued and parked transactions can be in one batch, whose columns count bytes in 32 bits.
           size("--queue-bytes-max", queue_bytes_max, 1, std::uint64_t{1} << 30),
           Setting{"--transaction-reads-max", transaction_reads_max, 1, std::uint64_t{1} << 32},
           Setting{"--transaction-copies-max", transaction_copies_max, 0, std::uint64_t{1} << 20},
           Setting{"--parked-max", parked_max, 0, kMany},
           size("--parked-bytes-max", parked_bytes_max, 0, std::uint64_t{1} << 31),
           duration("--wait-timeout-max", wait_timeout_us_max),
           Setting{"--sessions-max", sessions_max, 1, kMany},
           duration("--session-lease-min", session_lease_us_min, 1),
           duration("--session-lease-default", session_lease_us_default, 1),
           duration("--session-lease-max", session_lease_us_max, 1),
           Setting{"--session-requests-max", session_requests_max, 1, std::uint64_t{1} << 24},
           // A checkpoint stores a session as one value of the store.
           size("--session-bytes-max", session_bytes_max, 1, std::uint64_t{1} << 30),
           size("--session-bytes-total-max", session_bytes_total_max, 1, kAnySize),
           size("--result-bytes-max", result_bytes_max, 0, std::uint64_t{1} << 24),
           // Guards are counted in 32 bits, and so are the bytes of their keys.
           Setting{"--read-set-keys-max", read_set_keys_max, 1, std::uint64_t{1} << 24},
           size("--uploads-bytes-max", uploads_bytes_max, 1, kAnySize),
           size("--session-uploads-bytes-max", session_uploads_bytes_max, 1, std::uint64_t{1} << 30),
           duration("--upload-idle-max", upload_idle_us_max, 1),
           size("--snapshot-bytes-max", snapshot_bytes_max, 0, kAnySize),
           duration("--snapshot-age-max", snapshot_age_us_max),
           Setting{"--tombstones-max", tombstones_max, 0, std::uint64_t{1} << 32},
           Setting{"--expiry-batch-max", expiry_batch_max, 1, std::uint64_t{1} << 20},
           Setting{"--scan-pairs-max", scan_pairs_max, 1, std::uint64_t{1} << 20},
           size("--scan-bytes-max", scan_bytes_max, 1, std::uint64_t{1} << 26),
           Setting{"--scans-in-flight-max", scans_in_flight_max, 1, std::uint64_t{1} << 20},
           Setting{"--commands-in-flight-max", commands_in_flight_max, 1, std::uint64_t{1} << 20},
           size("--checkpoint-log-bytes", checkpoint_log_bytes, 0, kAnySize),
           duration("--checkpoint-interval", checkpoint_interval_us, 1),
           duration("--tombstone-retention", tombstone_retention_us),
           duration("--slow-transaction", slow_transaction_us),
           duration("--slow-sync", slow_sync_us),
           size("--memory-limit", memory_limit, 0, kAnySize),
           Setting{"--shadow-records-max", shadow_records_max, 1, kMany},
           size("--shadow-bytes-max", shadow_bytes_max, 1, kAnySize),
       }) {
    if (Status status = check(setting); !status.ok()) return status;
  }
  if (!(shadow_rate >= 0 && shadow_rate <= 1)) {
    char actual[32];
    std::snprintf(actual, sizeof actual, "%g", shadow_rate);
    return Status::invalid({"--shadow-rate", "0 to 1", actual, "--shadow-rate"});
  }
  for (const Status& status :
       {no_more_than(session_lease_us_min, session_lease_us_default, "--session-lease-min", "--session-lease-default"),
        no_more_than(session_lease_us_default, session_lease_us_max, "--session-lease-default", "--session-lease-max"),
        // A snapshot needs the tombstones of keys that were deleted after it.
        no_more_than(snapshot_age_us_max, tombstone_retention_us, "--snapshot-age-max", "--tombstone-retention")}) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace kilokv::server
