// The status of the database: state, positions, counters since the start, sizes. Thread safety: plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/slow_transaction.hpp"

namespace kilokv::server {

// What a part of the server holds of the memory, and the most that it may hold. A bound of 0: it shares that of
// "values".
struct MemoryOwner {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t bound_bytes = 0;
};

struct DatabaseStatus {
  enum class State : std::uint8_t { recovering, ready, draining, stopped };
  State state = State::recovering;
  BatchNumber executed_batch = 0, durable_batch = 0, checkpoint_batch = 0;
  Version next_version = 1;
  Hash128 state_hash;  // after durable_batch
  std::uint64_t batches = 0, transactions = 0, committed = 0, guard_failed = 0, wait_expired = 0, overflow = 0,
                type_mismatch = 0, refused = 0;  // since the start
  std::uint64_t expired = 0;                     // likewise: keys that were deleted because they had expired
  DurationUs log_kept_us = 0;                    // for how long the log goes back
  DurationUs expiry_lag_us = 0;                  // for how long the oldest key that is due has been due; 0: none is due
  std::uint64_t abandoned = 0;                   // likewise: requests whose clients went away before their answers
  // How many of `batches` ran serially on the CPU, in parallel on the CPU, or on the device. Then how many of them the
  // referee replayed, and how many were in its sample but too large.
  std::uint64_t batches_serial = 0, batches_parallel = 0, batches_on_device = 0, shadow_batches = 0, shadow_skipped = 0;
  std::uint64_t queued_transactions = 0, queued_bytes = 0;
  std::uint64_t parked = 0, parked_bytes = 0;
  std::uint64_t sessions = 0;
  std::uint64_t uploads = 0, uploads_bytes = 0;  // read sets that are not committed yet
  engine::EngineDevice device{{}, {}, {}};       // where batches run now; without a name until that is known
  engine::EngineStats engine;
  LogUsage log;
  std::vector<MemoryOwner> memory;  // of core and of the log
  double recovery_seconds = 0;
  // For how long the batch, the group of batches or the checkpoint that is under way has taken; 0: none is. Then the
  // time since the last checkpoint counted, or since the start.
  double execution_running_seconds = 0, append_running_seconds = 0, checkpoint_running_seconds = 0,
         checkpoint_age_seconds = 0;
  std::array<std::uint64_t, kSlowReasons> slow{};  // transactions that were slow since the start, by SlowReason
  Incarnation incarnation;
};

}  // namespace kilokv::server
