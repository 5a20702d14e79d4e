// What every stage of the core sees. Owned by Database; outlives the stages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "engine/engine.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/database.hpp"
#include "server/core/environment.hpp"
#include "server/core/pipeline/admission_queue.hpp"
#include "server/core/pipeline/pipeline.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

// Work that waits for a batch to be durable and answered. Any thread.
class BoundaryWaiters {
 public:
  void add(BatchNumber boundary, std::function<void()> work) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(boundary, std::move(work));
  }
  // Takes out what waits for a batch up to `boundary` and runs it, in order of the boundaries.
  void run_through(BatchNumber boundary) {
    std::multimap<BatchNumber, std::function<void()>> ready;
    {
      const std::scoped_lock lock(mutex_);
      while (!waiting_.empty() && waiting_.begin()->first <= boundary) {
        ready.insert(waiting_.extract(waiting_.begin()));
      }
    }
    for (auto& [batch, work] : ready) work();
  }

 private:
  std::mutex mutex_;
  std::multimap<BatchNumber, std::function<void()>> waiting_;
};

inline Status draining() {
  return Status(StatusCode::unavailable, "the server is shutting down; in a session, send the request again");
}

SessionLimits session_limits(const DatabaseOptions& options);

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
  std::atomic<std::uint64_t> parked{0}, parked_bytes{0};
  std::atomic<bool> stopped{false};  // after a fatal error nothing is answered any more
  std::function<void(const Status&)> on_fatal;
  DatabaseEvents events;
  Counters counters;

  // Set once, before the first step.
  Worker* executor_worker = nullptr;
  Worker* log_worker = nullptr;
  Worker* answer_worker = nullptr;
  Worker* checkpoint_worker = nullptr;

  // Called by whichever stage finds that durability is lost, or a batch wrong. It has effect once.
  void fail(const Status& status) {
    if (!stopped.exchange(true)) on_fatal(status);
  }
};

}  // namespace kilokv::server
