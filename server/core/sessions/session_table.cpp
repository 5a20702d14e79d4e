// The life of sessions: opening, leases, the end. Requests are in session_requests.cpp, uploads in session_uploads.cpp,
// recovery in session_recovery.cpp.
#include "server/core/sessions/session_table.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/options.hpp"
#include "server/core/sessions/session_state.hpp"

namespace kilokv::server {

static constexpr DurationUs kExpiryStepUs = 250'000;

Status unknown_session() {
  return Status(StatusCode::failed_precondition, ErrorReason::session_unknown,
                "the session is unknown or has expired: open a new one; whether its unanswered requests were applied "
                "is not known "
                "any more");
}

Status read_only_session() {
  return Status(
      StatusCode::failed_precondition, ErrorReason::read_only,
      "this server only reads, and runs nothing in a session: it returns results that it has stored; start it "
      "with --read-only off, or ask without a session");
}

Status frozen_session() {
  return Status(StatusCode::failed_precondition, ErrorReason::session_frozen,
                "the database was restored from a backup, and the session is from before: it returns results that it "
                "has stored, and runs nothing more; open a new one. What the session ran after the moment to which the "
                "database was restored is undone");
}

Status session_of_other() {
  return Status::violating(StatusCode::permission_denied, ErrorReason::right_missing,
                           "the session belongs to another user",
                           {"session", "a session of the same user", "a session of another user", ""});
}

Status session_fenced(std::uint64_t holder, std::uint64_t newest) {
  return Status::violating(StatusCode::failed_precondition, ErrorReason::session_fenced,
                           "another client has attached to the session: this is a call of holder " +
                               std::to_string(holder) + ", and the session belongs to holder " +
                               std::to_string(newest) + " now",
                           {"holder", "holder " + std::to_string(newest), "holder " + std::to_string(holder), ""});
}

std::size_t SessionTable::SessionIdHash::operator()(const SessionId& id) const {
  std::size_t hash = 0;  // ids are random
  std::memcpy(&hash, id.bytes.data(), sizeof hash);
  return hash;
}

SessionLimits session_limits(const DatabaseOptions& options) {
  return {options.sessions_max,
          options.session_lease_us_min,
          options.session_lease_us_max,
          options.session_requests_max,
          options.session_bytes_max,
          options.session_bytes_total_max,
          {options.read_set_keys_max, options.uploads_bytes_max, options.session_uploads_bytes_max,
           options.queue_bytes_max, options.upload_idle_us_max}};
}

SessionTable::SessionTable(const SessionLimits& limits)
    : limits_(limits),
      upload_counts_(limits.uploads.uploads_bytes_max, " bytes of uploaded read sets of all sessions",
                     "--uploads-bytes-max") {}
SessionTable::~SessionTable() = default;

std::shared_ptr<SessionTable::Session> SessionTable::find(const SessionId& id) const {
  const Shard& shard = shard_of(id);
  const std::scoped_lock lock(shard.mutex);
  const auto it = shard.sessions.find(id);
  return it == shard.sessions.end() ? nullptr : it->second;
}

void SessionTable::insert(const std::shared_ptr<Session>& session, TimeUs now_us) {
  Shard& shard = shard_of(session->id);
  const std::scoped_lock lock(shard.mutex);
  KILOKV_CHECK(shard.sessions.emplace(session->id, session).second);
  shard.next_expiry_us = std::min(shard.next_expiry_us.load(), now_us + session->lease_us);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void SessionTable::look_at(const SessionId& id, TimeUs at_us) {
  Shard& shard = shard_of(id);
  const std::scoped_lock lock(shard.mutex);
  shard.next_expiry_us = std::min(shard.next_expiry_us.load(), at_us);
}

void SessionTable::erase(const SessionId& id) {
  Shard& shard = shard_of(id);
  const std::scoped_lock lock(shard.mutex);
  shard.sessions.erase(id);
}

Status SessionTable::open(const SessionId& id, DurationUs lease_us, TimeUs now_us, const std::string& user) {
  if (lease_us < limits_.session_lease_us_min || lease_us > limits_.session_lease_us_max) {
    const bool low = lease_us < limits_.session_lease_us_min;
    return Status::invalid(
        {"lease",
         std::string(low ? "at least " : "at most ") +
             std::to_string(low ? limits_.session_lease_us_min : limits_.session_lease_us_max) + " microseconds",
         std::to_string(lease_us) + " microseconds", low ? "--session-lease-min" : "--session-lease-max"});
  }
  if (const auto open = count(); open >= limits_.sessions_max) {
    return Status::exhausted(ErrorReason::sessions_full,
                             {"session", std::to_string(limits_.sessions_max) + " sessions",
                              std::to_string(open + 1) + " sessions with this one", "--sessions-max"},
                             limits_.session_lease_us_min);
  }
  insert(std::make_shared<Session>(id, lease_us, user, now_us, &bytes_, limits_.uploads), now_us);
  return {};
}

Status SessionTable::check_owner(const SessionId& id, const Client* client) const {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) return unknown_session();
  return session->allows(client) ? Status() : session_of_other();
}

Status SessionTable::check_holder(const HeldSession& held, const Client* client) const {
  const std::shared_ptr<Session> session = find(held.id);
  if (session == nullptr) return unknown_session();
  const std::scoped_lock lock(session->mutex);
  return session->check(client, held.holder);
}

std::vector<SessionId> SessionTable::of_user(std::string_view user) const {
  std::vector<SessionId> ids;
  for (const Shard& shard : shards_) {
    const std::scoped_lock lock(shard.mutex);
    for (const auto& [id, session] : shard.sessions) {
      if (session->user == user) ids.push_back(id);
    }
  }
  return ids;
}

std::vector<SessionInfo> SessionTable::largest(std::size_t limit, TimeUs now_us) const {
  std::vector<SessionInfo> sessions;
  const auto keep_largest = [&] {
    if (sessions.size() <= limit) return;
    std::nth_element(sessions.begin(), sessions.begin() + static_cast<std::ptrdiff_t>(limit), sessions.end(),
                     [](const SessionInfo& a, const SessionInfo& b) { return a.bytes() > b.bytes(); });
    sessions.resize(limit);
  };
  std::vector<std::shared_ptr<Session>> of_shard;
  for (const Shard& shard : shards_) {
    of_shard.clear();
    {
      const std::scoped_lock lock(shard.mutex);
      for (const auto& [id, session] : shard.sessions) of_shard.push_back(session);
    }
    for (const std::shared_ptr<Session>& session : of_shard) {
      const std::scoped_lock lock(session->mutex);
      if (session->closed) continue;
      sessions.push_back({.id = session->id,
                          .user = session->user,
                          .lease_us = session->lease_us,
                          .left_us = session->deadline_us - now_us,
                          .holder = session->newest_holder,
                          .acknowledged_through = session->acknowledged_through,
                          .requests = session->requests.size(),
                          .in_flight = session->in_flight,
                          .uploads = session->uploads.size(),
                          .stored_bytes = session->stored_bytes,
                          .reserved_bytes = session->reserved_bytes});
    }
    if (sessions.size() > 2 * limit) keep_largest();
  }
  keep_largest();
  return sessions;
}

void SessionTable::adopt(const std::shared_ptr<Client>& client) {
  if (client == nullptr || client->user().empty()) return;
  std::vector<SessionId> sessions;
  {
    const std::scoped_lock lock(restored_mutex_);
    const auto found = restored_.find(std::string(client->user()));
    if (found == restored_.end()) return;
    sessions = std::move(found->second);
    restored_.erase(found);
  }
  for (const SessionId& session : sessions) give_owner(session, SessionOwner(client));
}

void SessionTable::give_owner(const SessionId& id, SessionOwner owner) {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) return;
  const std::scoped_lock lock(session->mutex);
  session->give_owner(std::move(owner));
}

