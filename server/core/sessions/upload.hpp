// A read set on its way: keys and versions that a client uploads in chunks before the commit that they guard, under the
// commit's request number.
//
// It is kept as columns without a transaction: for each key, in order, a FAIL guard `version ==`; keys are hashed as
// they come. complete() puts them before the guards of the commit's transaction, which then is one like any other;
// reclaim() undoes that, for a commit that is refused for now.
//
// One to which no chunk came for longer than upload_idle_us_max is for its session to drop: clients go away, and
// forget.
//
// States; moves under the mutex:
//   growing    append() adds                  -> completed (complete)
//   completed  append() is refused            -> growing (reclaim)
// Invariant: what it holds, or held until it was completed, is counted in both UploadCounts until it is destroyed.
//
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/environment.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// See DatabaseOptions for meanings and settings.
struct UploadLimits {
  std::uint64_t read_set_keys_max = 0;
  std::uint64_t uploads_bytes_max = 0;
  std::uint64_t session_uploads_bytes_max = 0;
  std::uint64_t queue_bytes_max = 0;  // what is larger could be uploaded, but never be committed
  DurationUs upload_idle_us_max = 0;
};

// Of one session, or of all. Those that are being committed count until they are admitted.
struct UploadCounts {
  std::atomic<std::uint64_t> uploads{0}, bytes{0};
};

// A part of a read set. Requires: at least one key, as many versions, each within its limits.
struct ReadSetChunk {
  RequestIdentity identity;  // the commit's, in a session; its digest is not known yet
  std::uint64_t offset = 0;  // keys before these
  std::vector<std::string_view> keys;
  std::span<const Version> versions;
};

// FAILED_PRECONDITION: so many keys are there and not those that the request needs.
Status missing_upload(std::uint64_t number, std::uint64_t needed, std::uint64_t there);

class Upload {
 public:
  Upload(const UploadLimits& limits, UploadCounts* of_all, std::shared_ptr<UploadCounts> of_session, TimeUs now_us);
  Upload(const Upload&) = delete;
  ~Upload();

  // Adds what is not there yet and returns how many keys there are now. Errors, with nothing added:
  // FAILED_PRECONDITION: keys before these are missing, or it is completed; INVALID_ARGUMENT: what is there has other
  // content, or the read set becomes larger than can be committed; RESOURCE_EXHAUSTED: too many bytes in this session
  // or in all.
  Result<std::uint64_t> append(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret);

  // A chunk came; from when on none has come for too long.
  void touch(TimeUs now_us);
  TimeUs idle_from_us() const;

  // How many keys are there. Of one that is completed: how many were.
  std::uint64_t keys() const { return keys_.load(std::memory_order_acquire); }

  // Puts the guards before those of `transaction`, which holds one. False, and nothing changed, where there are not
  // `keys` of them, or it is completed.
  bool complete(std::uint64_t keys, engine::TransactionColumns* transaction);
  // Takes them back out of what complete() made of the transaction; what is left is empty.
  void reclaim(engine::TransactionColumns* transaction);

 private:
  bool holds(const ReadSetChunk& chunk, std::uint64_t count) const;
  Status charge(const ReadSetChunk& chunk, std::uint64_t skipped);
  void add(const ReadSetChunk& chunk, std::uint64_t skipped, const engine::KeyHashSecret& secret);

  const UploadLimits& limits_;
  UploadCounts* const of_all_;
  const std::shared_ptr<UploadCounts> of_session_;
  std::atomic<std::uint64_t> keys_{0};
  std::atomic<TimeUs> touched_us_;
  std::mutex mutex_;
  bool completed_ = false;
  engine::TransactionColumns columns_;
  std::uint64_t bytes_ = 0;  // counted
};

}  // namespace kilokv::server
