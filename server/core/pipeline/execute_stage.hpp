// First stage, and the owner of the engine. It runs the batches that the batcher forms, and commands between them.
// Everything that needs the table (pages of scans, slices of checkpoints) runs here as a command.
//
// A batch is run, then completed. Completing it means, in this order: its outcomes are counted; the transactions that
// it postponed are parked; its writes are announced to waiting transactions; what it overwrote is kept for the scans;
// its position becomes the executed one; it goes to the log. If the engine refuses a batch because the table is full,
// the batch runs again in parts (RefusedBatch).
//
// Keys that have expired are deleted in batches of their own, in turn with the others. Nobody waits for an answer of
// such a batch. It is logged as the others are, and it wakes those who wait for its keys.
//
// Invariants:
// - Whenever a command runs, the table, the parking lot, the kept snapshots and CoreContext::executed are at the same
//   batch.
// - A wrong batch (shadow check) ends the server before anything of it is logged or answered.
// - The answer worker fails the requests that end without results. It does so after it has answered everything that was
//   executed or cancelled before.
// - A request that fails does not run from then on. But it may have very many parked transactions. They are forgotten a
//   part at a time, so that batches go on between. Only then is the failure answered.
// - A batch answers a bounded number of cancelled transactions. A cancel of more goes into several batches.
//
// Thread safety: only its worker calls step(); any thread may call post() and abandon(); only commands call drain().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/core/access/access.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/command_queue.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/expiry_pace.hpp"
#include "server/core/pipeline/refused_batch.hpp"
#include "server/core/pipeline/shadow_check.hpp"
#include "server/core/reads/reader.hpp"
#include "server/core/request.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {

class ExecuteStage {
 public:
  // Everything passed in outlives the stage.
  ExecuteStage(CoreContext* core, Batcher* batcher, Waiting* waiting, Reader* reader);
  TimeUs step();

  // Runs `command` on the executor's thread between two batches, in the turn of its client (command_queue.hpp).
  // `client`: null for what the server itself does.
  void post(std::shared_ptr<Client> client, std::function<void()> command);
  // The call of this request has ended without its answer: what of it is neither decided nor in a batch does not run.
  void abandon(SubmittedRequest request);
  // From now on batches form at once. When nothing else is left, what is parked fails with UNAVAILABLE, a part at a
  // time. Then the answer worker calls `done`. By then, everything is answered.
  void drain(std::function<void()> done);
  // Fails the requests with parked transactions that the newest access table does not allow any more, a part at a time,
  // and then calls `done` on the executor. Nothing that is not allowed runs meanwhile, because the batcher checks again
  // what it takes. (So those in the queue fail when their turn comes.) Only commands call it.
  void end_without_rights(std::function<void()> done);

 private:
  // Requests that could not be parked, and the reason for the last of them.
  struct Unparkable {
    std::vector<std::shared_ptr<AdmittedRequest>> requests;
    Status status;
  };

  // Requests that have failed and still have parked transactions.
  struct Ending {
    std::vector<std::shared_ptr<AdmittedRequest>> requests;
    Status status;
    std::function<void()> done;
    std::size_t request = 0, id = 0;  // of parked_ids of this request: those before are forgotten
  };
  // A search for parked transactions that a change of the access table does not allow any more.
  struct RightsSearch {
    using Check = std::function<Status(const Rights&, const std::string& user)>;
    Access::Table table;
    std::function<void()> done;
    std::uint64_t last_id = 0, after_id = 0;                           // it looks at those between
    std::map<const Login*, std::shared_ptr<const Rights>> known = {};  // for one step
    Status check(const AdmittedRequest& request, const Check& allows);
  };

  void run_commands();
  void end_abandoned();
  void forget_some();
  bool forget_some_of(Ending* ending, std::size_t* left);
  void finish(Ending ending);
  void search_rights();
  void end_denied();
  void answer_cancelled();
  void report(Waiting::Cancelled cancelled);
  void expire_sessions(TimeUs now);
  void free_when_idle(TimeUs now);
  BatchesInFlight in_flight() const;
  bool must_form(TimeUs now) const;
  bool has_more() const;
  TimeUs next_wake(TimeUs now) const;

  bool must_expire(TimeUs now) const;
  void run_expired(TimeUs now);
  bool run_batch();
  void note_queue_waits(const Batch& batch, TimeUs now_us);
  Status execute(Batch* batch);
  bool shadow_passes(const Batch& batch);
  void tell_executed(const Batch& batch, std::uint64_t postponed) const;
  void tell_parked(const engine::TransactionColumns& columns, std::uint32_t t, const Parked& parked) const;
  void complete(std::unique_ptr<Batch> batch);
  Unparkable park_postponed(Batch* batch);
  Status park(const Batch& batch, const BatchPart& part, std::uint32_t t, std::uint64_t owner_bytes);
  void refuse(std::unique_ptr<Batch> batch, const Status& status);
  void fail(std::vector<std::shared_ptr<AdmittedRequest>> requests, const Status& status, std::function<void()> done);
  bool drained() const;
  void finish_drain();

  CoreContext* core_;
  Batcher* const batcher_;
  Waiting* const waiting_;
  Reader* const reader_;
  ShadowCheck shadow_;
  CommandQueue commands_;
  StageQueue<SubmittedRequest> abandoned_;
  std::deque<Ending> endings_;
  std::deque<RightsSearch> searches_;
  RefusedBatch refused_;
  std::function<void()> when_drained_;
  bool cancels_left_ = false;  // some can be carried out now, without a batch before
  bool draining_ = false;
  bool expired_last_ = false;  // the last batch has deleted expired keys
  ExpiryPace expiry_pace_;
  TimeUs no_expiry_before_us_ = 0;  // the log had no space for one
  TimeUs next_expiry_us_ = 0;
  BatchNumber released_through_ = 0, last_batch_ = 0;
  TimeUs idle_at_us_ = kNever;  // when there was no batch for a while, and what is kept for the next ones is freed
};

}  // namespace kilokv::server
