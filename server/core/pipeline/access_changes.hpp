// Changes of users, roles and tokens. Each is an entry of a batch. The caller's `done` is called when that batch is
// durable.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/access/access.hpp"
#include "server/core/clients/in_flight.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/execute_stage.hpp"
#include "server/core/pipeline/session_changes.hpp"

namespace kilokv::server {

class AccessChanges {
 public:
  // All of these outlive it. `commands`: bounds the calls in progress.
  AccessChanges(CoreContext* core, ExecuteStage* execute, Batcher* batcher, SessionChanges* sessions,
                InFlight* commands)
      : core_(core), execute_(execute), batcher_(batcher), sessions_(sessions), commands_(commands) {}

  // As Database::change_access.
  void make(const std::shared_ptr<Client>& client, AccessEdit edit, AccessChangeBegins begins,
            std::function<void(Result<BatchNumber>)> done);

 private:
  std::vector<AccessChange> with_replaced_token(const AccessTable& before, AccessChange change) const;
  void make_now(const AccessEdit& edit, const AccessChangeBegins& begins,
                const std::function<void(Result<BatchNumber>)>& done);

  CoreContext* const core_;
  ExecuteStage* const execute_;
  Batcher* const batcher_;
  SessionChanges* const sessions_;
  InFlight* const commands_;
  BatchNumber last_change_ = 0;  // the batch of the last change
};

}  // namespace kilokv::server
