// Shared parts of the tests of storage: batches, and a visitor that records its calls. Thread safety: none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/txn/results.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/rocksdb_log.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::server::storage {

void copy_directory(const std::string& from, const std::string& to);

// The write-ahead log with the highest number.
std::string newest_write_ahead_log(const std::string& directory);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

// Records the visit as lines of text, so that a difference is readable.
class Transcript final : public RecoveryVisitor {
 public:
  Status identity(const DatabaseIdentity& identity) override;
  Status state_record(const StoredRecord& record) override;
  Status session(const StoredSession& session) override;
  Status batch_begin(const engine::BatchHeader& header, Version tombstone_floor) override;
  Status batch_write(const StoredRecord& record) override;
  Status batch_session(const SessionEntry& entry) override;
  Status access_table(std::string_view table) override;
  Status batch_access(std::string_view change) override;
  Status batch_end(Hash128 state_hash) override;

  std::vector<std::string> lines;  // all but the identity
  DatabaseIdentity seen_identity;
  std::size_t sessions = 0, frozen_sessions = 0;
};

// A batch that owns the data of its LogRecord.
struct Batch {
  explicit Batch(BatchNumber number);
  void write_integer(std::uint32_t rank, const std::string& key, std::int64_t value);
  void write_bytes(std::uint32_t rank, const std::string& key, const std::string& value);
  void erase(std::uint32_t rank, const std::string& key);
  void expire(TimeUs expires_us);  // the key of the last write
  LogRecord record() const;
  // The lines that a Transcript of this batch has.
  std::vector<std::string> lines() const;

  engine::BatchHeader header;
  Version next_version = 0;
  Version tombstone_floor = 0;
  std::uint32_t transactions = 0;
  Hash128 state_hash;
  engine::WriteColumns writes;
  std::vector<SessionEntry> sessions;
  std::vector<std::string> access;
  bool expired = false;

 private:
  void write(std::uint32_t rank, const std::string& key, ValueType type, std::int64_t word);
};

// Batch `number`, with writes of every type and a session entry of every kind. Every seventh batch is empty.
Batch sample_batch(BatchNumber number);
RecoveredPosition position_after(const Batch& batch);

StorageOptions options_for(const std::string& directory);

// A log that was opened and recovered. The test fails if either failed.
struct OpenLog {
  explicit OpenLog(const StorageOptions& options);
  void append(BatchNumber from, BatchNumber to);  // sample batches, one call each

  std::unique_ptr<CommitLog> log;
  Transcript transcript;
  RecoveredPosition position;
};

// The status of opening and recovering a damaged directory.
Status open_status(const StorageOptions& options, Transcript* transcript = nullptr);

// The lines that a Transcript of sample batches [from, to] has.
std::vector<std::string> sample_lines(BatchNumber from, BatchNumber to);

}  // namespace kilokv::server::storage
