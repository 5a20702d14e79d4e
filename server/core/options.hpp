// Every setting of core, in one place. A field has the name of its flag, with `_` for `-`.
//
// Thread safety: plain data; the functions are pure.
#pragma once

#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"

namespace kilokv::server {

// The memory that the access table may take (AccessTable::bytes()).
inline constexpr std::uint64_t kAccessBytesMax = std::uint64_t{4} << 20;

// A value that a session may store counts such a part of its largest size in a batch. So a log record may be so many
// times as long as --batch-max-bytes.
inline constexpr std::uint64_t kStoredValueParts = 4;

// What a transaction takes of a batch is measured in such parts (core/pipeline/transaction_cost.hpp).
inline constexpr std::uint64_t kWholeBatch = std::uint64_t{1} << 20;

struct DatabaseOptions {
  // Batcher
  std::uint32_t batch_max_transactions = 8192;
  std::uint64_t batch_max_bytes = std::uint64_t{8} << 20;  // of its log record; a single transaction may be larger
  std::uint64_t batch_max_reads = 65536;                   // likewise (core/pipeline/transaction_cost.hpp)
  DurationUs batch_max_delay_us = 1000;   // only while an earlier batch is in flight: an idle server does not wait
  std::uint32_t batch_in_flight_max = 4;  // executed, not yet durable
  DurationUs clock_jump_us_max = DurationUs{24} * 3600 * 1000000;       // core/pipeline/stamp_clock.hpp
  DurationUs clock_gap_us_max = DurationUs{366} * 24 * 3600 * 1000000;  // from the last batch to the start
  // Admission
  std::uint64_t queue_transactions_max = 262144;
  std::uint64_t queue_bytes_max = std::uint64_t{256} << 20;
  std::uint64_t transaction_reads_max = 102400;  // keys that one transaction may look at, uploaded guards not counted
  std::uint64_t transaction_copies_max = 8;      // PUTs of one transaction that copy the value of an earlier GET
  // Parking
  std::uint64_t parked_max = 1000000;
  std::uint64_t parked_bytes_max = std::uint64_t{1} << 30;
  DurationUs wait_timeout_us_max = DurationUs{24} * 3600 * 1000000;
  // Sessions
  std::uint64_t sessions_max = 100000;
  DurationUs session_lease_us_min = 1000000;
  DurationUs session_lease_us_default = 60000000;
  DurationUs session_lease_us_max = DurationUs{24} * 3600 * 1000000;
  std::uint32_t session_requests_max = 4096;                  // of one session: kept and in flight
  std::uint64_t session_bytes_max = std::uint64_t{64} << 20;  // results of one session: stored, and reserved for later
  std::uint64_t session_bytes_total_max = std::uint64_t{1} << 30;  // of all sessions
  std::uint64_t result_bytes_max = 65536;                          // stored result of one transaction
  // Uploaded read sets
  std::uint64_t read_set_keys_max = 1000000;                   // of one read set
  std::uint64_t uploads_bytes_max = std::uint64_t{256} << 20;  // of all uploads, in memory, until they are admitted
  std::uint64_t session_uploads_bytes_max = std::uint64_t{128} << 20;  // of one session
  DurationUs upload_idle_us_max = 60000000;  // since its last chunk; then the upload is dropped
  std::uint32_t guards_max = 1024;           // value of --guards-max; a transaction with more guards has its own batch
  // Snapshots
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  DurationUs snapshot_age_us_max = 60000000;
  std::uint32_t scan_pairs_max = 10000;
  std::uint64_t scan_bytes_max = std::uint64_t{4} << 20;
  std::uint32_t scans_in_flight_max = 256;  // each holds a page
  // Commands: opening and closing sessions, attaching to them, cancels, lists of parked transactions.
  std::uint32_t commands_in_flight_max = 4096;
  // Checkpoints
  std::uint64_t checkpoint_log_bytes = std::uint64_t{256} << 20;
  DurationUs checkpoint_interval_us = 60000000;
  DurationUs tombstone_retention_us = DurationUs{3600} * 1000000;
  std::uint64_t tombstones_max = 10000000;  // beyond it, the oldest ones go before the end of their retention
  // Expiries
  std::uint32_t expiry_batch_max = 8192;  // keys that expire in one batch
  // Memory: --memory-limit, and the part of it that is for data (server/memory_plan.hpp). 0: no limit.
  std::uint64_t memory_limit = 0, data_bytes_max = 0;
  bool read_only = false;                                     // no data changes (core/pipeline/read_only.hpp)
  bool certificates_log_in = false;                           // clients show certificates, and may log in with them
  std::uint64_t pools_bytes_max = std::uint64_t{320} << 20;   // of empty requests and batches that are kept for later
  std::uint64_t dropped_bytes_max = std::uint64_t{32} << 20;  // of keys that a checkpoint has still to remove
  // What counts as slow, for the log (core/pipeline/slow_log.hpp, core/pipeline/sync_watch.hpp). 0: nothing.
  DurationUs slow_transaction_us = 1000000, slow_sync_us = 250000;
  // Shadow check: the share of the batches that the referee replays, and how much a batch may name to be replayed
  // (core/pipeline/shadow_check.hpp).
  double shadow_rate = 0;
  std::uint64_t shadow_records_max = 100000;
  std::uint64_t shadow_bytes_max = std::uint64_t{64} << 20;

  // Errors: INVALID_ARGUMENT, which names the first flag whose value is out of bounds or contradicts another flag.
  Status validate() const;
};

}  // namespace kilokv::server
