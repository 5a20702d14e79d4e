// Sessions. In a session, a request is applied once, however often it is sent.
//
// A request (session, number) is in one of these states:
//   absent     never seen, or acknowledged           begin() -> in flight (run everything)
//   in flight  its transactions are queued, executing or parked; sinks are attached
//                                                    begin() -> joins; last deliver() -> answered; abandon() -> resting
//   resting    some results stored, nothing runs (after a crash or abandon())
//                                                    begin() -> in flight (run the rest)
//   answered   all results stored                    begin() -> answers at once
// An acknowledgement makes the request absent for ever, and so does the end of the session. If it is then in flight, it
// still answers its sinks, and stores nothing.
//
// The room for a request's results is reserved from the start: begin() reserves the most that they may take. deliver()
// moves what they do take from reserved to stored. The end of the request gives back the rest. A resting request keeps
// its reserved room.
//
// A session also has uploads (core/sessions/upload.hpp), each under the number of the request that it is for. An upload
// ends when a request takes it, when its number is acknowledged, when the session ends, or when no chunk has come for
// too long. The last rule frees the memory of an upload that its client forgot while the session lives. Uploads are not
// durable.
//
// Everything stored here is already durable: deliver() is called after the sync, and the restore functions read from
// the log.
//
// What a session no longer needs can be large. A session that ends is taken out of the table at once, and its requests
// and uploads are freed a part at a time (free_ended). They count until then. What a request acknowledges is freed by
// its own thread, without a lock.
//
// A session has a holder: the client that opened it, or that attached to it last. attach() gives it another one, and
// from then on nobody else comes in. The check is made under the same lock as the admission. So whatever an earlier
// holder has sent was either admitted before, and list() shows it, or is never admitted.
//
// Thread safety: any thread, but deliver() and abandon() of one request never overlap. No lock is held while a sink is
// called. A sink gets stored results before live ones, and never two calls at once (attached_sinks.hpp). It may submit
// a request during a call. Order of locks: request, then session. A shard's lock is taken alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/environment.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/attached_sinks.hpp"
#include "server/core/sessions/session_info.hpp"
#include "server/core/sessions/session_list.hpp"
#include "server/core/sessions/session_owner.hpp"
#include "server/core/sessions/stored_results.hpp"
#include "server/core/sessions/upload.hpp"

namespace kilokv::server {

struct Rights;

struct DatabaseOptions;

// See DatabaseOptions for meanings and flags.
struct SessionLimits {
  std::uint64_t sessions_max = 0;
  DurationUs session_lease_us_min = 0;
  DurationUs session_lease_us_max = 0;
  std::uint32_t session_requests_max = 0;
  std::uint64_t session_bytes_max = 0;
  std::uint64_t session_bytes_total_max = 0;
  UploadLimits uploads = {};
};

SessionLimits session_limits(const DatabaseOptions& options);

// What a request says of its uploaded keys: their number, and the digest of the rest of its content.
struct UploadedPart {
  std::uint64_t keys = 0;
  Hash128 rest;
  // The rights of the user who sent it; empty: it needs none.
  std::weak_ptr<const Rights> rights = {};