Status SessionTable::close(const SessionId& id) {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) {
    return unknown_session();
  }
  bool is_over = false;
  {
    const std::scoped_lock lock(session->mutex);
    if (session->closed) {
      return unknown_session();
    }
    session->closed = true;
    count_.fetch_sub(1, std::memory_order_relaxed);
    is_over = session->in_flight == 0;
  }
  if (is_over) {
    erase(id);
  }
  ended(session);
  return {};
}

void SessionTable::ended(std::shared_ptr<Session> session) {
  const std::scoped_lock lock(ended_mutex_);
  ended_.push_back({std::move(session)});
  ended_count_.store(ended_.size(), std::memory_order_release);
}

// One upload at a time, because an upload can be large.
void SessionTable::free_ended(std::size_t most) {
  if (!has_ended()) {
    return;
  }
  for (std::size_t freed = 0; freed < most;) {
    Dropped dropped;  // freed after the locks, and so is the session
    Ended next;
    {
      const std::scoped_lock lock(ended_mutex_);
      if (ended_.empty()) {
        return;
      }
      next = std::move(ended_.front());
      ended_.pop_front();
      ended_count_.store(ended_.size(), std::memory_order_release);
    }
    Session& session = *next.session;
    bool is_done = false;
    {
      const std::scoped_lock lock(session.mutex);
      auto it = session.requests.upper_bound(next.through);
      const auto begin = it;
      for (; it != session.requests.end() && freed < most; ++it) {
        next.through = it->first;
        freed += 1 + (it->second->in_flight ? 0 : it->second->stored.size());
      }
      is_done = it == session.requests.end() && session.uploads.empty();
      session.drop(begin, it, &dropped);
      if (!session.uploads.empty()) {
        dropped.uploads.push_back(std::move(session.uploads.begin()->second));
        session.uploads.erase(session.uploads.begin());
        freed = most;
      }
    }
    ++freed;
    if (!is_done) {
      const std::scoped_lock lock(ended_mutex_);
      ended_.push_front(std::move(next));
      ended_count_.store(ended_.size(), std::memory_order_release);
    }
  }
}

