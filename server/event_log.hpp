// Writes what happens in the database and in its storage to the log of the server. docs/logging.md lists the lines.
//
// What clients can cause as often as they like is written at most once a second, with how often it happened. Keys are
// written as --log-keys says. No line has a token, or more of a session's id than its first 8 digits.
//
// Thread safety: the functions that it adds to the events run in the threads that their comments name. The rest is for
// one thread, before there are such events.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/key_hash.hpp"
#include "server/core/database_events.hpp"
#include "server/core/database_status.hpp"
#include "server/core/shown_key.hpp"
#include "server/service/rare_line.hpp"
#include "server/storage/options.hpp"

namespace kilokv::server {

class EventLog {
 public:
  // `data_dir`: where the keys and values of a wrong batch go, unless the log may have them. A recovery that takes
  // longer than `recovery_interval` is told of, each time that this has passed.
  EventLog(LogKeys keys, std::string data_dir,
           std::chrono::steady_clock::duration recovery_interval = std::chrono::seconds(5));
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Keeps what is there: the functions that are set already are called, too. This outlives what gets the events.
  void add_to(DatabaseEvents* events);
  void add_to(StorageOptions* storage);
  // With which keys are hashed. Called when the database is open, and before it gets requests.
  void set_secret(const engine::KeyHashSecret& secret) { secret_ = secret; }
  // The recovery is over.
  static void recovered(const DatabaseStatus& status);

 private:
  void add_requests(DatabaseEvents* events);
  std::string guard_fields(std::uint32_t guard, bool guards_range, std::string_view key) const;
  void recovers(const RecoveryProgress& progress);
  void shadow_mismatch(BatchNumber number, const Status& difference, const std::string& batch) const;
  void shadow_checked(BatchNumber batch, bool too_large);
  void sync_slow(const AppendReport& report);
  void checkpoint_made(const CheckpointReport& report);
  void transaction_slow(const SlowTransaction& slow, std::uint64_t left_out) const;

  const LogKeys keys_;
  const std::string data_dir_;
  const std::chrono::steady_clock::duration recovery_interval_;
  engine::KeyHashSecret secret_;
  std::chrono::steady_clock::time_point next_progress_;
  RareLine slow_syncs_, skipped_checks_{std::chrono::minutes(1)};
  bool put_off_ = false;  // checkpoints; only the checkpoint worker uses it
};

}  // namespace kilokv::server
