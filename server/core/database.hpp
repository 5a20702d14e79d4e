// The database. It connects admission, batcher, pipeline, sessions, parking, snapshots and checkpoints, and is all that
// the service sees of them. Everything from outside comes in through Environment, CommitLog and Engine.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/access/access.hpp"
#include "server/core/backup.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/database_events.hpp"
#include "server/core/database_status.hpp"
#include "server/core/environment.hpp"
#include "server/core/hot_keys.hpp"
#include "server/core/metrics.hpp"
#include "server/core/options.hpp"
#include "server/core/reads/scan.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/session_info.hpp"
#include "server/core/sessions/session_list.hpp"
#include "server/core/sessions/upload.hpp"
#include "server/core/slow_transaction.hpp"
#include "server/core/waiting/parked_transaction.hpp"

namespace kilokv::server {

// In all calls, `client` is who calls; null: nobody in particular, who has no share to keep to.
class Database {
 public:
  // Recovers from `log` and starts the pipeline. `create_engine` is called with the database's key secret. `on_fatal`
  // is called once, from any thread, if durability is lost or a batch was executed wrongly. The process must then end.
  // No request is answered after that call.
  static Result<std::unique_ptr<Database>> open(
      const DatabaseOptions& options, const Environment& environment, CommitLog* log,
      std::function<Result<std::unique_ptr<engine::Engine>>(const engine::KeyHashSecret&)> create_engine,
      std::function<void(const Status&)> on_fatal, DatabaseEvents events = {});
  virtual ~Database() = default;

  // The secret with which decoders hash keys into columns.
  virtual const engine::KeyHashSecret& key_secret() const = 0;
  virtual const DatabaseOptions& options() const = 0;

  // An empty Request, whose columns keep their capacity from earlier use.
  virtual std::unique_ptr<Request> acquire_request() = 0;

  // Adds a part to the read set of a request to come, unless the part is there already. Returns how many keys are there
  // now. Errors: those of submit for the session and the number, UNAVAILABLE, and those of Upload::append
  // (core/sessions/upload.hpp).
  virtual Result<std::uint64_t> upload(const ReadSetChunk& chunk) = 0;

  // Takes the request. Its sink gets exactly one end (core/request.hpp), possibly before this returns. Errors:
  // UNAVAILABLE (draining), RESOURCE_EXHAUSTED (queue, parked, session, disk; with a retry delay), FAILED_PRECONDITION
  // (unknown or expired session, number already acknowledged, uploaded keys that are not there), INVALID_ARGUMENT (same
  // number, other content). A refused request leaves its upload as it was.
  virtual SubmittedRequest submit(std::unique_ptr<Request> request) = 0;
  // The call of this request has ended without its answer. Transactions of the request that have not started do not
  // run, and those that it parked are cancelled. Does nothing for a request in a session, whose client may ask again.
  virtual void abandon(const SubmittedRequest& request) = 0;

