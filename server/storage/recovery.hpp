// Start-up: verifies and visits everything in the directory, in the order of RecoveryVisitor, and finds the position of
// the database. In a new directory it creates the database's identity.
//
// Invariants: every batch after the checkpoint, up to the highest one known to be durable, is there exactly once, is
// intact, and follows the one before it. Otherwise the result is DATA_LOSS.
//
// Thread safety: none; one thread, before everything else.
#pragma once

#include <rocksdb/iterator.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/log_history.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/store.hpp"
#include "server/storage/stored_values.hpp"

namespace kilokv::server::storage {

class Recovery {
 public:
  // Everything passed in outlives it. `history` and `acknowledged` are new: run() fills the first and opens the second.
  Recovery(Store* store, RecoveryVisitor* visitor, LogHistory* history, AcknowledgedFile* acknowledged)
      : store_(store), visitor_(visitor), history_(history), acknowledged_(acknowledged) {}

  Result<RecoveredPosition> run();

  // The same for a database that is only checked: nothing is written, and `acknowledged` may be null. `found` is told
  // of each damage. What is damaged is left out, and the rest is visited. Errors: a damage after which nothing more can
  // be visited; an unknown format.
  Result<RecoveredPosition> check(OnDamage found);

  // The results of run().
  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::uint64_t generation() const { return generation_; }  // the highest of any session record
  std::uint32_t last_crc() const { return last_crc_; }      // of the last record
  std::uint32_t format() const { return format_; }          // of the directory
  const DatabaseIdentity& identity() const { return identity_; }
  std::uint64_t writes_since_checkpoint() const { return writes_since_checkpoint_; }

 private:
  Status identify();
  Status create_identity();
  Status check_format();
  Result<Incarnation> read_incarnation(const DatabaseIdentity& identity) const;
  Status read_checkpoint();
  Status visit_access();
  StateSize state_size() const;
  Status visit_state();
  Status each_state(const std::function<Status(const StoredRecord&)>& visit);
  Status visit_sessions();
  Status read_segments();
  Status visit_log();
  Status visit_record(BatchNumber batch, std::string_view bytes);
  Status check_chain(const RecordView& record);
  BatchNumber log_begin() const;
  Status acknowledge_recovered();

  Result<std::optional<std::string>> metadata(const char* key) const;
  std::unique_ptr<rocksdb::Iterator> scan(Family family) const;
  Status damaged(const std::string& where, const Status& status) const;
  Status passed(const std::string& where, const Status& status) const;

  Store* const store_;
  RecoveryVisitor* const visitor_;
  LogHistory* const history_;
  AcknowledgedFile* const acknowledged_;
  engine::KeyHashSecret secret_;  // with which a key is named in an error
  Checkpoint checkpoint_;
  RecoveredPosition position_;
  BatchNumber durable_ = 0;        // the log must reach at least this batch
  BatchNumber history_begin_ = 1;  // the first batch that is in no stored segment
  std::uint64_t generation_ = 0;
  std::uint64_t writes_since_checkpoint_ = 0;
  std::uint32_t last_crc_ = 0;
  std::uint32_t format_ = kFirstDatabaseFormat;
  DatabaseIdentity identity_;
  OnDamage found_;                             // only of a check
  BatchNumber log_start_ = 1;                  // the first batch that trimming has left
  std::optional<std::uint32_t> previous_crc_;  // of the record before, if it was whole; only of a check
};

}  // namespace kilokv::server::storage
