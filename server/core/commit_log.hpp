// The durable side of the database, as core sees it: an append-only log of batches, a folded state behind it, and what
// start-up needs. storage/ implements it on RocksDB; a replicated log can take its place.
//
// Formats are storage's own (docs/log-format.md); core hands over columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/results.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// Something that happened to a session in a batch. Entries are in the order in which they apply.
struct SessionEntry {
  enum class Kind : std::uint8_t { opened = 1, closed = 2, results = 3 };
  Kind kind = Kind::opened;
  RequestIdentity identity;  // results: of the request; opened, closed: the session alone
  DurationUs lease_us = 0;   // opened
  // results: some of the request's transactions finished
  std::uint32_t transactions = 0;  // in the whole request
  std::string_view results;        // core's encoding (core/sessions/stored_results.hpp), opaque to the log
};

// One batch as it becomes durable. Spans and pointers are the caller's and live until append() returns.
struct LogRecord {
  engine::BatchHeader header;
  Version next_version = 1;
  Version tombstone_floor = 0;
  std::uint32_t transactions = 0;  // in the batch
  Hash128 state_hash;              // after the batch
  const engine::WriteColumns* writes = nullptr;
  std::span<const SessionEntry> sessions;
};

// A record of the state family, or of a replayed write.
struct StoredRecord {
  std::string_view key;
  Version version = 0;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string_view bytes;
};

// A request's results as the checkpoint holds them.
struct StoredSession {
  SessionId session;
  DurationUs lease_us = 0;
  std::uint64_t acknowledged_through = 0;
  struct Request {
    std::uint64_t number = 0;
    Hash128 digest;
    std::uint32_t transactions = 0;
    std::vector<std::string> results;  // core's encoding, one string for each batch in which some finished
  };
  std::vector<Request> requests;
};

// What start-up learns before the first record is visited.
struct DatabaseIdentity {
  std::array<unsigned char, 16> id{};
  engine::KeyHashSecret key_secret;
};

// Where a recovered database stands.
struct RecoveredPosition {
  BatchNumber batch = 0;  // the last durable one
  BatchNumber checkpoint_batch = 0;
  Version next_version = 1;
  Version tombstone_floor = 0;
  TimeUs time_us = 0;
  Hash128 state_hash;
  std::uint64_t log_bytes_since_checkpoint = 0;
};

// Receives the recovered state: first the checkpoint's records and sessions, then the writes and session entries of
// every batch after it, in order. What a batch_write refers to stays valid until its batch_end. A Status that is not ok
// ends the recovery with it.
class RecoveryVisitor {
 public:
  virtual ~RecoveryVisitor() = default;
  virtual Status identity(const DatabaseIdentity& identity) = 0;
  virtual Status state_record(const StoredRecord& record) = 0;
  virtual Status session(const StoredSession& session) = 0;
  virtual Status batch_begin(const engine::BatchHeader& header, Version tombstone_floor) = 0;
  virtual Status batch_write(const StoredRecord& record) = 0;
  virtual Status batch_session(const SessionEntry& entry) = 0;
  virtual Status batch_end(Hash128 state_hash) = 0;
};

struct LogUsage {
  std::uint64_t free_bytes = 0;              // on the file system
  std::uint64_t reserved_bytes = 0;          // admitted, not yet appended
  std::uint64_t log_bytes = 0;               // kept, the trimmed part not counted
  std::uint64_t bytes_since_checkpoint = 0;  // of log records
  BatchNumber first_batch = 0;               // oldest kept
};

// Thread safety: reserve/release/usage from any thread; append from the log worker alone; checkpoint calls from the
// checkpoint worker alone; recover before everything else.
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  // Verifies and visits everything durable. DATA_LOSS names file, batch and reason; FAILED_PRECONDITION an unknown
  // format version. A torn tail (a record that never was acknowledged) is cut silently.
  virtual Result<RecoveredPosition> recover(RecoveryVisitor* visitor) = 0;

  // Sets aside space for `bytes` of log. RESOURCE_EXHAUSTED when the disk would not hold them; recovers by itself when
  // space is freed.
  virtual Status reserve(std::uint64_t bytes) = 0;
  virtual void release(std::uint64_t bytes) = 0;

  // How to learn what the sessions' stored results take, all of which each checkpoint writes: a log that counts space
  // keeps room for them. From any thread; until it is called again, with null before what it asks is gone.
  virtual void watch_sessions(std::function<std::uint64_t()> /*stored_bytes*/) {}

  // Appends the records, in batch order, and syncs once: they are durable when it returns ok. Any other status is fatal
  // to the caller: what is on the disk is then unknown, it must stop and answer nothing more.
  virtual Status append(std::span<const LogRecord> records) = 0;

  // A checkpoint is fuzzy: state records may be newer than `covers`, never newer than the last durable batch when
  // checkpoint_record is called; replay over them is idempotent. Only checkpoint_end makes it count.
  // RESOURCE_EXHAUSTED: the disk would not hold it; nothing has begun, and nothing is lost by trying later.
  virtual Status checkpoint_begin() = 0;
  virtual Status checkpoint_records(std::span<const StoredRecord> records) = 0;
  // A record that is no longer known (a dropped tombstone).
  virtual Status checkpoint_drop(std::span<const std::string_view> keys) = 0;
  // The sessions of a checkpoint, one by one, each once; they replace what the last one held.
  virtual Status checkpoint_session(const StoredSession& session) = 0;
  virtual Status checkpoint_end(const RecoveredPosition& covers) = 0;

  // Drops log records that the checkpoint covers and that the retention no longer wants (both limits are storage
  // options).
  virtual Status trim(TimeUs now_us) = 0;

  virtual LogUsage usage() const = 0;
};

}  // namespace kilokv::server