  // Sessions. `done` is called when the change is durable. `login`: null: nobody has to log in. PERMISSION_DENIED: the
  // login does not count any more when the change is made. open_session, close_session, attach_session, scan,
  // list_parked and cancel run on the executor; they fail with RESOURCE_EXHAUSTED if too many calls are in progress.
  // What is refused before it ran has Status::not_run(). FAILED_PRECONDITION: the session is unknown or has expired, or
  // a later client has attached to it.
  virtual void open_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login, DurationUs lease_us,
                            std::function<void(Result<SessionId>, DurationUs lease_us)> done) = 0;
  virtual Status keep_alive(const std::shared_ptr<Client>& client, const HeldSession& session) = 0;
  // PERMISSION_DENIED: the session belongs to another user.
  virtual Status check_session(const std::shared_ptr<Client>& client, const HeldSession& session) const = 0;
  virtual void close_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login,
                             const HeldSession& session, std::function<void(Status)> done) = 0;
  // Makes the client the holder of a session, and then lists what the session knows of requests that nobody has
  // acknowledged; or only lists it for a holder (core/sessions/session_list.hpp). From the moment at which `begins` is
  // called, nothing of an earlier holder is admitted. `done` is called when the new holder is durable, and so are the
  // results that the list will have: add_results() must add them, before anything else looks at the requests. If
  // another client attaches meanwhile, `done` gets FAILED_PRECONDITION.
  virtual void attach_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login,
                              const AttachTarget& target, std::function<void(Result<SessionList>)> done,
                              AttachBegins begins = {}) = 0;
  // Adds the counts and the results to the list that attach_session() has made for the same target. This takes as long
  // as the results are many (SessionList::bytes), so it is not for the thread that calls `done`. The results show keys;
  // the caller checks who may read them. FAILED_PRECONDITION: the session has ended meanwhile.
  virtual Status add_results(const AttachTarget& target, SessionList* list) const = 0;

  // Users, roles and tokens. `edit` runs on the executor, with the newest table, and returns the change to make.
  // `begins` is called before the change goes into its batch. `done` is called when the change is durable. Nothing then
  // runs, or is parked, that the new table does not allow.
  // Errors: those of `edit` and of AccessTable::check; RESOURCE_EXHAUSTED: too many calls are in progress.
  // What decides is the newest table: access().latest(). What is shown is the table after the last answered batch.
  virtual const Access& access() const = 0;
  virtual Access::Table durable_access() = 0;
  // The time by which tokens expire: the system clock, or the last stamp if that is later.
  virtual TimeUs time_of_day() const = 0;
  virtual void change_access(std::shared_ptr<Client> client, AccessEdit edit,
                             std::function<void(Result<BatchNumber>)> done, AccessChangeBegins begins = {}) = 0;

  // Reads one page at a batch boundary. `done` is called when the boundary is durable. Errors: ABORTED: the boundary is
  // no longer kept (snapshot too old); RESOURCE_EXHAUSTED: too many scans at once.
  virtual void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) = 0;

  // Lists parked transactions with ids above `after_id`, in order of id: at most `limit`, and at most
  // --scan-bytes-max. Errors: those of scan.
  virtual void list_parked(std::shared_ptr<Client> client, std::uint64_t after_id, std::uint32_t limit,
                           std::function<void(Result<ParkedPage>)> done) = 0;
  // Cancels transactions that are parked or, if the target names their request, still queued. They are answered as
  // cancelled when the cancel is durable. `done` then gets their number.
  virtual void cancel(std::shared_ptr<Client> client, CancelTarget target,
                      std::function<void(Result<std::uint64_t>)> done) = 0;

  // A snapshot of everything that is durable now, for a backup. The caller destroys it before the log. UNAVAILABLE:
  // draining.
  virtual Result<std::unique_ptr<BackupSource>> open_backup() {
    return Status(StatusCode::unimplemented, "this database makes no backups");
  }

  // Watches. The position after the last batch that is durable and answered; runs `work` once, when this batch is so.
  virtual Position answered() const { return {}; }
  // The position after the last batch that is durable. It may not be answered yet, or only in part.
  virtual Position durable() const { return {}; }
  virtual void when_answered(BatchNumber /*batch*/, std::function<void()> /*work*/) {}
  // Reads the log up to answered(). The caller destroys it before the log. UNAVAILABLE: draining.
  virtual Result<std::unique_ptr<LogReader>> open_log_reader() {
    return Status(StatusCode::unimplemented, "this database cannot be watched");
  }
  // Of the state; a restore from a backup begins another one.
  virtual Incarnation incarnation() const { return {}; }

  virtual DatabaseStatus status() const = 0;
  // What the pipeline measures. It lives as long as the database.
  virtual const CoreMetrics& metrics() const = 0;
  // The most used keys of the last seconds, at most `limit`. Keys are data: the caller checks who may see them.
  virtual HotKeys hot_keys(KeyUse use, std::size_t limit) const = 0;
  // The open sessions that hold the most bytes, at most `limit`, in no order. Takes about as long as 100 bytes of a
  // message for each open session.
  virtual std::vector<SessionInfo> list_sessions(std::size_t limit) const = 0;

  // Goes the way of a request, without a transaction: `done` is called when the executor has taken the probe, and
  // everything that was executed before it is durable and answered. Never called if a stage hangs. Nothing refuses it.
  virtual void probe(std::function<void()> done) = 0;

  // Transactions that took longer than --slow-transaction, the latest first. Not each of them is kept
  // (core/pipeline/slow_log.hpp). They have the keys of guards, which are for those alone who may read them.
  virtual std::vector<SlowTransaction> slow_transactions() const = 0;

  // Refuses new work from now on, finishes what is queued, and fails what is parked with UNAVAILABLE. Then it calls
  // `answered`, writes a checkpoint, and calls `done`. A process that ends before `done` only makes the next start
  // slower. Requires: called once.
  virtual void drain(std::function<void()> answered, std::function<void()> done) = 0;
};

}  // namespace kilokv::server
