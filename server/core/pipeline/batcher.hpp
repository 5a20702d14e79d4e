// Forms batches: decides when the next batch is due, what goes into it, and its stamp.
//
// When: as soon as there is work and no batch is in flight, so that an idle server does not wait. While an earlier
// batch is being synced: when --batch-max-transactions are waiting, or the oldest request of the queue has waited for
// --batch-max-delay. If nothing is in flight, a parked transaction that is due is enough to form a batch. Batches that
// delete expired keys do not count as in flight here: while many keys are due, there is always one.
//
// What, in this order: parked transactions, at most half of the batch while others queue; requests of the queue;
// attached work. Both are chosen in the turns of their clients (waiting/lane_turns.hpp, turns.hpp), as far as they fit
// (--batch-max-transactions, --batch-max-bytes, --batch-max-reads). The parked ones that were chosen stand in the batch
// in the order of their first arrival. The first transaction of a batch always fits. A request that
// does not fit goes before all others into the next batch, or soon after.
//
// Answers take time, too. While earlier batches that read much are not answered, the next batches have less room. So
// what reads little passes, and unanswered batches do not fill the memory. While a refused batch has parts left, these
// parts replace the parked transactions and the queue.
//
// Invariants: stamps never go back (core/pipeline/stamp_clock.hpp). First arrivals are numbered in the order in which
// requests enter batches.
//
// Thread safety: the executor's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/access/access.hpp"
#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admission_queue.hpp"
#include "server/core/pipeline/batch.hpp"
#include "server/core/pipeline/pool.hpp"
#include "server/core/pipeline/refused_batch.hpp"
#include "server/core/pipeline/stamp_clock.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/position.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {

// Batches that are executed and not yet durable, or, if these are more, those that are too many not yet answered.
struct BatchesInFlight {
  std::uint32_t of_clients = 0;
  std::uint32_t expiries = 0;  // they delete expired keys
  std::uint32_t all() const { return of_clients + expiries; }
};

class Batcher {
 public:
  // Everything passed in outlives the batcher. `requests`: gets back the requests that are completely in batches.
  // `last_stamp_us`: the stamp of the last batch. `clock_changed`: DatabaseEvents.
  Batcher(const DatabaseOptions& options, const Clock* clock, const Access* access, AdmissionQueue* queue,
          Pool<Request>* requests, Waiting* waiting, TimeUs last_stamp_us,
          std::function<void(const ClockChange&)> clock_changed = {});

  // Whether a batch has to form now. `at_once`: the batch does not wait for more transactions.
  bool must_form(TimeUs now, BatchesInFlight in_flight, bool at_once) const;
  // The time at which a batch may have to form if nothing happens before; kNever: only after something happens.
  TimeUs next_due(TimeUs now, BatchesInFlight in_flight) const;

  // Estimates what a transaction of the last batch takes of a batch, because it is to be parked.
  void estimate(const engine::TransactionColumns& columns, std::size_t t, Parked* parked) const;

  // Fills an empty batch that follows `before`. `unanswered_parts`: CoreContext. Returns false if the batch stays
  // empty, because what is queued must wait until earlier batches, which read much or are large, are answered.
  bool fill(const Position& before, std::uint64_t unanswered_parts, RefusedBatch* refused, Batch* batch);

  // Whether keys are due.
  bool has_due(const engine::Engine& engine) const {
    const TimeUs next_us = engine.next_expiry();
    return next_us != kNever && next_us <= stamps_.now_us();
  }
  // Whether a batch has to form now that deletes expired keys. It forms in turn with other batches.
  bool must_expire(const engine::Engine& engine, BatchesInFlight in_flight) const;
  // The time at which it may have to form if nothing happens before; kNever: only after something happens.
  TimeUs next_expiry(const engine::Engine& engine, TimeUs now, BatchesInFlight in_flight) const;
  // Fills an empty batch with a DELETE of each of the first `keys_max` keys that are due, a transaction for each.
  void fill_expired(const Position& before, const engine::Engine& engine, const engine::KeyHashSecret& secret,
                    std::size_t keys_max, Batch* batch);

