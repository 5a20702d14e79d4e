// First stage, and the owner of the engine: forms batches, runs them, parks what waits. Everything that needs the table
// (scan pages, checkpoint slices) runs here too, as a command between two batches.
//
// When a batch is formed (the batcher): as soon as there is work and nothing is in flight, so an idle server does not
// wait; while an earlier batch is being synced, when --batch-max-transactions wait or the oldest has waited
// --batch-max-delay. A due deadline of a parked transaction forms a batch by itself.
//
// Thread safety: step() by its worker alone; post() from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/shadow_check.hpp"
#include "server/core/reads/scan.hpp"
#include "server/core/reads/snapshot_store.hpp"
#include "server/core/waiting/parked_transaction.hpp"
#include "server/core/waiting/parking_lot.hpp"

namespace kilokv::server {

class Executor {
 public:
  explicit Executor(CoreContext* core);
  TimeUs step();

  // Runs `command` on the executor's thread between two batches.
  void post(std::function<void()> command);

  // The highest tombstone floor, up to `wanted`, that leaves every open snapshot whole.
  Version drop_floor(Version wanted) const { return snapshots_.drop_floor(wanted); }

  // The rest: from commands only.

  // Goes into the next batch's record; `when_durable` is run by the answer worker.
  void add_session_entry(const SessionEntry& entry, std::function<void()> when_durable);
  void scan(const ScanRequest& request, std::function<void(Result<ScanPage>)> done);
  std::vector<ParkedTransaction> list_parked(std::uint64_t after_id, std::uint32_t limit) const;
  void cancel(const CancelTarget& target, std::function<void(Result<std::uint64_t>)> done);
  // From now on batches form at once; `done` is called (by the answer worker) when all is answered and what was parked
  // has been failed with UNAVAILABLE.
  void drain(std::function<void()> done);

 private:
  struct Cancelling {  // waits until what was queued before it is in a batch
    std::uint64_t queue_pushed;
    CancelTarget target;
    std::function<void(Result<std::uint64_t>)> done;
  };

  struct Stamp {
    TimeUs time_us = 0;       // of a batch
    TimeUs monotonic_us = 0;  // when it was taken
  };

  void run_commands();
  void run_cancels();
  void expire_sessions(TimeUs now);
  bool must_form(TimeUs now) const;
  TimeUs next_wake(TimeUs now) const;
  Stamp stamp() const;

  void run_batch();
  Status execute(Batch* batch);
  bool shadow_passes(const Batch& batch);
  void fill(Batch* batch);
  std::vector<std::uint64_t> take_woken(TimeUs stamp_us);
  void append_parked(Batch* batch);
  void append_one_parked(const Parked& parked, Batch* batch);
  void append_queued(Batch* batch);
  bool has_room(TransactionCost more, std::uint64_t share) const;
  std::uint32_t fitting(const Batch& batch, const AdmittedRequest& run);
  void refuse(std::unique_ptr<Batch> batch, const Status& status);
  void append_refused(Batch* batch);
  void pass_refused(std::size_t parts);
  void fail_runs(std::vector<std::shared_ptr<AdmittedRequest>> runs, const Status& status, std::function<void()> done);
  void count_batch();
  void count_outcomes(const Batch& batch);
  void park_postponed(Batch* batch);
  bool park(const Batch& batch, const BatchPart& part, std::uint32_t t);
  void look_at_candidates();
  void unpark(const AdmittedRequest& run);
  bool drained() const;
  void finish_drain();
  void publish_parked();
  void read_page(const ScanRequest& request, ScanPage* page) const;

  CoreContext* core_;
  ParkingLot parking_;
  SnapshotStore snapshots_;
  ShadowCheck shadow_;
  StageQueue<std::function<void()>> commands_;
  std::deque<Cancelling> cancelling_;
  std::deque<std::uint64_t> woken_;  // parked ids that join the next batches
  std::size_t parked_taken_ = 0;     // by the last batch that took some
  bool queue_held_up_ = false;       // the last batch took nothing of a queue that had something
  BatchNumber looked_after_ = 0;     // the batch after which candidates were last looked at
  // A batch that the engine refused: its parts from refused_next_ on run, refused_step_ at a time; the next are in the
  // batch at hand.
  std::unique_ptr<Batch> refused_;
  std::size_t refused_next_ = 0, refused_step_ = 0;
  std::vector<BatchPart> pending_cancelled_;
  std::vector<SessionEntry> pending_entries_;
  std::vector<std::function<void()>> pending_durable_;
  std::function<void()> when_drained_;
  bool draining_ = false;
  bool drained_ = false;                                      // from then on nothing is parked
  std::vector<std::shared_ptr<AdmittedRequest>> unparkable_;  // of the batch at hand, refused with ...
  Status parking_refusal_;
  TransactionCost batch_cost_;   // of the batch at hand
  std::uint64_t postponed_ = 0;  // transactions of the batch at hand
  std::uint64_t next_arrival_ = 1;
  TimeUs next_expiry_us_ = 0;
  Stamp last_stamp_;
  BatchNumber released_through_ = 0;
  engine::TransactionColumns scratch_;  // one unpacked parked transaction
};

}  // namespace kilokv::server
