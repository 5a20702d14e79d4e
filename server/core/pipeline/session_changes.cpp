#include "server/core/pipeline/session_changes.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "server/core/access/access_check.hpp"

namespace kilokv::server {
namespace {

Status check_lease(DurationUs lease_us, const DatabaseOptions& options) {
  if (lease_us >= options.session_lease_us_min && lease_us <= options.session_lease_us_max) return {};
  return Status::invalid({"lease_us",
                          std::to_string(options.session_lease_us_min) + " to " +
                              std::to_string(options.session_lease_us_max) + " microseconds",
                          std::to_string(lease_us) + " microseconds", "--session-lease-min, --session-lease-max"});
}

SessionId random_session(Random* random) {
  SessionId session;
  const std::uint64_t id[2] = {random->next(), random->next()};
  static_assert(sizeof id == sizeof session.bytes);
  std::memcpy(session.bytes.data(), id, sizeof id);
  return session;
}

}  // namespace

// Counts one more session in `opening_` and for the client if it returns ok.
Result<SessionOwner> SessionChanges::count_opening(const std::shared_ptr<Client>& client) {
  constexpr std::int64_t kRetryAfterUs = 1000000;
  core_->sessions.adopt(client);
  const std::uint64_t most = core_->options.sessions_max;
  const std::uint64_t opening = opening_.fetch_add(1) + 1;
  const std::uint64_t sessions = core_->sessions.count() + opening;
  SessionOwner owner(client);
  const std::uint64_t share = SharedLimit::share_of_client(most, sessions);
  if (sessions <= most && owner.sessions() <= share) return owner;
  opening_.fetch_sub(1);
  if (sessions <= most) {
    return Status::exhausted(
        ErrorReason::sessions_full,
        {"session", std::to_string(share) + " sessions for one client at the moment",
         std::to_string(owner.sessions()) + " sessions of this client with this one", "--sessions-max"},
        kRetryAfterUs);
  }
  return Status::exhausted(
      ErrorReason::sessions_full,
      {"session", std::to_string(most) + " sessions",
       std::to_string(sessions) + " sessions, with this one and others that are being opened", "--sessions-max"},
      kRetryAfterUs);
}

// The login may have been taken away while the command waited.
Status SessionChanges::check_login(const Login* login) const {
  if (login == nullptr || core_->access.latest()->rights(*login) != nullptr) return {};
  return login_gone(login->user).as_not_run();
}

void SessionChanges::open(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login,
                          DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs)> done) {
  if (core_->draining.load(std::memory_order_acquire)) return done(draining().as_not_run(), 0);
  if (lease_us == 0) lease_us = core_->options.session_lease_us_default;
  Status status = check_lease(lease_us, core_->options);
  if (!status.ok()) return done(status.as_not_run(), 0);
  Result<SessionOwner> owner = count_opening(client);
  if (!owner.ok()) return done(owner.status().as_not_run(), 0);
  if (status = commands_->enter(client); !status.ok()) {
    opening_.fetch_sub(1);
    return done(std::move(status), 0);
  }
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::opened;
  entry.lease_us = lease_us;
  if (client != nullptr) entry.user = client->user();
  const SessionId session = random_session(core_->environment.random);
  entry.identity.session = session;
  execute_->post(client, [this, entry, session, login = std::move(login), owner = std::move(*owner),
                          done = commands_->returning(client, std::move(done))] {
    Status allowed = check_login(login.get());
    if (allowed.ok()) allowed = reserve_entry();
    if (!allowed.ok()) {
      opening_.fetch_sub(1);
      return done(std::move(allowed), 0);
    }
    batcher_->attach(entry);
    note_opening(entry);
    batcher_->attach([this, session, owner, lease_us = entry.lease_us, done] {
      opening_.fetch_sub(1);
      core_->sessions.give_owner(session, owner);
      done(session, lease_us);
    });
  });
}

// Sessions that are opened and attached write the log, too. So they end where other work ends: on a full disk, and with
// an archive that is required and late. A close is always taken, and there are at most as many as were opened. The room
// is free again after the next batch.
Status SessionChanges::reserve_entry() {
  Status status = core_->log->reserve(kSmallRecordBytes, LogUse::reads_and_deletes);
  if (!status.ok()) return status.as_not_run();
  batcher_->attach([this] { core_->log->release(kSmallRecordBytes); });
  return status;
}

// What is attached goes with the next batch.
void SessionChanges::note_opening(const SessionEntry& entry) {
  forget_answered();
  if (!entry.user.empty()) opened_.push_back({core_->executed.batch() + 1, *entry.identity.session, entry.user});
}

