// A CommitLog in memory, for tests of the core. Everything that append() took is durable. To crash, a test builds a new
// Database on the same log. The log keeps its own copies of everything. It replays like the real log, over a fuzzy
// checkpoint.
//
// Thread safety: as CommitLog says; tests run it in one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/commit_log.hpp"

namespace kilokv::server {

class MemoryLog : public CommitLog {
 public:
  Result<RecoveredPosition> recover(RecoveryVisitor* visitor) override;
  Status reserve(std::uint64_t bytes, LogUse use) override;
  void release(std::uint64_t bytes) override { reserved_ -= bytes; }
  std::uint64_t room(LogUse use) override {
    const std::uint64_t most = std::min(use == LogUse::new_data ? reserve_limit_ : UINT64_MAX, UINT64_MAX / 8);
    return most - std::min(most, reserved_);
  }
  void watch_sessions(const std::function<std::uint64_t()>&) override {}  // it keeps no room for checkpoints
  Status append(std::span<const LogRecord> records) override;
  Status checkpoint_begin() override;
  Status checkpoint_records(std::span<const StoredRecord> records) override;
  Status checkpoint_drop(std::span<const std::string_view> keys) override;
  Status checkpoint_session(const StoredSession& session) override;
  Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) override;
  Status trim(TimeUs now_us) override;
  LogUsage usage() const override;

  // Injects faults.
  void fail_next_append() { fail_append_ = true; }
  void set_reserve_limit(std::uint64_t bytes) { reserve_limit_ = bytes; }  // for new data
  void hold_up(bool holds_up) { holds_up_ = holds_up; }                    // as an archive that is required and late

  std::size_t appends() const { return appends_; }  // groups, each with one sync
  std::size_t records() const { return records_.size(); }
  std::size_t stored_records() const { return state_.size(); }  // of checkpoints
  BatchNumber checkpoint() const { return covers_.batch; }
  std::uint64_t reserved() const { return reserved_; }
  std::uint64_t expired() const { return expired_; }  // writes of records that say so

 private:
  struct Write {
    std::string key, bytes;
    StoredRecord record;  // without views
  };
  struct Session {
    SessionEntry entry;  // without views
    std::string results;
  };
  struct Record {
    engine::BatchHeader header;
    Version next_version = 1, tombstone_floor = 0;
    Hash128 state_hash;
    std::vector<Write> writes;
    std::vector<Session> sessions;
    std::vector<std::string> access;
  };
  Status replay(const Record& record, RecoveryVisitor* visitor) const;

  std::map<BatchNumber, Record> records_;
  std::map<std::string, Write> state_;
  std::vector<StoredSession> sessions_, next_sessions_;  // of the checkpoint that counts, and of the next one
  std::string access_table_;                             // of the checkpoint
  RecoveredPosition covers_, last_;
  std::uint64_t reserved_ = 0, reserve_limit_ = UINT64_MAX;
  std::size_t appends_ = 0;
  std::uint64_t expired_ = 0;
  bool fail_append_ = false, holds_up_ = false;
};

}  // namespace kilokv::server
