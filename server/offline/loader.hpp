// Loads a database into memory as a start of the server does, and compares the hash of its state. It uses the recovery
// of core, without a pipeline after it.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

// The fields that a position knows.
void fill_position(const RecoveredPosition& position, Summary* summary);

// An engine that only loads records.
Result<std::unique_ptr<engine::Engine>> create_loading_engine(const engine::KeyHashSecret& secret);

class Loader {
 public:
  Loader();
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Takes what the database holds.
  RecoveryVisitor* visitor();
  // Everything was visited. DATA_LOSS: the state does not have the hash of this position.
  Status finish(const RecoveredPosition& position);
  // Requires: finish() was ok.
  void fill(const RecoveredPosition& position, Summary* summary) const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace kilokv::server::offline