  bool same_content(const UploadedPart& other) const { return keys == other.keys && rest == other.rest; }
  // Whether both have the same rights. If so, what the one has made sure of its uploaded keys holds for the other.
  bool same_rights(const UploadedPart& other) const { return rights.lock() == other.rights.lock(); }
};

// The part of a request that begin() needs.
struct RequestHeader {
  RequestIdentity identity;  // in a session
  std::uint32_t transactions = 0;
  std::shared_ptr<ResponseSink> sink;
  // The most that its results may take, counted as deliver() counts, and kSinksBytes.
  std::uint64_t stored_bytes_max = 0;
  UploadedPart uploaded = {};
  // The uploaded keys are gone, so it cannot run, and has no digest. It counts as the same request as one with the same
  // `uploaded`.
  bool upload_gone = false;
  std::shared_ptr<Client> client = nullptr;  // who sent it; null: nobody in particular
  // Whether the stored results of an earlier sending may be shown, and those that are still to come. It is asked before
  // the sink gets any of them. If not, the request is refused with this status. Empty: they may. It gets slices as
  // StoredSlice reads them. No lock is held meanwhile. If more results have come until then, it is asked again.
  std::function<Status(std::span<const StoredBytes> stored)> may_show = nullptr;
  bool read_only = false;  // the server runs nothing in sessions: only a whole stored result is shown
};

// The decision of begin().
struct SessionAdmission {
  enum class Kind : std::uint8_t {
    run,       // the caller runs all transactions, or `remaining`, and ends with deliver() or abandon()
    joined,    // it was already in flight: the sink is attached
    answered,  // the sink has had its last call
    refused,   // with `status`; the sink was not called
  };
  Kind kind = Kind::refused;
  Status status;
  bool all_remaining = false;            // run: every transaction runs
  std::vector<std::uint32_t> remaining;  // run, otherwise: only these indices run, increasing
  std::uint64_t reserved_bytes = 0;      // run: what its results may still take
};

class SessionTable {
 public:
  explicit SessionTable(const SessionLimits& limits);
  ~SessionTable();

  // Opens a session. `now_us` here and below is monotonic. Errors: INVALID_ARGUMENT: the lease is out of bounds;
  // RESOURCE_EXHAUSTED: too many sessions. Requires: `id` was never used.
  Status open(const SessionId& id, DurationUs lease_us, TimeUs now_us, const std::string& user = {});
  // The session counts for this client from now on, unless it has an owner or is closed. begin() gives the session of a
  // request to its client in the same way.
  void give_owner(const SessionId& id, SessionOwner owner);
  // After a restart, the sessions of a user have no owner. Those of this client's user count for it from now on. Cheap
  // after the first call for the user.
  void adopt(const std::shared_ptr<Client>& client);
  // All open sessions of a user. Takes time for each session of all users.
  std::vector<SessionId> of_user(std::string_view user) const;
  // The open sessions that hold the most bytes, at most `limit`, in no order. Takes time for each session. It locks one
  // session at a time.
  std::vector<SessionInfo> largest(std::size_t limit, TimeUs now_us) const;
  // FAILED_PRECONDITION: there is no such session. PERMISSION_DENIED: it belongs to another user.
  Status check_owner(const SessionId& id, const Client* client) const;
  // The same, and FAILED_PRECONDITION: another client has attached to it.
  Status check_holder(const HeldSession& session, const Client* client) const;
  // Closes a session, or renews its lease (touch). Errors: FAILED_PRECONDITION: unknown or expired, and for touch:
  // another client has attached.
  Status close(const SessionId& id);
  Status touch(const HeldSession& session, TimeUs now_us);

  // Gives the session a new holder. After the call, nothing of an earlier one is admitted. Returns the entry for the
  // log, which makes the holder durable. `attempt`: names the attach; if the newest holder has the same, it stays the
  // holder. 0: no name. Errors: those of check_owner. Requires: only one thread calls it, in the order of the log.
  Result<SessionEntry> attach(const SessionId& id, const std::shared_ptr<Client>& client, std::uint64_t attempt,
                              TimeUs now_us);
  // The entry of an attach is durable.
  void attached(const SessionId& id, std::uint64_t holder);
  // The requests that the session knows and that are not acknowledged, from this number on: at most
  // kListedRequestsMax. It fills in neither results nor counts, and no boundary. Errors: those of check_holder.
  Result<SessionList> list(const HeldSession& session, const Client* client, std::uint64_t from_number) const;
  // Adds the results of all batches up to `boundary`, and the counts that follow from them. Requires: list() has made
  // the list when that batch was the newest, `parked` is filled in, and the batch is answered. Leaves requests out that
  // have ended without a result. Ends the list when the results take about `bytes_max` in a message, but not before the
  // first result. Errors: FAILED_PRECONDITION: no such session.
  Status add_results(const SessionId& id, BatchNumber boundary, const SessionListPosition& from,
                     std::uint64_t bytes_max, SessionList* list) const;
  // Closes the sessions whose lease is over, and returns them. It may be up to a quarter second late, which makes
  // frequent calls cheap. A request in flight keeps its session alive. Also drops uploads to which no chunk came for
  // too long. Closes at most `most` sessions; if it closes so many, there may be more.
  std::vector<SessionId> expire(TimeUs now_us, std::size_t most = SIZE_MAX);
  // Frees some of what ended sessions hold: about `most` results. has_ended(): whether there is any.
  void free_ended(std::size_t most);
  bool has_ended() const { return ended_count_.load(std::memory_order_acquire) > 0; }
  bool contains(const SessionId& id) const;

