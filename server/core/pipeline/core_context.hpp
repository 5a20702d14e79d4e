// Everything that the stages of the pipeline share: the queues between them, the positions that they have reached, and
// the services that they use.
//
//   submit (any thread) -> Admission -> AdmissionQueue -> ExecuteStage -> LogStage -> AnswerStage; also Checkpointer
//
// Ownership: Database owns it; it outlives the stages.
//
// Thread safety: as each member's comment or class says.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/engine.hpp"
#include "server/core/access/access.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/database_events.hpp"
#include "server/core/environment.hpp"
#include "server/core/memory/data_budget.hpp"
#include "server/core/metrics.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admission_queue.hpp"
#include "server/core/pipeline/batch.hpp"
#include "server/core/pipeline/boundary_waiters.hpp"
#include "server/core/pipeline/counters.hpp"
#include "server/core/pipeline/hot_key_watch.hpp"
#include "server/core/pipeline/pool.hpp"
#include "server/core/pipeline/slow_log.hpp"
#include "server/core/pipeline/stage_queue.hpp"
#include "server/core/pipeline/sync_watch.hpp"
#include "server/core/position.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

struct CoreContext {
  CoreContext(const DatabaseOptions& options_in, const Environment& environment_in, CommitLog* log_in)
      : options(options_in),
        environment(environment_in),
        log(log_in),
        data(options.memory_limit, options.data_bytes_max),
        queue(options, log_in, &data),
        sessions(session_limits(options_in)) {}

  const DatabaseOptions options;
  const Environment environment;
  CommitLog* const log;
  std::unique_ptr<engine::Engine> engine;  // only the executor uses it, except bytes_of
  engine::KeyHashSecret secret;            // of the database's keys
  Incarnation incarnation;                 // set by recovery

  const std::shared_ptr<Client> no_client = std::make_shared<Client>("");  // for requests that no client has sent
  DataBudget data;  // the executor tells it what the engine holds
  AdmissionQueue queue;
  SessionTable sessions;
  Access access;  // the executor changes it
  Pool<Request> requests{256, options.pools_bytes_max / 5};
  Pool<Batch> batches{16, options.pools_bytes_max / 5 * 4};
  StageQueue<std::unique_ptr<Batch>> to_log;     // executed
  StageQueue<std::unique_ptr<Batch>> to_answer;  // durable
  BoundaryWaiters at_boundary;                   // the answer worker runs it

  SharedPosition executed;                           // the executor sets it
  SharedPosition durable;                            // the log worker sets it
  SharedPosition answered;                           // the answer worker sets it
  std::atomic<std::uint32_t> in_flight{0};           // batches executed, not yet durable
  std::atomic<std::uint32_t> expiries_in_flight{0};  // of them: those that delete expired keys
  // The batches that are executed and not yet answered, in kWholeBatch-ths: of the reads of a whole batch, or of its
  // memory (whole_batch_bytes), whichever is more of each batch.
  std::atomic<std::uint64_t> unanswered_parts{0};
  // Batches that are executed and not yet answered, those that delete expired keys apart. Beyond kAnsweredLater, they
  // count as in flight: so nobody waits for the answers of many batches, where answers take longer than batches.
  std::atomic<std::uint32_t> unanswered_batches{0}, unanswered_expiries{0};
  std::atomic<std::uint32_t>* unanswered(bool expired) { return expired ? &unanswered_expiries : &unanswered_batches; }
  static constexpr std::uint32_t kAnsweredLater = 1;
  std::atomic<std::uint64_t> batch_bytes{0};       // memory of the batches that are executed and not yet answered
  std::atomic<DurationUs> stamp_minus_boot_us{0};  // of the last stamp, when it was made
  std::atomic<bool> draining{false};               // once set, no new work is taken
  std::atomic<bool> stopped{false};                // set by a fatal error: nothing more is answered
  std::function<void(const Status&)> on_fatal;
  DatabaseEvents events;
  Counters counters;
  CoreMetrics metrics;
  HotKeyWatch hot_keys;
  SlowLog slow{options};
  SyncWatch syncs{options, &events};

  // Set once, before the first step.
  Worker* executor_worker = nullptr;
  Worker* log_worker = nullptr;
  Worker* answer_worker = nullptr;
  Worker* checkpoint_worker = nullptr;

  // Runs `work` in the answer worker when the batch is durable and answered. What `work` shows to a client is then
  // durable.
  void when_answered(BatchNumber boundary, std::function<void()> work) {
    at_boundary.add(boundary, std::move(work));
    answer_worker->notify();
  }

  // The time by which tokens expire. A clock that went back makes none of them valid again that a batch has seen
  // expire. A clock that jumped ahead by more than --clock-jump-max counts no more here than for stamps.
  TimeUs time_of_day() const {
    const TimeUs wall = std::max(environment.clock->wall_us(), executed.get().time_us);
    const TimeUs expected = environment.clock->boot_us() + stamp_minus_boot_us.load(std::memory_order_relaxed);
    return wall - expected > options.clock_jump_us_max ? expected : wall;
  }
  // A batch has this stamp now, or the server starts at this time.
  void note_stamp(TimeUs stamp_us) {
    stamp_minus_boot_us.store(stamp_us - environment.clock->boot_us(), std::memory_order_relaxed);
  }

  // Whether someone wants to know of each request. Then its report.
  bool tells_requests() const { return events.tells_requests && events.tells_requests(); }
  static RequestReport report_of(const AdmittedRequest& request, DurationUs took_us) {
    return {request.client->name, request.identity.session, request.identity.number, request.to_run, took_us,
            request.trace};
  }

  // Called by the stage that finds that durability is lost or a batch is wrong. Only the first call has an effect.
  void fail(const Status& status) {
    if (stopped.exchange(true)) return;
    metrics.has_failed.store(true);
    on_fatal(status);
  }
};

}  // namespace kilokv::server