void SessionChanges::forget_answered() {
  while (!opened_.empty() && opened_.front().batch <= core_->answered.batch()) opened_.pop_front();
}

void SessionChanges::close_all_of(const std::string& user) {
  forget_answered();  // first, so that no session leaves this list before the table has it
  std::vector<SessionId> sessions = core_->sessions.of_user(user);
  for (const Opening& opened : opened_) {
    if (opened.user == user) sessions.push_back(opened.session);
  }
  for (const SessionId& session : sessions) {
    SessionEntry entry;
    entry.kind = SessionEntry::Kind::closed;
    entry.identity.session = session;
    batcher_->attach(entry);
  }
}

void SessionChanges::close(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login,
                           const HeldSession& session, std::function<void(Status)> done) {
  if (Status status = core_->sessions.check_holder(session, client.get()); !status.ok()) {
    return done(status.as_not_run());
  }
  if (Status status = commands_->enter(client); !status.ok()) return done(std::move(status));
  execute_->post(
      client, [this, client, session, login = std::move(login), done = commands_->returning(client, std::move(done))] {
        Status allowed = check_login(login.get());
        // Another client may have attached meanwhile. Its session must not end.
        if (allowed.ok()) allowed = core_->sessions.check_holder(session, client.get());
        if (allowed.reason() == ErrorReason::session_unknown) allowed = {};  // it has ended by itself
        if (!allowed.ok()) return done(allowed.as_not_run());
        SessionEntry entry;
        entry.kind = SessionEntry::Kind::closed;
        entry.identity.session = session.id;
        batcher_->attach(entry);
        batcher_->attach([done] { done(Status()); });
      });
}

void SessionChanges::attach(const std::shared_ptr<Client>& client, std::shared_ptr<const Login> login,
                            const AttachTarget& target, AttachBegins begins,
                            std::function<void(Result<SessionList>)> done) {
  if (core_->draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  if (Status status = core_->sessions.check_owner(target.session, client.get()); !status.ok()) {
    return done(status.as_not_run());
  }
  if (Status status = commands_->enter(client); !status.ok()) return done(std::move(status));
  const auto call = std::make_shared<AttachCall>(
      AttachCall{client, std::move(login), target, std::move(begins), commands_->returning(client, std::move(done))});
  execute_->post(client, [this, call] { call->target.holder == 0 ? attach_now(call) : list_now(call); });
}

// A command.
void SessionChanges::attach_now(const std::shared_ptr<AttachCall>& call) {
  Status allowed = check_login(call->login.get());
  if (allowed.ok()) allowed = reserve_entry();
  if (!allowed.ok()) return call->done(std::move(allowed));
  const Result<SessionEntry> entry = core_->sessions.attach(call->target.session, call->client, call->target.attempt,
                                                            core_->environment.clock->monotonic_us());
  if (!entry.ok()) return call->done(entry.status().as_not_run());
  call->target.holder = entry->identity.holder;
  last_attach_ = core_->executed.batch() + 1;  // it goes with the next batch
  if (call->begins) call->begins(last_attach_, call->target.holder);
  batcher_->attach(*entry);
  batcher_->attach([this, call] { execute_->post(call->client, [this, call] { list_now(call); }); });
}

// A command. What is parked now, and what was decided up to the newest batch, are of the same moment. The rest of the
// requests in flight is queued, or about to be. Whoever asks as a holder may ask before the attach is durable. A crash
// would then take the holder back, and nothing of the list would be final. So the answer waits.
void SessionChanges::list_now(const std::shared_ptr<AttachCall>& call) {
  if (Status allowed = check_login(call->login.get()); !allowed.ok()) return call->done(std::move(allowed));
  const AttachTarget& target = call->target;
  Result<SessionList> list =
      core_->sessions.list({target.session, target.holder}, call->client.get(), target.from.number);
  if (!list.ok()) return call->done(list.status().as_not_run());
  list->incarnation = core_->incarnation.id;
  for (ListedRequest& listed : list->requests) {
    if (!listed.in_flight) continue;
    listed.parked = static_cast<std::uint32_t>(waiting_->parked_of({target.session, listed.number}));
  }
  list->boundary = core_->executed.batch();
  const auto shared = std::make_shared<SessionList>(std::move(*list));
  core_->when_answered(std::max({shared->boundary, last_attach_, core_->access.last_change()}),
                       [call, shared] { call->done(std::move(*shared)); });
}

}  // namespace kilokv::server