  // Decides what happens to a request, and renews the lease. Errors (refused): FAILED_PRECONDITION: no such session, or
  // the number is 0 or acknowledged. INVALID_ARGUMENT: the number was used with other content, or its results alone may
  // take more than a session ever stores. RESOURCE_EXHAUSTED: too many requests or bytes in this session, or too many
  // bytes in all or of the owner, stored and reserved. Only a new request is refused for that, never a retry; its
  // acknowledgement still counts. RESOURCE_EXHAUSTED also if too many calls wait for the answer of this request; calls
  // whose client has gone do not count, unless a thread is just showing them results.
  SessionAdmission begin(const RequestHeader& header, TimeUs now_us);

  // Adds a chunk to the upload of its number, and renews the lease. Returns how many keys are there now. Errors: those
  // of begin() for the session and the number, and those of Upload::append.
  Result<std::uint64_t> upload(const ReadSetChunk& chunk, const engine::KeyHashSecret& secret, TimeUs now_us);
  // Removes the upload of a request with `keys` uploaded keys, and puts its guards before those of `transaction`. Null:
  // the upload is gone because the request has run or is running; begin() knows what it was sent with. If the rights of
  // the user have changed since then, the keys are needed once more, because nobody knows whether the user may still
  // read them. Errors: FAILED_PRECONDITION: no such session, an acknowledged number, or a different number of keys is
  // there.
  Result<std::shared_ptr<Upload>> take_upload(const HeldSession& session, std::uint64_t number, const Client* client,
                                              const UploadedPart& part, engine::TransactionColumns* transaction);
  // Undoes take_upload() for a request that was refused. `transaction` is empty after that.
  void put_back(const HeldSession& session, std::uint64_t number, std::shared_ptr<Upload> upload,
                engine::TransactionColumns* transaction);
  const UploadCounts& upload_counts() const { return upload_counts_; }

  // Some transactions of a request in flight have finished and are durable. `encoded` (encode_results of the same) is
  // stored. `live` goes to every attached sink. A retry that is just getting stored results gets `encoded` after them.
  void deliver(const SessionId& session, std::uint64_t number, const ResultSlice& live, std::string encoded);
  // A request in flight will not finish now. Every attached sink fails with `status`. Stored results stay.
  void abandon(const SessionId& session, std::uint64_t number, const Status& status);

  // Recovery calls these before anything else, from one thread; limits do not apply. An entry that is already there
  // changes nothing, so that the log can be replayed over a newer checkpoint. Errors: DATA_LOSS: results that cannot be
  // parsed.
  Status restore(const StoredSession& session, TimeUs now_us);
  // `frozen`: the entry is of an earlier incarnation. Its session answers what it stored, and takes no new number.
  Status restore(const SessionEntry& entry, TimeUs now_us, bool frozen = false);
  // RESOURCE_EXHAUSTED: what was restored takes more than sessions may have. `log_bytes`: of the log that was replayed.
  Status check_restored(std::uint64_t log_bytes) const;

