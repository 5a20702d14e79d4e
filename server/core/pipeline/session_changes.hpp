// Opens and closes sessions. Both are entries of a batch: the caller hears of them when that batch is durable.
//
// Invariant: sessions that are on their way to be opened count against --sessions-max, although they are in the session
// table only when they are durable.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/base/status.hpp"
#include "server/core/in_flight.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/execute_stage.hpp"

namespace kilokv::server {

class SessionChanges {
 public:
  // All outlive it. `commands`: bounds the calls that are on their way.
  SessionChanges(CoreContext* core, ExecuteStage* execute, Batcher* batcher, InFlight* commands)
      : core_(core), execute_(execute), batcher_(batcher), commands_(commands) {}

  // As Database::open_session and Database::close_session.
  void open(DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs lease_us)> done);
  void close(const SessionId& session, std::function<void(Status)> done);

 private:
  Status count_opening();

  CoreContext* const core_;
  ExecuteStage* const execute_;
  Batcher* const batcher_;
  InFlight* const commands_;
  std::atomic<std::uint64_t> opening_{0};
};

}  // namespace kilokv::server