Status SessionTable::touch(const HeldSession& held, TimeUs now_us) {
  const std::shared_ptr<Session> session = find(held.id);
  if (session == nullptr) {
    return unknown_session();
  }
  const std::scoped_lock lock(session->mutex);
  if (session->closed) {
    return unknown_session();
  }
  if (held.holder != session->newest_holder) return session_fenced(held.holder, session->newest_holder);
  session->renew(now_us);
  return {};
}

bool SessionTable::contains(const SessionId& id) const {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) {
    return false;
  }
  const std::scoped_lock lock(session->mutex);
  return !session->closed;
}

std::vector<SessionId> SessionTable::expire(TimeUs now_us, std::size_t most) {
  std::vector<SessionId> expired;
  for (Shard& shard : shards_) {
    if (expired.size() >= most) {
      break;
    }
    if (shard.next_expiry_us.load(std::memory_order_relaxed) <= now_us) {
      expire_shard(&shard, now_us, most, &expired);
    }
  }
  count_.fetch_sub(expired.size(), std::memory_order_relaxed);
  return expired;
}

void SessionTable::expire_shard(Shard* shard, TimeUs now_us, std::size_t most, std::vector<SessionId>* expired) {
  // Declared before the locks and so freed after them, because to free an upload may take a while.
  std::vector<std::shared_ptr<Upload>> dropped;
  std::vector<std::shared_ptr<Session>> over;
  {
    const std::scoped_lock shard_lock(shard->mutex);
    TimeUs next_us = kNever;
    std::erase_if(shard->sessions, [&](auto& entry) {
      Session& session = *entry.second;
      const std::scoped_lock lock(session.mutex);
      if (session.closed) {
        return false;
      }
      if (session.in_flight > 0) {
        session.renew(now_us);
      }
      if (session.deadline_us > now_us) {
        session.drop_idle_uploads(now_us, &dropped);
        next_us = std::min({next_us, session.deadline_us, session.uploads_idle_from_us()});
        return false;
      }
      if (expired->size() >= most) {
        next_us = now_us;
        return false;
      }
      session.closed = true;
      expired->push_back(session.id);
      over.push_back(entry.second);
      return true;
    });
    shard->next_expiry_us = next_us == now_us ? now_us : std::max(next_us, now_us + kExpiryStepUs);
  }
  for (std::shared_ptr<Session>& session : over) {
    ended(std::move(session));
  }
}

}  // namespace kilokv::server
