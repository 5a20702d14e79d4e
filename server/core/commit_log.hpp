// The durable side of the database, as core sees it. A CommitLog is three things in one:
//   the log                   appends batches, syncs them, reserves space for them, and trims the old ones
//   the store of checkpoints  keeps the state that checkpoints fold the log into, with the sessions
//   recovery                  verifies all of this at start-up, and gives it back
//
// Core knows no other way to the disk. server/storage implements it on RocksDB. A second implementation, such as a log
// in plain files or a replicated one, has to bring all three. A replica that starts late needs the checkpoint, too,
// because the log before it is trimmed. tests/support/memory_log is the smallest example. docs/extending.md says what
// each function promises.
//
// The formats belong to storage (docs/log-format.md). Core passes columns.
// Thread safety: see CommitLog; the rest is plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/results.hpp"
#include "server/core/backup.hpp"
#include "server/core/log_reader.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// An event of a session in a batch. Entries apply in their order.
struct SessionEntry {
  // attached: the session has the holder `identity.holder` from now on, and its client has the results of all numbers
  // up to `identity.acknowledged_through`.
  enum class Kind : std::uint8_t { opened = 1, closed = 2, results = 3, attached = 5 };
  Kind kind = Kind::opened;
  RequestIdentity identity;  // results: the request's; attached: also the holder; opened, closed: only the session
  DurationUs lease_us = 0;   // opened
  // results: some of the request's transactions finished
  std::uint32_t transactions = 0;  // in the whole request
  std::string_view results;        // core's encoding (core/sessions/stored_results.hpp), opaque to the log
  std::string user = {};           // opened: the name of the user whose session it is; empty: opened without a login
};

// One batch as it becomes durable. Spans and pointers belong to the caller, and stay valid until append() returns.
struct LogRecord {
  engine::BatchHeader header;
  Version next_version = 1;
  Version tombstone_floor = 0;
  std::uint32_t transactions = 0;  // in the batch
  Hash128 state_hash;              // after the batch
  const engine::WriteColumns* writes = nullptr;
  std::span<const SessionEntry> sessions;
  std::span<const std::string> access;  // changes of the access table, in core's encoding, opaque to the log
  bool expired = false;                 // the writes delete keys that have expired, and there is nothing else
};

// A record of the stored state, or of a replayed write.
struct StoredRecord {
  std::string_view key;
  Version version = 0;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string_view bytes;
  TimeUs expires_us = 0;  // when the key expires; 0: never
};

// A session, with its requests' results, as a checkpoint holds it.
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
  std::string user = {};  // as in SessionEntry
  // A session with many results comes in several pieces, each with a part of the results, in order.
  std::uint64_t piece = 0;
  std::uint64_t holder = 0;  // the last one whose attach is durable
  bool frozen = false;       // of an earlier incarnation: it answers what it stored, and takes no new number
};

// A restore from a backup begins a new incarnation of the database. A database that was never restored has its own id
// as that of its incarnation.
struct Incarnation {
  std::array<unsigned char, 16> id{};
  BatchNumber after_batch = 0;  // the last batch that was restored; 0: the database was never restored
  Version first_version = 1;    // no version of this incarnation is less
};

// What start-up learns before it visits the first record.
struct DatabaseIdentity {
  std::array<unsigned char, 16> id{};
  engine::KeyHashSecret key_secret;
  Incarnation incarnation = {};
};

// The position of a recovered database.
struct RecoveredPosition {
  BatchNumber batch = 0;  // the last durable one
  BatchNumber checkpoint_batch = 0;
  Version next_version = 1;
  Version tombstone_floor = 0;
  TimeUs time_us = 0;
  Hash128 state_hash;
  std::uint64_t log_bytes_since_checkpoint = 0;
};

// How much records are, without what a store adds to them.
struct StateSize {
  std::uint64_t records = 0, key_bytes = 0, value_bytes = 0;
};

// Receives the recovered state: first the checkpoint's access table, records and sessions, then the writes, session
// entries and access changes of every later batch, in order. The views of a batch_write stay valid until its batch_end.
// If a call returns a Status that is not ok, the recovery ends with it.
class RecoveryVisitor {
 public:
  virtual ~RecoveryVisitor() = default;
  virtual Status identity(const DatabaseIdentity& identity) = 0;
  // Before the first record: how much the records of the checkpoint are, at most. True: the visitor has to know it
  // exactly. Then the log first passes each record to count_record(), and after the last one calls counted().
  virtual bool must_count(const StateSize& /*most*/) { return false; }
  virtual void count_record(const StoredRecord& /*record*/) {}
  virtual Status counted() { return {}; }
  virtual Status state_record(const StoredRecord& record) = 0;
  virtual Status session(const StoredSession& session) = 0;
  virtual Status access_table(std::string_view table) = 0;  // only if the checkpoint has one
  virtual Status batch_begin(const engine::BatchHeader& header, Version tombstone_floor) = 0;
  virtual Status batch_write(const StoredRecord& record) = 0;
  virtual Status batch_session(const SessionEntry& entry) = 0;
  virtual Status batch_access(std::string_view change) = 0;
  virtual Status batch_end(Hash128 state_hash) = 0;
};

