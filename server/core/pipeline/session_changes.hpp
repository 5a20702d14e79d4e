// Opens and closes sessions. Both are entries of a batch. The caller's `done` is called when that batch is durable.
//
// Invariant: sessions whose opening is not durable yet count against --sessions-max, although they are not in the
// session table yet.
//
// Thread safety: any thread, except where a comment names the executor.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "server/core/clients/in_flight.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/execute_stage.hpp"

namespace kilokv::server {

class SessionChanges {
 public:
  // All of these outlive it. `commands`: bounds the calls in progress.
  SessionChanges(CoreContext* core, ExecuteStage* execute, Batcher* batcher, InFlight* commands)
      : core_(core), execute_(execute), batcher_(batcher), commands_(commands) {}

  // As Database::open_session and Database::close_session.
  void open(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login, DurationUs lease_us,
            std::function<void(Result<SessionId>, DurationUs lease_us)> done);
  void close(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login, const SessionId& session,
             std::function<void(Status)> done);
  // Closes all sessions of a user with the next batch, also those that are being opened. Executor.
  void close_all_of(const std::string& user);

 private:
  // A session whose opening is with a batch, and that the session table may not have yet.
  struct Opening {
    BatchNumber batch;
    SessionId session;
    std::string user;
  };

  Status check_login(const Login* login) const;
  Result<SessionOwner> count_opening(const std::shared_ptr<Client>& client);
  void note_opening(const SessionEntry& entry);
  void forget_answered();

  CoreContext* const core_;
  ExecuteStage* const execute_;
  Batcher* const batcher_;
  InFlight* const commands_;
  std::atomic<std::uint64_t> opening_{0};
  std::deque<Opening> opened_;  // those of users, in the order of their batches. Executor.
};

}  // namespace kilokv::server
