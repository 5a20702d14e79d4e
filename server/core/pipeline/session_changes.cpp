#include "server/core/pipeline/session_changes.hpp"

#include <cstring>
#include <string>
#include <utility>

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

// Counts one more session in `opening_` if it returns ok.
Status SessionChanges::count_opening() {
  constexpr std::int64_t kRetryAfterUs = 1000000;
  const std::uint64_t opening = opening_.fetch_add(1) + 1;
  const std::uint64_t sessions = core_->sessions.count() + opening;
  if (sessions <= core_->options.sessions_max) return {};
  opening_.fetch_sub(1);
  return Status::exhausted(
      ErrorReason::sessions_full,
      {"session", std::to_string(core_->options.sessions_max) + " sessions",
       std::to_string(sessions) + " sessions, with this one and others that are being opened", "--sessions-max"},
      kRetryAfterUs);
}

void SessionChanges::open(DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs)> done) {
  if (core_->draining.load(std::memory_order_acquire)) return done(draining().as_not_run(), 0);
  if (lease_us == 0) lease_us = core_->options.session_lease_us_default;
  Status status = check_lease(lease_us, core_->options);
  if (status.ok()) status = count_opening();
  if (!status.ok()) return done(status.as_not_run(), 0);
  if (status = commands_->enter(); !status.ok()) {
    opening_.fetch_sub(1);
    return done(std::move(status), 0);
  }
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::opened;
  entry.lease_us = lease_us;
  const SessionId session = random_session(core_->environment.random);
  entry.identity.session = session;
  execute_->post([this, entry, session, done = commands_->returning(std::move(done))] {
    batcher_->attach(entry);
    batcher_->attach([this, session, lease_us = entry.lease_us, done] {
      opening_.fetch_sub(1);
      done(session, lease_us);
    });
  });
}

void SessionChanges::close(const SessionId& session, std::function<void(Status)> done) {
  if (!core_->sessions.contains(session)) {
    return done(Status(StatusCode::failed_precondition, ErrorReason::session_unknown, "unknown or expired session")
                    .as_not_run());
  }
  if (Status status = commands_->enter(); !status.ok()) return done(std::move(status));
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::closed;
  entry.identity.session = session;
  execute_->post([this, entry, done = commands_->returning(std::move(done))] {
    batcher_->attach(entry);
    batcher_->attach([done] { done(Status()); });
  });
}

}  // namespace kilokv::server
