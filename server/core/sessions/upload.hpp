// A read set that is being uploaded: keys and versions that a client sends in chunks before the commit that they guard,
// under the commit's request number.
//
// It is kept as columns without a transaction: one FAIL guard `version ==` for each key, in order. Keys are hashed as
// they come. complete() puts these guards before the guards of the commit's transaction, which is then like any other.
// reclaim() undoes that for a commit that is refused for now.
//
// The session drops an upload if no chunk came for longer than upload_idle_us_max, because clients may go away or
// forget it.
//
// States; they change under the mutex:
//   growing    append() adds                  -> completed (complete)
//   completed  append() is refused            -> growing (reclaim)
// Invariant: until the upload is destroyed, both UploadCounts and the owner's account count what it holds, or held
// until it was completed.
//
// Thread safety: any thread.
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
#include "server/core/sessions/session_owner.hpp"

namespace kilokv::server {

// See DatabaseOptions for meanings and settings.
struct UploadLimits {
  std::uint64_t read_set_keys_max = 0;
  std::uint64_t uploads_bytes_max = 0;
  std::uint64_t session_uploads_bytes_max = 0;
  std::uint64_t queue_bytes_max = 0;  // a larger read set could be uploaded, but never committed
  DurationUs upload_idle_us_max = 0;
};

// Counts for one session, or for all. Uploads that are being committed count until they are admitted.
struct UploadCounts {
  // `unit`: of the limit, with whose bytes they are. `setting`: the flag that sets it.
  UploadCounts(std::uint64_t bytes_max, const char* unit, const char* setting)
      : bytes(bytes_max, {ErrorReason::uploads_full, "keys", unit, setting, kRetryAfterUs}) {}

  std::atomic<std::uint64_t> uploads{0};
  SharedLimit bytes;

 private:
  static constexpr std::int64_t kRetryAfterUs = 100'000;  // about the time that a large commit takes
};

// A part of a read set. Requires: at least one key, as many versions as keys, and each within its limits.
struct ReadSetChunk {
  RequestIdentity identity;  // the commit's, in a session; its digest is not known yet
  std::uint64_t offset = 0;  // how many keys come before these
  std::vector<std::string_view> keys;
  std::span<const Version> versions;
  std::shared_ptr<Client> client = {};  // who sent it; null: nobody in particular
};

// FAILED_PRECONDITION: the request needs `needed` keys, and `there` are there.
Status missing_upload(std::uint64_t number, std::uint64_t needed, std::uint64_t there);

class Upload {
 public:
  Upload(const UploadLimits& limits, UploadCounts* of_all, std::shared_ptr<UploadCounts> of_session, SessionOwner owner,
         TimeUs now_us);
  Upload(const Upload&) = delete;
  ~Upload();

  // Adds the keys that are not there yet, and returns how many are there now. Errors, with nothing added:
  // FAILED_PRECONDITION: keys before these are missing, or the upload is completed. INVALID_ARGUMENT: keys that are
  // already there have other content, or the read set becomes larger than can be committed. RESOURCE_EXHAUSTED: too
  // many bytes in this session or in all, or the owner of the session has its share (clients/shared_limit.hpp).
  Result<std::uint64_t> append(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret);

  // touch(): a chunk came. idle_from_us(): the time from which the upload counts as idle for too long. Both monotonic.
  void touch(TimeUs now_us);
  TimeUs idle_from_us() const;

  // How many keys are there. For a completed upload: how many were there.
  std::uint64_t keys() const { return keys_.load(std::memory_order_acquire); }

  // Puts the guards before those of `transaction`, which holds one transaction. False, and nothing changed, if there
  // are not exactly `keys` keys, or if the upload is completed.
  bool complete(std::uint64_t keys, engine::TransactionColumns* transaction);
  // Takes the guards back from the transaction that complete() made. `transaction` is empty after that.
  void reclaim(engine::TransactionColumns* transaction);

 private:
  bool holds(const ReadSetChunk& chunk, std::uint64_t count) const;
  Status charge(const ReadSetChunk& chunk, std::uint64_t skipped);
  void add(const ReadSetChunk& chunk, std::uint64_t skipped, const engine::KeyHashSecret& secret);

  const UploadLimits& limits_;
  UploadCounts* const of_all_;
  const std::shared_ptr<UploadCounts> of_session_;
  const SessionOwner owner_;
  std::atomic<std::uint64_t> keys_{0};
  std::atomic<TimeUs> touched_us_;
  std::mutex mutex_;
  bool completed_ = false;
  engine::TransactionColumns columns_;
  std::uint64_t bytes_ = 0;  // counted
};

}  // namespace kilokv::server
