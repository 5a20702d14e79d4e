// Uploads of sessions: found, taken by the requests that they are for, given back.
#include <utility>

#include "server/core/session_state.hpp"
#include "server/core/session_table.hpp"

namespace kilokv::server {

// A first chunk is added before its upload is seen: one that is refused leaves nothing behind.
Result<std::uint64_t> SessionTable::upload(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret,
                                           TimeUs now_us) {
  const std::shared_ptr<Session> session = find(chunk.session);
  if (session == nullptr) {
    return unknown_session();
  }
  for (;;) {
    std::shared_ptr<Upload> upload;
    {
      const std::scoped_lock lock(session->mutex);
      if (Status status = enter(session.get(), chunk.number, chunk.acknowledged_through, now_us); !status.ok()) {
        return status;
      }
      if (const auto it = session->uploads.find(chunk.number); it != session->uploads.end()) {
        upload = it->second;
      }
    }
    if (upload != nullptr) {
      return upload->append(chunk, secret);
    }
    upload = std::make_shared<Upload>(limits_.uploads, &upload_counts_, session->upload_counts);
    Result<std::uint64_t> keys = upload->append(chunk, secret);
    if (!keys.ok()) {
      return keys;
    }
    const std::scoped_lock lock(session->mutex);
    if (session->closed) {
      return unknown_session();
    }
    if (chunk.number <= session->acknowledged_through) {
      return acknowledged_already(chunk.number, session->acknowledged_through);
    }
    if (session->uploads.try_emplace(chunk.number, std::move(upload)).second) {
      return keys;
    }
  }
}

Result<std::shared_ptr<Upload>> SessionTable::take_upload(const SessionId& id, std::uint64_t number,
                                                          const UploadedPart& part,
                                                          engine::TransactionColumns* transaction) {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) {
    return unknown_session();
  }
  std::shared_ptr<Upload> upload;
  {
    const std::scoped_lock lock(session->mutex);
    if (session->closed) {
      return unknown_session();
    }
    if (number <= session->acknowledged_through) {
      return acknowledged_already(number, session->acknowledged_through);
    }
    if (const auto request = session->request(number); request != nullptr && request->uploaded.keys > 0) {
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
  const std::scoped_lock lock(session->mutex);  // a chunk came in between
  if (!session->closed && number > session->acknowledged_through) {
    session->uploads.try_emplace(number, upload);
  }
  return missing_upload(number, part.keys, upload->keys());
}

void SessionTable::put_back(const SessionId& id, std::uint64_t number, std::shared_ptr<Upload> upload,
                            engine::TransactionColumns* transaction) {
  upload->reclaim(transaction);
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) {
    return;
  }
  const std::scoped_lock lock(session->mutex);
  if (!session->closed && number > session->acknowledged_through) {
    session->uploads.try_emplace(number, std::move(upload));
  }
}

}  // namespace kilokv::server
