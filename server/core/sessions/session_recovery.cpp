// The recovery of sessions, and their copies for a checkpoint.
#include <algorithm>
#include <string>
#include <utility>

#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

// Stores a slice of results unless it is already there. Only recovery calls it: one thread, no locks. `transactions`
// may be any number that the disk has, so memory is taken only for the indices that the slice shows.
Status SessionTable::restore_results(Session* session, std::uint64_t number, const Hash128& digest,
                                     std::uint32_t transactions, std::string_view bytes) {
  if (number <= session->acknowledged_through) {
    return {};
  }
  const auto stored = std::make_shared<const std::string>(bytes);
  const Result<StoredSlice> slice = StoredSlice::parse(stored);
  if (!slice.ok()) {
    return slice.status();
  }
  std::shared_ptr<RequestState>& request = session->requests[number];
  if (request == nullptr) {
    request = std::make_shared<RequestState>(digest, transactions);
    request->restored = std::make_unique<IndexSet>();
  }
  IndexMarker marker(request->transactions, request->restored.get());
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
  request->stored.push_back(stored);
  request->finished += slice->size();
  if (request->complete()) {
    request->restored.reset();
  }
  session->charge(request.get(), bytes.size());
  return {};
}

void SessionTable::insert_restored(const std::shared_ptr<Session>& session, TimeUs now_us) {
  insert(session, now_us);
  if (session->user.empty()) return;
  const std::scoped_lock lock(restored_mutex_);
  restored_[session->user].push_back(session->id);
}

Status SessionTable::restore(const StoredSession& stored, TimeUs now_us) {
  std::shared_ptr<Session> session;
  if (stored.piece == 0) {
    session = std::make_shared<Session>(stored.session, stored.lease_us, stored.user, now_us, &bytes_, limits_.uploads);
    session->acknowledged_through = stored.acknowledged_through;
    session->newest_holder = session->durable_holder = stored.holder;
    session->frozen = stored.frozen;
    insert_restored(session, now_us);
  } else {
    session = find(stored.session);
    if (session == nullptr) {
      return Status(StatusCode::data_loss, "piece " + std::to_string(stored.piece) + " of a session has no piece 0");
    }
  }
  for (const StoredSession::Request& request : stored.requests) {
    for (const std::string& bytes : request.results) {
      if (Status status = restore_results(session.get(), request.number, request.digest, request.transactions, bytes);
          !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

// The results that were stored under other settings may be more than the memory that they have now. The oldest request
// of a session may take them to twice the limit.
Status SessionTable::check_restored(std::uint64_t log_bytes) const {
  const std::uint64_t most = 2 * limits_.session_bytes_total_max + log_bytes;
  const std::uint64_t stored = stored_bytes();
  if (stored <= most) {
    return {};
  }
  return Status::exhausted(
      ErrorReason::memory_full,
      {"stored results of all sessions",
       std::to_string(most) + " bytes, which is 2 times --session-bytes-total-max and the log since the "
                              "last checkpoint",
       "more than " + std::to_string(stored - 1) + " bytes that the log holds", "--session-bytes-total-max"},
      Status::kNoRetry);
}

// The checkpoint may have a later holder.
void SessionTable::restore_holder(Session* session, const RequestIdentity& attached) {
  session->newest_holder = session->durable_holder = std::max(session->durable_holder, attached.holder);
  Dropped dropped;
  session->acknowledge(attached.acknowledged_through, &dropped);
}

Status SessionTable::restore(const SessionEntry& entry, TimeUs now_us, bool frozen) {
  const std::shared_ptr<Session> session = find(*entry.identity.session);
  switch (entry.kind) {
    case SessionEntry::Kind::opened:
      if (session == nullptr) {
        const auto opened = std::make_shared<Session>(*entry.identity.session, entry.lease_us, entry.user, now_us,
                                                      &bytes_, limits_.uploads);
        opened->frozen = frozen;
        insert_restored(opened, now_us);
      }
      return {};
    case SessionEntry::Kind::closed: return session == nullptr ? Status() : close(*entry.identity.session);
    case SessionEntry::Kind::attached:
      if (session != nullptr) restore_holder(session.get(), entry.identity);
      return {};
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

// Shows the session in pieces, so that its results are not there a second time as a whole. Copies them without a lock,
// because the answer worker must not wait for that. Does nothing if it is closed.
Status SessionTable::show_pieces(const Session& session, const std::function<Status(const StoredSession&)>& show) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  StoredSession piece;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<RequestState>>> requests;
  {
    const std::scoped_lock lock(session.mutex);
    if (session.closed) {
      return {};
    }
    piece = {session.id,   session.lease_us, session.acknowledged_through, {},
             session.user, /*piece=*/0,      session.durable_holder};
    piece.frozen = session.frozen;
    requests.assign(session.requests.begin(), session.requests.end());
  }
  std::size_t bytes = 0;
  for (const auto& [number, request] : requests) {
    if (number <= piece.acknowledged_through) {
      continue;
    }
    const std::vector<StoredBytes> stored = request->stored_now();
    for (std::size_t next = 0; next < stored.size();) {
      if (bytes >= kPieceBytes) {
        if (Status status = show(piece); !status.ok()) {
          return status;
        }
        ++piece.piece;
        piece.requests.clear();
        bytes = 0;
      }
      std::vector<std::string> results;
      for (; next < stored.size() && bytes < kPieceBytes; ++next) {
        bytes += stored[next]->size() + kSliceBytes;
        results.push_back(*stored[next]);
      }
      piece.requests.push_back({number, request->digest, request->transactions, std::move(results)});
    }
  }
  return show(piece);
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
      if (Status status = show_pieces(*session, show); !status.ok()) {
        return status;
      }
    }
  }
  return {};
}

}  // namespace kilokv::server
