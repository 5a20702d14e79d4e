// The database: admission, batcher, pipeline, sessions, parking, snapshots, checkpoints, wired. The one face that the
// service sees. Everything outside comes in through Environment, CommitLog and Engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/environment.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/upload.hpp"

namespace kilokv::server {

// Every knob of core, in one place; validate() checks them all. Names are those of the flags, `-` for `_`.
struct DatabaseOptions {
  // Batcher
  std::uint32_t batch_max_transactions = 8192;
  std::uint64_t batch_max_bytes = std::uint64_t{256} << 20;  // of its log record at most; one transaction may be more
  std::uint64_t batch_max_reads = 262144;                    // likewise (core/pipeline/transaction_cost.hpp)
  DurationUs batch_max_delay_us = 1000;   // only while an earlier batch is in flight: an idle server does not wait
  std::uint32_t batch_in_flight_max = 4;  // executed, not yet durable
  // Admission
  std::uint64_t queue_transactions_max = 262144;
  std::uint64_t queue_bytes_max = std::uint64_t{256} << 20;
  // Parking
  std::uint64_t parked_max = 1000000;
  std::uint64_t parked_bytes_max = std::uint64_t{1} << 30;
  DurationUs wait_timeout_us_max = DurationUs{24} * 3600 * 1000000;
  // Sessions
  std::uint64_t sessions_max = 100000;
  DurationUs session_lease_us_min = 1000000;
  DurationUs session_lease_us_default = 60000000;
  DurationUs session_lease_us_max = DurationUs{24} * 3600 * 1000000;
  std::uint32_t session_requests_max = 4096;                       // kept and in flight, of one session
  std::uint64_t session_bytes_max = std::uint64_t{64} << 20;       // results of one session, stored or still to come
  std::uint64_t session_bytes_total_max = std::uint64_t{1} << 30;  // of all
  std::uint64_t result_bytes_max = 65536;                          // stored result of one transaction
  // Uploaded read sets
  std::uint64_t read_set_keys_max = 1000000;                           // of one
  std::uint64_t uploads_bytes_max = std::uint64_t{256} << 20;          // of all, in memory, until they are admitted
  std::uint64_t session_uploads_bytes_max = std::uint64_t{128} << 20;  // of one session
  DurationUs upload_idle_us_max = 60000000;                            // since its last chunk; then it is dropped
  std::uint32_t guards_max = 1024;  // of --guards-max; a transaction with more has a batch of its own
  // Snapshots
  std::uint64_t snapshot_bytes_max = std::uint64_t{256} << 20;
  DurationUs snapshot_age_us_max = 60000000;
  std::uint32_t scan_pairs_max = 10000;
  std::uint64_t scan_bytes_max = std::uint64_t{4} << 20;
  std::uint32_t scans_in_flight_max = 256;  // each holds a page
  // Sessions opened and closed, cancels, lists of what is parked.
  std::uint32_t commands_in_flight_max = 4096;
  // Checkpoints
  std::uint64_t checkpoint_log_bytes = std::uint64_t{256} << 20;
  DurationUs checkpoint_interval_us = 60000000;
  DurationUs tombstone_retention_us = DurationUs{3600} * 1000000;
  // Share of the batches that the referee replays, and what one may name to be replayed
  // (core/pipeline/shadow_check.hpp).
  double shadow_rate = 0;
  std::uint64_t shadow_records_max = 100000;
  std::uint64_t shadow_bytes_max = std::uint64_t{64} << 20;