  // Shows all sessions with their stored results, for a checkpoint. It shows at least everything that was delivered
  // before the call, and some of what is delivered during it. It copies one session at a time, and holds no lock while
  // it shows the copy. Ends with the first status that is not ok.
  Status walk(const std::function<Status(const StoredSession&)>& show) const;

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // The bytes of stored results of all sessions, and the bytes that results to come may take.
  std::uint64_t stored_bytes() const { return bytes_.stored.load(std::memory_order_relaxed); }
  std::uint64_t reserved_bytes() const { return bytes_.reserved.load(std::memory_order_relaxed); }

 private:
  struct ByteCounts {
    std::atomic<std::uint64_t> stored{0}, reserved{0};
  };
  struct RequestState;
  struct Session;
  struct Dropped;
  struct Ended {
    std::shared_ptr<Session> session;
    std::uint64_t through = 0;  // its requests up to this number are freed, or in flight
  };
  struct SessionIdHash {
    std::size_t operator()(const SessionId& id) const;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::atomic<TimeUs> next_expiry_us{kNever};  // before this time no lease ends and no upload is idle for too long
    std::unordered_map<SessionId, std::shared_ptr<Session>, SessionIdHash> sessions;
  };
  static constexpr std::size_t kShards = 64;

  Shard& shard_of(const SessionId& id) { return shards_[id.bytes[15] % kShards]; }
  const Shard& shard_of(const SessionId& id) const { return shards_[id.bytes[15] % kShards]; }
  std::shared_ptr<Session> find(const SessionId& id) const;
  void insert(const std::shared_ptr<Session>& session, TimeUs now_us);
  void insert_restored(const std::shared_ptr<Session>& session, TimeUs now_us);
  void erase(const SessionId& id);
  void expire_shard(Shard* shard, TimeUs now_us, std::size_t most, std::vector<SessionId>* expired);
  void ended(std::shared_ptr<Session> session);
  void look_at(const SessionId& id, TimeUs at_us);  // expire() checks the session at this time or earlier
  static Status keep(Session* session, const HeldSession& of, std::uint64_t number, std::shared_ptr<Upload>* upload);
  void give_back(Session* session, const HeldSession& of, std::uint64_t number, std::shared_ptr<Upload> upload);
  static Status enter(Session* session, const Client* client, const RequestIdentity& identity, TimeUs now_us,
                      Dropped* dropped);
  Status check_size(std::uint64_t stored_bytes_max) const;
  Status reserve_room(Session* session, std::uint64_t number, RequestState* request,
                      std::uint64_t stored_bytes_max) const;
  SessionAdmission admit_new(Session* session, const RequestHeader& header) const;
  std::optional<SessionAdmission> admit_known(Session* session, RequestState* request,
                                              const RequestHeader& header) const;
  std::optional<SessionAdmission> join(Session* session, RequestState* request, const RequestHeader& header,
                                       Replay* replay, AttachedSinks::Sinks* gone) const;
  static bool add_results_of(const RequestState& state, BatchNumber boundary, std::uint64_t shown,
                             std::uint64_t bytes_max, std::uint64_t* bytes, ListedRequest* listed);
  static Status show_pieces(const Session& session, const std::function<Status(const StoredSession&)>& show);
  static std::shared_ptr<RequestState> in_flight(const Session& session, std::uint64_t number);
  static void restore_holder(Session* session, const RequestIdentity& attached);
  static Status restore_results(Session* session, std::uint64_t number, const Hash128& digest,
                                std::uint32_t transactions, std::string_view bytes);

  const SessionLimits limits_;
  UploadCounts upload_counts_;  // of all sessions; outlives them
  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> count_{0};
  ByteCounts bytes_;  // of all sessions
  std::mutex restored_mutex_;
  std::unordered_map<std::string, std::vector<SessionId>> restored_;  // by user, until adopt() takes them
  std::mutex ended_mutex_;
  std::deque<Ended> ended_;
  std::atomic<std::size_t> ended_count_{0};
};

}  // namespace kilokv::server
