// First stage, and the owner of the engine: runs the batches that the batcher forms, and commands between them. All
// that needs the table (scan pages, checkpoint slices) runs here as a command.
//
// A batch is run, then completed: its outcomes are counted, what it postponed is parked, and only then its writes are
// announced to those that wait. What it overwrote is kept for the scans, its position becomes the executed one, and it
// goes to the log. A batch that the engine refuses, because the table is full, is run again in parts (RefusedBatch).
//
// Invariants:
// - Table, parking lot, kept snapshots and CoreContext::executed stand at the same batch whenever a command runs.
// - A batch that is wrong (shadow check) ends the server before anything of it is logged or answered.
// - Requests that end without results hear so in the answer worker, after all that was executed or cancelled before.
//
// Thread safety: step() by its worker alone; post() from any thread; drain() from commands only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/refused_batch.hpp"
#include "server/core/pipeline/shadow_check.hpp"
#include "server/core/reads/reader.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {

class ExecuteStage {
 public:
  // All outlive the stage.
  ExecuteStage(CoreContext* core, Batcher* batcher, Waiting* waiting, Reader* reader);
  TimeUs step();

  // Runs `command` on the executor's thread between two batches.
  void post(std::function<void()> command);
  // From now on batches form at once. `done` is called (by the answer worker) when all is answered, and what was parked
  // has been failed with UNAVAILABLE.
  void drain(std::function<void()> done);

 private:
  // Requests that could not be parked, and why the last of them could not.
  struct Unparkable {
    std::vector<std::shared_ptr<AdmittedRequest>> requests;
    Status status;
  };

  void run_commands();
  void answer_cancelled();
  void expire_sessions(TimeUs now);
  bool must_form(TimeUs now) const;
  TimeUs next_wake(TimeUs now) const;

  void run_batch();
  Status execute(Batch* batch);
  bool shadow_passes(const Batch& batch);
  void complete(std::unique_ptr<Batch> batch);
  Unparkable park_postponed(Batch* batch);
  Status park(const Batch& batch, const BatchPart& part, std::uint32_t t);
  void refuse(std::unique_ptr<Batch> batch, const Status& status);
  void fail(std::vector<std::shared_ptr<AdmittedRequest>> requests, const Status& status, std::function<void()> done);
  bool drained() const;
  void finish_drain();

  CoreContext* core_;
  Batcher* const batcher_;
  Waiting* const waiting_;
  Reader* const reader_;
  ShadowCheck shadow_;
  StageQueue<std::function<void()>> commands_;
  RefusedBatch refused_;
  std::function<void()> when_drained_;
  bool draining_ = false;
  TimeUs next_expiry_us_ = 0;
  BatchNumber released_through_ = 0;
};

}  // namespace kilokv::server