  Status validate() const;
};

struct ScanRequest {
  std::string from, to;                  // [from, to); `to` empty: no upper bound
  std::uint32_t limit = 0;               // pairs; 0: the page limit
  std::optional<BatchNumber> boundary;   // none: the newest; else the boundary of an earlier page
  bool keep_boundary = false;            // the caller wants more pages at this boundary
  std::uint64_t reader = 0;              // as the first page named it, while the boundary is kept
  std::uint64_t bytes_max = UINT64_MAX;  // of the page as a message, if that is less than the page limit
};

struct ScanPage {
  BatchNumber boundary = 0;
  Version boundary_version = 0;  // highest version that the page can show: for `range unchanged since`
  TimeUs batch_time_us = 0;
  struct Pair {
    std::string key;
    ValueType type;
    std::int64_t integer;
    std::string bytes;
    Version version;
  };
  std::vector<Pair> pairs;
  bool more = false;      // the range goes on beyond the page; the page may be empty all the same
  std::string next_from;  // where the next page starts, if more
  // Not 0: the boundary is kept for whoever knows this name, until a page that is the last, or not to be kept.
  std::uint64_t reader = 0;
};

struct ParkedTransaction {
  std::uint64_t id = 0;  // for cancel; unique in this run of the server
  std::optional<SessionId> session;
  std::uint64_t request = 0;
  std::uint32_t index = 0;
  std::uint32_t guard = 0;  // the deciding guard
  std::string guard_key;
  BatchNumber admitted_batch = 0;
  TimeUs deadline_us = 0;  // against batch stamps
};

struct DatabaseStatus {
  enum class State : std::uint8_t { recovering, ready, draining, stopped };
  State state = State::recovering;
  BatchNumber executed_batch = 0, durable_batch = 0, checkpoint_batch = 0;
  Version next_version = 1;
  Hash128 state_hash;  // after durable_batch
  std::uint64_t batches = 0, transactions = 0, committed = 0, guard_failed = 0, wait_expired = 0, overflow = 0,
                type_mismatch = 0, refused = 0;  // since the start
  // Of `batches`: by the strategy on the CPU, or on the device; and how many of them the referee replayed, or had to
  // leave out.
  std::uint64_t batches_serial = 0, batches_parallel = 0, batches_on_device = 0, shadow_batches = 0, shadow_skipped = 0;
  std::uint64_t queued_transactions = 0, queued_bytes = 0;
  std::uint64_t parked = 0, parked_bytes = 0;
  std::uint64_t sessions = 0;
  std::uint64_t uploads = 0, uploads_bytes = 0;  // read sets that are not committed yet
  engine::EngineDevice device{{}, {}, {}};       // where batches run now; no name while that is not known
  engine::EngineStats engine;
  LogUsage log;
  double recovery_seconds = 0;
};

// What whoever runs the database is told, beside its end. Each may be empty; called by the executor, so none may block
// for long.
struct DatabaseEvents {
  // Once: the device that batches ran on is given up; `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Before on_fatal: the batch that was not executed as the referee does it (core/pipeline/batch_text.hpp).
  std::function<void(const std::string& batch)> shadow_mismatch;
};

class Database {
 public:
  // Recovers from `log` and starts the pipeline. `create_engine` is called with the database's key secret.
  // `on_fatal` is called once, from any thread, when durability is lost, or a batch was executed wrongly: the process
  // must end; nothing is answered after.
  static Result<std::unique_ptr<Database>> open(
      const DatabaseOptions& options, const Environment& environment, CommitLog* log,
      std::function<Result<std::unique_ptr<engine::Engine>>(const engine::KeyHashSecret&)> create_engine,
      std::function<void(const Status&)> on_fatal, DatabaseEvents events = {});
  virtual ~Database() = default;

  // Secret for decoding keys into columns.
  virtual const engine::KeyHashSecret& key_secret() const = 0;
  virtual const DatabaseOptions& options() const = 0;

  // An empty Request whose columns keep their capacity from earlier use. Any thread.
  virtual std::unique_ptr<Request> acquire_request() = 0;

  // Adds a part to the read set of a request to come, or has it already, and returns how many keys are there now. Any
  // thread. Errors: those of submit for the session and the number, UNAVAILABLE, and those of Upload::append
  // (core/sessions/upload.hpp).
  virtual Result<std::uint64_t> upload(const ReadSetChunk& chunk) = 0;

  // Takes the request; its sink hears exactly one end (core/request.hpp), possibly before this returns. Any thread.
  // Fails with: UNAVAILABLE (draining), RESOURCE_EXHAUSTED (queue, parked, session, disk; with a retry delay),
  // FAILED_PRECONDITION (unknown or expired session, number already acknowledged, uploaded keys that are not there),
  // INVALID_ARGUMENT (same number, other content). A request that is refused leaves its upload as it was.
  virtual void submit(std::unique_ptr<Request> request) = 0;

  // The rest goes to the executor. Fails with RESOURCE_EXHAUSTED where too many calls are on their way.
  // Sessions. `done` is called when the change is durable.
  virtual void open_session(DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs lease_us)> done) = 0;
  virtual Status keep_alive(const SessionId& session) = 0;
  virtual void close_session(const SessionId& session, std::function<void(Status)> done) = 0;

  // One page at a batch boundary; `done` is called when the boundary is durable.
  // Fails with ABORTED: the boundary is no longer kept (snapshot too old); RESOURCE_EXHAUSTED: too many at once.
  virtual void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) = 0;

  // Parked transactions, in order of id, after `after_id`, at most `limit`.
  virtual void list_parked(std::uint64_t after_id, std::uint32_t limit,
                           std::function<void(Result<std::vector<ParkedTransaction>>)> done) = 0;
  // Cancels parked or still queued transactions: of a request (all, or one index), or one parked id. They are answered
  // as cancelled when that is durable; `done` gets how many.
  struct CancelTarget {
    std::optional<SessionId> session;
    std::uint64_t request = 0;
    std::optional<std::uint32_t> index;
    std::uint64_t parked_id = 0;  // instead of the above
  };
  virtual void cancel(CancelTarget target, std::function<void(Result<std::uint64_t>)> done) = 0;

  virtual DatabaseStatus status() const = 0;

  // Refuses new work from now on, finishes what is queued, fails what is parked with UNAVAILABLE, and calls `answered`;
  // then writes a checkpoint, and calls `done`. To end before that costs the next start some time, and nothing else.
  // Once.
  virtual void drain(std::function<void()> answered, std::function<void()> done) = 0;
};

}  // namespace kilokv::server
