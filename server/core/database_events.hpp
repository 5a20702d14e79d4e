// Events of the database that the program which runs it learns at once.
// Thread safety: the executor makes all calls, but for those of the start, and those whose comment names another
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"
#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/slow_transaction.hpp"

namespace kilokv::server {

// The wall clock did not go on as expected (core/pipeline/stamp_clock.hpp).
struct ClockChange {
  enum class Kind : std::uint8_t {
    in_step,  // it is again where it is expected; stamps follow it
    jumped,   // it jumped ahead, and stamps follow it
    ahead,    // it jumped ahead by more than --clock-jump-max; stamps do not follow it
    behind,   // it is before the expected stamp; stamps go on without it
  };
  Kind kind = Kind::in_step;
  DurationUs by_us = 0;  // the wall clock minus the expected stamp
  TimeUs stamp_us = 0;   // of the batch that noticed it
};

// How far the start has come.
struct RecoveryProgress {
  bool counting = false;           // the records are counted first, to see whether they fit into the memory
  std::uint64_t records = 0;       // of the checkpoint: counted, or loaded
  BatchNumber batch = 0;           // of the log: the last one that was replayed; 0: none yet
  std::uint64_t records_most = 0;  // the checkpoint has no more records than this; 0: it is not known how many
};

// A checkpoint that counts, and the trim of the log that followed it.
struct CheckpointReport {
  BatchNumber batch = 0;                                // that it covers
  std::uint64_t records = 0, removed = 0;               // written, and removed from the stored state
  std::uint64_t sessions = 0;                           // pieces of sessions that were written
  DurationUs took_us = 0;                               // from its begin
  std::uint64_t kept_log_bytes = 0, trimmed_bytes = 0;  // of the log, after the trim and by it
  BatchNumber first_batch = 0;                          // the oldest that the log still has; 0: none
};

// An append of a group of batches, with its sync.
struct AppendReport {
  DurationUs took_us = 0;
  BatchNumber last_batch = 0;
  std::uint32_t batches = 0;
};

struct BatchReport {
  BatchNumber batch = 0;
  std::size_t transactions = 0, postponed = 0, writes = 0;
  const char* strategy = "";
  bool on_device = false;
  DurationUs execution_us = 0;
};

// A request that was admitted, or all of whose transactions are answered. The view is valid during the call.
struct RequestReport {
  std::string_view client;  // its name
  std::optional<SessionId> session;
  std::uint64_t number = 0;  // in the session
  std::uint32_t transactions = 0;
  DurationUs took_us = 0;  // from its admission
  TraceParent trace;
};

// A transaction that waits for a guard. The views are valid during the call.
struct ParkedReport {
  std::string_view client;
  std::optional<SessionId> session;
  std::uint64_t request = 0;
  std::uint32_t index = 0, guard = 0;
  bool guards_range = false;
  std::string_view key;  // of the guard; for a guard on a range, the begin of the range; empty: a guard without a key
  TimeUs deadline_us = 0;
};

// The events, beside the end of the database. Each function may be empty. The executor calls them, so none may block
// for long.
struct DatabaseEvents {
  // Called about once a second while the start makes progress. The thread that opens the database calls it.
  std::function<void(const RecoveryProgress& progress)> recovering;
  // Called once, when the device that batches ran on is given up. `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Called before on_fatal: the engine executed the batch `number` differently from the referee. `difference` and
  // `batch` (core/pipeline/batch_text.hpp) have keys and values.
  std::function<void(BatchNumber number, const Status& difference, const std::string& batch)> shadow_mismatch;
  // Called when a batch notices a change. The executor calls it.
  std::function<void(const ClockChange& change)> clock_changed;
  // The referee has replayed this batch, or has not, because the batch was too large.
  std::function<void(BatchNumber batch, bool too_large)> shadow_checked = {};
  std::function<void(const BatchReport& report)> batch_executed = {};
  std::function<void(const ParkedReport& report)> transaction_parked = {};
  // An append has not ended yet. Called again each time that its time has doubled.
  std::function<void(DurationUs for_us)> sync_hangs = {};
  // The log worker: each group of batches; and those that took longer than --slow-sync.
  std::function<void(const AppendReport&report)> batches_appended = {}, sync_slow = {};
  // The answer worker: a transaction took longer than --slow-transaction. Not each of them comes: `left_out` counts
  // those of the same reason that did not, since the last one (core/pipeline/slow_log.hpp).
  std::function<void(const SlowTransaction& slow, std::uint64_t left_out)> transaction_slow = {};
  // The answer worker: a session was opened, closed, or attached to.
  std::function<void(const SessionEntry& entry)> session_changed = {};
  // The checkpoint worker.
  std::function<void(BatchNumber batch)> checkpoint_begins = {};
  std::function<void(const CheckpointReport& report)> checkpoint_made = {};
  // Whether the three events about single requests are wanted now: these two, and transaction_parked. Whoever sets this
  // function sets all three. Any thread calls it, so it must be as fast as a look at a variable. The thread that
  // submits calls the first event, and the answer worker the second.
  std::function<bool()> tells_requests = {};
  std::function<void(const RequestReport&report)> request_admitted = {}, request_answered = {};
};

}  // namespace kilokv::server
