// Start-up: loads what the commit log holds into the engine and the sessions.
//
// Order: identity (creates the engine), state records, sessions, then the batches after the checkpoint. At the end, the
// engine's state hash must be equal to the hash in the last record.
//
// Data that does not fit into the memory ends the start before it is loaded: the records of the checkpoint are counted
// first, unless they surely fit. The batches after them are checked one by one.
//
// Thread safety: none; one thread, before the pipeline starts.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/access/access_table.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/database_events.hpp"
#include "server/core/environment.hpp"
#include "server/core/memory/data_budget.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

class Recovery : public RecoveryVisitor {
 public:
  using EngineFactory = std::function<Result<std::unique_ptr<engine::Engine>>(const engine::KeyHashSecret&)>;

  // `data`: null if nothing bounds the memory of the data. `on_progress`: DatabaseEvents::recovering; may be empty.
  Recovery(const Clock* clock, EngineFactory create_engine, SessionTable* sessions, const DataBudget* data,
           std::function<void(const RecoveryProgress&)> on_progress = {});

  Status identity(const DatabaseIdentity& identity) override;
  bool must_count(const StateSize& most) override;
  void count_record(const StoredRecord& record) override;
  Status counted() override;
  Status state_record(const StoredRecord& record) override;
  Status session(const StoredSession& session) override;
  Status batch_begin(const engine::BatchHeader& header, Version tombstone_floor) override;
  Status batch_write(const StoredRecord& record) override;
  Status batch_session(const SessionEntry& entry) override;
  Status access_table(std::string_view table) override;
  Status batch_access(std::string_view change) override;
  Status batch_end(Hash128 state_hash) override;

  // Called after recover() returned `position`. Errors: DATA_LOSS if the state is not the one that the log describes.
  Status finish(const RecoveredPosition& position);

  std::unique_ptr<engine::Engine> take_engine() { return std::move(engine_); }
  const engine::KeyHashSecret& secret() const { return secret_; }
  const Incarnation& incarnation() const { return incarnation_; }
  std::uint64_t largest_value() const { return largest_value_; }
  // Keys of stored tombstones that the floor had already dropped.
  std::vector<std::string> take_dropped() { return std::move(dropped_); }
  AccessTable take_access() { return std::move(access_); }

 private:
  Status load(const StoredRecord& record);
  Status check_sessions(std::uint64_t log_bytes) const;
  Status load_pending(std::size_t left);
  void raise_floor(Version floor);
  void loaded_one();
  void tell_progress();

  const Clock* clock_;
  EngineFactory create_engine_;
  SessionTable* sessions_;
  const DataBudget* const data_;
  NewData counted_;
  AccessTable access_;
  std::unique_ptr<engine::Engine> engine_;
  engine::KeyHashSecret secret_;
  Incarnation incarnation_;
  bool is_restored_ = false;  // the current batch is of an earlier incarnation
  std::vector<std::string> dropped_;
  std::deque<StoredRecord> pending_;  // writes of the current batch, whose records are being prefetched
  std::uint64_t largest_value_ = 0;
  bool in_batches_ = false;
  const std::function<void(const RecoveryProgress&)> on_progress_;
  RecoveryProgress progress_;
  TimeUs next_told_us_ = 0;
};

}  // namespace kilokv::server
