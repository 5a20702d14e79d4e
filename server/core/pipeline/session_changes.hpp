// Opens and closes sessions, and gives them new holders. All three are entries of a batch. The caller's `done` is
// called when that batch is durable.
//
// An attach goes in these steps:
//   1. The executor gives the session its new holder. From then on, no earlier holder is admitted
//   (SessionTable::attach).
//   2. The entry goes into the next batch, and becomes durable with it.
//   3. The executor lists what the session knows, and counts what of it is parked.
//   4. The batch that was the newest then is answered. Its results, and those of all batches before, belong to the
//   list. They may be many, so the caller adds them in another thread (Database::add_results).
// A crash before step 2 is complete takes the new holder back. Nobody was told of it, except earlier holders whose
// calls were refused meanwhile.
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
#include "server/core/sessions/session_list.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {

class SessionChanges {
 public:
  // All of these outlive it. `commands`: bounds the calls in progress.
  SessionChanges(CoreContext* core, ExecuteStage* execute, Batcher* batcher, Waiting* waiting, InFlight* commands)
      : core_(core), execute_(execute), batcher_(batcher), waiting_(waiting), commands_(commands) {}

  // As Database::open_session, close_session and attach_session.
  void open(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login, DurationUs lease_us,
            std::function<void(Result<SessionId>, DurationUs lease_us)> done);
  void close(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login, const HeldSession& session,
             std::function<void(Status)> done);
  void attach(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login, const AttachTarget& target,
              AttachBegins begins, std::function<void(Result<SessionList>)> done);
  // Closes all sessions of a user with the next batch, also those that are being opened. Executor.
  void close_all_of(const std::string& user);

 private:
  // A session whose opening is with a batch, and that the session table may not have yet.
  struct Opening {
    BatchNumber batch;
    SessionId session;
    std::string user;
  };

  struct AttachCall {
    std::shared_ptr<Client> client;
    std::shared_ptr<const Login> login;
    AttachTarget target;
    AttachBegins begins;
    std::function<void(Result<SessionList>)> done;
  };

  Status check_login(const Login* login) const;
  void attach_now(const std::shared_ptr<AttachCall>& call);
  void list_now(const std::shared_ptr<AttachCall>& call);
  Result<SessionOwner> count_opening(const std::shared_ptr<Client>& client);
  Status reserve_entry();
  void note_opening(const SessionEntry& entry);
  void forget_answered();

  CoreContext* const core_;
  ExecuteStage* const execute_;
  Batcher* const batcher_;
  Waiting* const waiting_;
  InFlight* const commands_;
  std::atomic<std::uint64_t> opening_{0};
  std::deque<Opening> opened_;   // those of users, in the order of their batches. Executor.
  BatchNumber last_attach_ = 0;  // the batch of the newest attach. Executor.
};

}  // namespace kilokv::server