// At least what the log takes for a record that has nothing but an entry of a session, or the frame around a few
// changes of users and roles.
inline constexpr std::uint64_t kSmallRecordBytes = 512;

// What space of the log is reserved for. New data leaves a part of the disk free (--disk-reserve). Reads and deletes
// may use that part, so that they go on when the disk is full. Changes of rights may use it, too, and they also go on
// when an archive that is required is late.
enum class LogUse : std::uint8_t { new_data, reads_and_deletes, access_changes };

struct ArchiveUsage {
  bool on = false, ended = false;  // ended: it does not go on before the next start
  BatchNumber batch = 0;           // the last one in it
  std::uint64_t lag_bytes = 0;     // of durable records that it lacks
};

struct LogUsage {
  std::uint64_t free_bytes = 0;              // on the file system
  std::uint64_t disk_bytes = 0;              // the size of the file system; 0: unknown
  std::uint64_t reserved_bytes = 0;          // admitted, not yet appended
  std::uint64_t log_bytes = 0;               // kept; without the trimmed part
  std::uint64_t memory_bytes = 0;            // of its buffers
  std::uint64_t bytes_since_checkpoint = 0;  // of log records
  BatchNumber first_batch = 0;               // oldest kept
  TimeUs since_us = 0;                       // all records of later stamps are kept; 0: none is kept
  ArchiveUsage archive;
  bool short_of_space = false;  // a checkpoint soon, and a trim after it, would help
};

// Thread safety: any thread may call reserve, release and usage. Only the log worker calls append. Only the checkpoint
// worker calls the checkpoint functions. recover and end_recovery come before all
// others.
class CommitLog {
 public:
  virtual ~CommitLog() = default;

  // Verifies and visits everything that is durable. Errors: DATA_LOSS, which names file, batch and reason;
  // FAILED_PRECONDITION for an unknown format version. A torn tail (a record that was never acknowledged) is cut
  // silently.
  virtual Result<RecoveredPosition> recover(RecoveryVisitor* visitor) = 0;
  // The caller has checked what recover() gave back, and needs no older file any more. Call it before anything is
  // written. Until then the log removes nothing that a person could need after a failed start.
  virtual Status end_recovery() { return {}; }

  // Reserves space for `bytes` of log. RESOURCE_EXHAUSTED if the disk cannot hold them; later calls succeed when space
  // is free again.
  virtual Status reserve(std::uint64_t bytes, LogUse use) = 0;
  virtual void release(std::uint64_t bytes) = 0;
  // About how many bytes reserve() would take now, beside those that are reserved. Clients share them.
  virtual std::uint64_t room(LogUse use) = 0;

  // Sets the function that tells how many bytes the sessions' stored results take. Each checkpoint writes all of them,
  // so a log that counts space keeps room for them. Any thread may call the function. The caller passes null before the
  // object that the function uses is destroyed.
  virtual void watch_sessions(const std::function<std::uint64_t()>& stored_bytes) = 0;

  // Appends the records, in batch order, and syncs once. They are durable when it returns ok. Any other status is fatal
  // for the caller: it cannot know what is on the disk, so it must stop and answer nothing more.
  virtual Status append(std::span<const LogRecord> records) = 0;

  // A checkpoint is fuzzy: its state records may be newer than `covers`, because replay over them is idempotent. They
  // are never newer than the last durable batch when checkpoint_records is called. The checkpoint counts only after
  // checkpoint_end. RESOURCE_EXHAUSTED: the disk cannot hold it; then nothing has begun, and a later try loses nothing.
  virtual Status checkpoint_begin() = 0;
  virtual Status checkpoint_records(std::span<const StoredRecord> records) = 0;
  // Removes records that are no longer known (dropped tombstones).
  virtual Status checkpoint_drop(std::span<const std::string_view> keys) = 0;
  // Writes one session. Each session of a checkpoint comes once. Together they replace the sessions of the last
  // checkpoint.
  virtual Status checkpoint_session(const StoredSession& session) = 0;
  // `access_table`: after the batch that `covers` names, not newer. Core's encoding, opaque to the log.
  virtual Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) = 0;

  // Drops log records that the checkpoint covers and that the retention no longer needs. (Both retention limits are
  // storage options.) If the disk is short of space, drops all that the checkpoint covers.
  virtual Status trim(TimeUs now_us) = 0;

  // A snapshot of everything that is durable now. The caller destroys it before the log. Any thread may call this after
  // end_recovery().
  virtual Result<std::unique_ptr<BackupSource>> open_backup() {
    return Status(StatusCode::unimplemented, "this commit log makes no backups");
  }

  // Reads batches that are durable. The caller destroys it before the log. Any thread may call this after
  // end_recovery().
  virtual Result<std::unique_ptr<LogReader>> open_reader() {
    return Status(StatusCode::unimplemented, "this commit log cannot be watched");
  }

  virtual LogUsage usage() const = 0;
};

}  // namespace kilokv::server
