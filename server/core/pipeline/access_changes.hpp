// Changes of users, roles and tokens. Each is an entry of a batch. The caller's `done` is called when that batch is
// durable.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>

#include "engine/base/status.hpp"
#include "server/core/access/access.hpp"
#include "server/core/clients/in_flight.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/execute_stage.hpp"

namespace kilokv::server {

class AccessChanges {
 public:
  // All of these outlive it. `commands`: bounds the calls in progress.
  AccessChanges(CoreContext* core, ExecuteStage* execute, Batcher* batcher, InFlight* commands)
      : core_(core), execute_(execute), batcher_(batcher), commands_(commands) {}

  // As Database::change_access.
  void make(std::shared_ptr<Client> client, AccessEdit edit, std::function<void(Result<BatchNumber>)> done);

 private:
  void close_sessions(const std::string& user);
  void make_now(const AccessEdit& edit, const std::function<void(Result<BatchNumber>)>& done);

  CoreContext* const core_;
  ExecuteStage* const execute_;
  Batcher* const batcher_;
  InFlight* const commands_;
};

}  // namespace kilokv::server
