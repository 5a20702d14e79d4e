// The recovery of sessions, and their copies for a checkpoint.
#include <string>
#include <utility>

#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

// Stores a slice of results unless it is already there. Only recovery calls it: one thread, no locks.
Status SessionTable::restore_results(Session* session, std::uint64_t number, const Hash128& digest,
                                     std::uint32_t transactions, std::string_view bytes) {
  if (number <= session->acknowledged_through) {
    return {};
  }
  std::shared_ptr<RequestState>& request = session->requests[number];
  if (request == nullptr) {
    request = std::make_shared<RequestState>(digest, transactions);
    request->restored.resize(transactions);
  }
  Result<StoredSlice> slice = StoredSlice::parse(std::string(bytes));
  if (!slice.ok()) {
    return slice.status();
  }
  IndexMarker marker(&request->restored);
  slice->visit(&marker);
  if (marker.repeated == slice->size()) {
    return {};
  }
  if (marker.repeated != 0 || marker.out_of_range != 0 || request->digest != digest ||
      request->transactions != transactions) {
    return Status(StatusCode::data_loss, "the stored results of request number " + std::to_string(number) +
                                             " in batch " + std::to_string(slice->batch()) +
                                             " contradict those stored before");
  }
  request->stored.emplace_back(bytes);
  request->finished += slice->size();
  session->charge(request.get(), bytes.size());
  return {};
}

Status SessionTable::restore(const StoredSession& stored, TimeUs now_us) {
  const auto session =
      std::make_shared<Session>(stored.session, stored.lease_us, stored.user, now_us, &bytes_, limits_.uploads);
  session->acknowledged_through = stored.acknowledged_through;
  for (const StoredSession::Request& request : stored.requests) {
    for (const std::string& bytes : request.results) {
      if (Status status = restore_results(session.get(), request.number, request.digest, request.transactions, bytes);
          !status.ok()) {
        return status;
      }
    }
  }
  insert(session, now_us);
  return {};
}

Status SessionTable::restore(const SessionEntry& entry, TimeUs now_us) {
  const std::shared_ptr<Session> session = find(*entry.identity.session);
  switch (entry.kind) {
    case SessionEntry::Kind::opened:
      if (session == nullptr) {
        insert(std::make_shared<Session>(*entry.identity.session, entry.lease_us, entry.user, now_us, &bytes_,
                                         limits_.uploads),
               now_us);
      }
      return {};
    case SessionEntry::Kind::closed: return session == nullptr ? Status() : close(*entry.identity.session);
    case SessionEntry::Kind::results:
      if (session == nullptr) {
        return {};
      }
      {
        Dropped dropped;
        session->acknowledge(entry.identity.acknowledged_through, &dropped);
      }
      return restore_results(session.get(), entry.identity.number, entry.identity.digest, entry.transactions,
                             entry.results);
  }
  return Status(StatusCode::data_loss, "unknown kind of session entry");
}

// Returns nothing if the session is closed.
std::optional<StoredSession> SessionTable::copy_of(const Session& session) {
  StoredSession stored;
  std::map<std::uint64_t, std::shared_ptr<RequestState>> requests;
  {
    const std::scoped_lock lock(session.mutex);
    if (session.closed) {
      return std::nullopt;
    }
    stored = {session.id, session.lease_us, session.acknowledged_through, {}, session.user};
    requests = session.requests;
  }
  for (const auto& [number, request] : requests) {
    const std::scoped_lock lock(request->mutex);
    if (number > stored.acknowledged_through && !request->stored.empty()) {
      stored.requests.push_back({number, request->digest, request->transactions, request->stored});
    }
  }
  return stored;
}

Status SessionTable::walk(const std::function<Status(const StoredSession&)>& show) const {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const Shard& shard : shards_) {
    sessions.clear();
    {
      const std::scoped_lock lock(shard.mutex);
      for (const auto& [id, session] : shard.sessions) {
        sessions.push_back(session);
      }
    }
    for (const std::shared_ptr<Session>& session : sessions) {
      const std::optional<StoredSession> stored = copy_of(*session);
      if (!stored) {
        continue;
      }
      if (Status status = show(*stored); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

}  // namespace kilokv::server
