// Checkpoints of the sample batches of log_fixture.hpp, and the table after their recovery. Thread safety: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/core/commit_log.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {

// The latest record of each key, as core's table has it after a recovery: the newer version wins.
class Table final : public RecoveryVisitor {
 public:
  Status identity(const DatabaseIdentity&) override { return {}; }
  Status state_record(const StoredRecord& record) override { return load(record); }
  Status session(const StoredSession& session) override;
  Status batch_begin(const engine::BatchHeader&, Version) override;
  Status batch_write(const StoredRecord& record) override { return load(record); }
  Status batch_session(const SessionEntry&) override { return {}; }
  Status access_table(std::string_view) override { return {}; }
  Status batch_access(std::string_view) override { return {}; }
  Status batch_end(Hash128) override { return {}; }

  Status load(const StoredRecord& record);

  std::map<std::string, StoredRecord> records;  // their views refer to the keys and to `bytes`
  std::map<std::string, std::string> bytes;
  std::map<std::string, std::string> texts;
  std::vector<StoredSession> sessions;
  std::uint64_t batches = 0;
};

// The table after sample batches 1 to `batch`, as text.
std::map<std::string, std::string> state_after(BatchNumber batch);

// Writes a checkpoint with the state after batch `records_of`, which says that it covers `covers`. It is fuzzy if the
// two differ.
Status checkpoint(CommitLog* log, BatchNumber covers, BatchNumber records_of, std::size_t sessions);

}  // namespace kilokv::server::storage
