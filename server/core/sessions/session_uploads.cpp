// The uploads of sessions: found, taken by the requests that they are for, and given back.
#include <utility>

#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

// The first chunk is added to a new upload before the session sees that upload, so that a refused chunk leaves nothing.
Result<std::uint64_t> SessionTable::upload(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret,
                                           TimeUs now_us) {
  const std::shared_ptr<Session> session = find(*chunk.identity.session);
  if (session == nullptr) {
    return unknown_session();
  }
  for (;;) {
    std::shared_ptr<Upload> upload;
    SessionOwner owner;
    Dropped dropped;  // freed after the lock
    {
      const std::scoped_lock lock(session->mutex);
      if (Status status = enter(session.get(), chunk.client.get(), chunk.identity, now_us, &dropped); !status.ok()) {
        return status;
      }
      if (session->frozen) return frozen_session();
      if (!session->owner.known()) session->give_owner(SessionOwner(chunk.client));
      owner = session->owner;
      if (const auto it = session->uploads.find(chunk.identity.number); it != session->uploads.end()) {
        upload = it->second;
        upload->touch(now_us);
      }
    }
    if (upload != nullptr) {
      Result<std::uint64_t> keys = upload->append(chunk, secret);
      // A commit has taken the upload out of the session in the meantime. A first chunk then begins a new upload.
      if (chunk.offset == 0 && keys.status().code() == StatusCode::failed_precondition) {
        continue;
      }
      return keys;
    }
    upload = std::make_shared<Upload>(limits_.uploads, &upload_counts_, session->upload_counts, owner, now_us);
    Result<std::uint64_t> keys = upload->append(chunk, secret);
    if (!keys.ok()) {
      return keys;
    }
    const TimeUs idle_from_us = upload->idle_from_us();
    const HeldSession held(*chunk.identity.session, chunk.identity.holder);
    if (Status status = keep(session.get(), held, chunk.identity.number, &upload); !status.ok()) {
      return status;
    }
    if (upload == nullptr) {
      look_at(*chunk.identity.session, idle_from_us);
      return keys;
    }
  }
}

// If `upload` is null after the call, the session holds it now. Otherwise the session holds another upload of this
// number.
Status SessionTable::keep(Session* session, const HeldSession& of, std::uint64_t number,
                          std::shared_ptr<Upload>* upload) {
  const std::scoped_lock lock(session->mutex);
  if (session->closed) {
    return unknown_session();
  }
  if (of.holder != session->newest_holder) return session_fenced(of.holder, session->newest_holder);
  if (number <= session->acknowledged_through) {
    return acknowledged_already(number, session->acknowledged_through);
  }
  session->uploads.try_emplace(number, std::move(*upload));
  return {};
}

Result<std::shared_ptr<Upload>> SessionTable::take_upload(const HeldSession& held, std::uint64_t number,
                                                          const Client* client, const UploadedPart& part,
                                                          engine::TransactionColumns* transaction) {
  const std::shared_ptr<Session> session = find(held.id);
  if (session == nullptr) {
    return unknown_session();
  }
  std::shared_ptr<Upload> upload;
  {
    const std::scoped_lock lock(session->mutex);
    if (session->closed) {
      return unknown_session();
    }
    if (Status status = session->check(client, held.holder); !status.ok()) return status;
    if (number <= session->acknowledged_through) {
      return acknowledged_already(number, session->acknowledged_through);
    }
    if (const auto request = session->request(number);
        request != nullptr && request->uploaded.keys > 0 && request->uploaded.same_rights(part)) {
      return std::shared_ptr<Upload>();
    }
    const auto it = session->uploads.find(number);
    const std::uint64_t there = it == session->uploads.end() ? 0 : it->second->keys();
    if (there != part.keys) {
      return missing_upload(number, part.keys, there);
    }
    upload = session->uploads.extract(it).mapped();
  }
  if (upload->complete(part.keys, transaction)) {
    return upload;
  }
  const std::uint64_t there = upload->keys();  // a chunk came in between
  give_back(session.get(), held, number, std::move(upload));
  return missing_upload(number, part.keys, there);
}

void SessionTable::put_back(const HeldSession& held, std::uint64_t number, std::shared_ptr<Upload> upload,
                            engine::TransactionColumns* transaction) {
  upload->reclaim(transaction);
  const std::shared_ptr<Session> session = find(held.id);
  if (session == nullptr) {
    return;
  }
  give_back(session.get(), held, number, std::move(upload));
}

// Does nothing if the session has another upload or another holder by now, or if no request can need this one.
void SessionTable::give_back(Session* session, const HeldSession& of, std::uint64_t number,
                             std::shared_ptr<Upload> upload) {
  const TimeUs idle_from_us = upload->idle_from_us();
  if (keep(session, of, number, &upload).ok() && upload == nullptr) {
    look_at(session->id, idle_from_us);
  }
}

}  // namespace kilokv::server