  // Attaches work to the next batch; a batch forms for it. None of this work needs the table.
  void attach(const SessionEntry& entry) { attached_.entries.push_back(entry); }
  // A change of the access table, encoded.
  void attach_access_change(std::string change) { attached_.access_changes.push_back(std::move(change)); }
  // All of these go into one batch, so the caller bounds their number.
  void attach(BatchPart cancelled) { attached_.cancelled.push_back(std::move(cancelled)); }
  std::size_t attached_cancelled() const { return attached_.cancelled.size(); }
  // The answer worker runs it when the batch is durable.
  void attach(std::function<void()> when_durable) { attached_.when_durable.push_back(std::move(when_durable)); }
  // The transactions of this request that are still queued will not run.
  void drop(AdmittedRequest* request);
  // Requests that fill() did not take because their rights were taken away, with the reason. They are dropped from the
  // queue.
  struct Denied {
    std::shared_ptr<AdmittedRequest> request;
    Status status;
  };
  std::vector<Denied> take_denied() { return std::exchange(denied_, {}); }
  // Whether the rights of the request still allow what is left of it in the queue. Looks again only if the access table
  // has changed.
  Status check_access(AdmittedRequest* request) const;
  bool has_attached() const { return !attached_.empty(); }
  // Whether a cancelled transaction is attached whose request has failed.
  bool has_cancelled_of_failed() const;
  // The batch was refused: its attached work goes with the next batch. The parts that have transactions stay in
  // `batch`.
  void take_back_attached(Batch* batch);

 private:
  struct Attached {
    std::vector<BatchPart> cancelled;
    std::vector<SessionEntry> entries;
    std::vector<std::string> access_changes;
    std::vector<std::function<void()>> when_durable;
    bool empty() const {
      return cancelled.empty() && entries.empty() && access_changes.empty() && when_durable.empty();
    }
  };

  TimeUs expiry_due_us(const engine::Engine& engine, BatchesInFlight in_flight) const;
  bool must_wait_for_parked(TimeUs stamp_us);
  void append_parked(Batch* batch);
  Waiting::Answer choose_parked(Parked* parked);
  bool parked_fits(std::uint64_t part) const;
  const engine::TransactionColumns& unpacked(const Parked& parked);
  Status check_parked_access(const Parked& parked);
  void append_one_parked(const Parked& parked, Batch* batch);
  void append_queued(TimeUs now_us, Batch* batch);
  bool may_run(const std::shared_ptr<AdmittedRequest>& request);
  struct Fitting {
    std::uint32_t count = 0;
    std::uint64_t cost = 0;
  };
  Fitting fitting(const Batch& batch, const AdmittedRequest& request, std::uint64_t turn_max) const;
  void append(const std::shared_ptr<AdmittedRequest>& request, const Fitting& fit, Batch* batch);
  void recycle(AdmittedRequest* request);

  const DatabaseOptions& options_;
  const Clock* const clock_;
  const Access* const access_;
  AdmissionQueue* const queue_;
  Pool<Request>* const requests_;
  Waiting* const waiting_;
  Attached attached_;
  std::vector<Denied> denied_;
  StampClock stamps_;
  std::uint64_t next_arrival_ = 1;
  bool queue_held_up_ = false;           // the last batch had no room for the request whose turn it was
  std::uint32_t passed_by_ = 0;          // batches since a request did not fit beside unanswered reads
  std::uint32_t parked_passed_by_ = 0;   // batches that a parked transaction did not fit into beside unanswered reads
  std::uint32_t drained_hand_outs_ = 0;  // batches that began after these were too many, when all was answered
  // For the current batch.
  std::uint64_t parked_room_ = 0, parked_cost_ = 0;  // for its parked transactions, if they are more than one
  std::size_t parked_put_off_ = 0;                   // clients
  std::uint64_t cost_ = 0;           // of its transactions, and of earlier answers; at most kWholeBatch, or it has one
  std::uint64_t largest_value_ = 0;  // with which the costs are estimated
  engine::TransactionColumns scratch_;  // one unpacked parked transaction
};

}  // namespace kilokv::server
