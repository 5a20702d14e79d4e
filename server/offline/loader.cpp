#include "server/offline/loader.hpp"

#include <utility>

#include "server/core/checkpoint/recovery.hpp"
#include "server/core/hex.hpp"
#include "server/core/options.hpp"
#include "server/core/sessions/session_table.hpp"
#include "server/core/threads.hpp"

namespace kilokv::server::offline {

struct Loader::Parts {
  SystemClock clock;
  SessionTable sessions{session_limits(DatabaseOptions{})};
  Recovery recovery{&clock, create_loading_engine, &sessions, nullptr};  // no limit of the memory
  std::unique_ptr<engine::Engine> engine;
  std::size_t users = 0;
};

Loader::Loader() : parts_(std::make_unique<Parts>()) {}
Loader::~Loader() = default;

RecoveryVisitor* Loader::visitor() { return &parts_->recovery; }

Status Loader::finish(const RecoveredPosition& position) {
  if (Status status = parts_->recovery.finish(position); !status.ok()) return status;
  parts_->engine = parts_->recovery.take_engine();
  parts_->users = parts_->recovery.take_access().users().size();
  return {};
}

void Loader::fill(const RecoveredPosition& position, Summary* summary) const {
  const engine::EngineStats stats = parts_->engine->stats();
  fill_position(position, summary);
  summary->records = stats.records;
  summary->tombstones = stats.tombstones;
  summary->sessions = parts_->sessions.count();
  summary->users = parts_->users;
  summary->complete = true;
}

Result<std::unique_ptr<engine::Engine>> create_loading_engine(const engine::KeyHashSecret& secret) {
  engine::EngineOptions options;
  options.strategy = "serial";
  options.secret = secret;
  return engine::Engine::create(options);
}

void fill_position(const RecoveredPosition& position, Summary* summary) {
  summary->batch = position.batch;
  summary->checkpoint_batch = position.checkpoint_batch;
  summary->next_version = position.next_version;
  summary->time_us = position.time_us;
  summary->state_hash = hex_of(position.state_hash);
}

}  // namespace kilokv::server::offline
