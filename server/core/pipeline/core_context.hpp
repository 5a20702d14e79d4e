// What the stages of the pipeline share: the queues between them, the positions that they have reached, and what each
// of them may use.
//
//   submit (any thread) -> Admission -> AdmissionQueue -> ExecuteStage -> LogStage -> AnswerStage, Checkpointer beside.
//
// Owned by Database; outlives the stages.
// Thread safety: each member says, or its class does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/database_events.hpp"
#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admission_queue.hpp"
#include "server/core/pipeline/batch.hpp"
#include "server/core/pipeline/boundary_waiters.hpp"
#include "server/core/pipeline/counters.hpp"
#include "server/core/pipeline/pool.hpp"
#include "server/core/pipeline/stage_queue.hpp"
#include "server/core/position.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

struct CoreContext {
  CoreContext(const DatabaseOptions& options_in, const Environment& environment_in, CommitLog* log_in)
      : options(options_in),
        environment(environment_in),
        log(log_in),
        queue(options, log_in),
        sessions(session_limits(options_in)) {}

  const DatabaseOptions options;
  const Environment environment;
  CommitLog* const log;
  std::unique_ptr<engine::Engine> engine;  // the executor's, but for bytes_of
  engine::KeyHashSecret secret;            // of the database's keys

  AdmissionQueue queue;
  SessionTable sessions;
  Pool<Request> requests{256, std::uint64_t{64} << 20};
  Pool<Batch> batches{16, std::uint64_t{256} << 20};
  StageQueue<std::unique_ptr<Batch>> to_log;     // executed
  StageQueue<std::unique_ptr<Batch>> to_answer;  // durable
  BoundaryWaiters at_boundary;                   // run by the answer worker

  SharedPosition executed;                  // moved by the executor
  SharedPosition durable;                   // moved by the log worker
  SharedPosition answered;                  // moved by the answer worker
  std::atomic<std::uint32_t> in_flight{0};  // batches executed, not yet durable
  std::atomic<bool> draining{false};        // from then on no new work is taken
  std::atomic<bool> stopped{false};         // after a fatal error nothing is answered any more
  std::function<void(const Status&)> on_fatal;
  DatabaseEvents events;
  Counters counters;

  // Set once, before the first step.
  Worker* executor_worker = nullptr;
  Worker* log_worker = nullptr;
  Worker* answer_worker = nullptr;
  Worker* checkpoint_worker = nullptr;

  // Runs `work` in the answer worker when the batch is durable and answered: what it shows or says is then known to
  // last.
  void when_answered(BatchNumber boundary, std::function<void()> work) {
    at_boundary.add(boundary, std::move(work));
    answer_worker->notify();
  }

  // Called by whichever stage finds that durability is lost, or a batch wrong. It has effect once.
  void fail(const Status& status) {
    if (!stopped.exchange(true)) on_fatal(status);
  }
};

}  // namespace kilokv::server
