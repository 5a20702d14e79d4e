// Forms batches: says when the next one is due, what goes into it, and which time it is stamped with.
//
// When: as soon as there is work and no batch is in flight, so that an idle server does not wait. While an earlier
// batch is being synced: when --batch-max-transactions wait, or the oldest of the queue has waited --batch-max-delay. A
// due deadline of a parked transaction forms a batch by itself when nothing is in flight.
//
// What, in this order: parked transactions whose turn it is, at most half of the batch while others queue; requests of
// the queue, in order, as far as they fit (--batch-max-transactions, --batch-max-bytes, --batch-max-reads); what is
// attached. The first transaction of a batch always fits. While parts of a refused batch are left, they take the place
// of the first two.
//
// Invariants: stamps never go back, and go on with the monotonic clock where the wall clock stands still or goes back.
// First arrivals are numbered in the order in which requests enter batches.
//
// Thread safety: the executor's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/txn/columns.hpp"
#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admission_queue.hpp"
#include "server/core/pipeline/batch.hpp"
#include "server/core/pipeline/pool.hpp"
#include "server/core/pipeline/refused_batch.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/position.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {

class Batcher {
 public:
  // All outlive the batcher. `requests`: gets back those that are wholly in batches. `last_stamp_us`: of the last
  // batch.
  Batcher(const DatabaseOptions& options, const Clock* clock, AdmissionQueue* queue, Pool<Request>* requests,
          Waiting* waiting, TimeUs last_stamp_us);

  // Whether a batch has to form now. `in_flight`: batches that are executed and not yet durable. `at_once`: what there
  // is does not wait for company.
  bool must_form(TimeUs now, std::uint32_t in_flight, bool at_once) const;
  // When it may have to, if nothing happens before; kNever: not before something does.
  TimeUs next_due(TimeUs now, std::uint32_t in_flight) const;

  // Fills an empty batch, which follows `before`.
  void fill(const Position& before, RefusedBatch* refused, Batch* batch);

  // Goes with the next batch, which forms for it. Nothing of it needs the table.
  void attach(const SessionEntry& entry) { attached_.entries.push_back(entry); }
  void attach(BatchPart cancelled) { attached_.cancelled.push_back(std::move(cancelled)); }
  // Run by the answer worker when the batch is durable.
  void attach(std::function<void()> when_durable) { attached_.when_durable.push_back(std::move(when_durable)); }
  bool has_attached() const { return !attached_.empty(); }
  // Whether a cancelled transaction of a request that has failed is attached.
  bool has_cancelled_of_failed() const;
  // The batch was refused: what was attached to it goes with the next one. Leaves the parts that have transactions.
  void take_back_attached(Batch* batch);

 private:
  struct Stamp {
    TimeUs time_us = 0;       // of a batch
    TimeUs monotonic_us = 0;  // when it was taken
  };
  struct Attached {
    std::vector<BatchPart> cancelled;
    std::vector<SessionEntry> entries;
    std::vector<std::function<void()>> when_durable;
    bool empty() const { return cancelled.empty() && entries.empty() && when_durable.empty(); }
  };

  Stamp stamp() const;
  void append_parked(Batch* batch);
  void append_one_parked(const Parked& parked, Batch* batch);
  void append_queued(Batch* batch);
  bool has_room(TransactionCost more, std::uint64_t share) const;
  std::uint32_t fitting(const Batch& batch, const AdmittedRequest& request);

  const DatabaseOptions& options_;
  const Clock* const clock_;
  AdmissionQueue* const queue_;
  Pool<Request>* const requests_;
  Waiting* const waiting_;
  Attached attached_;
  Stamp last_stamp_;
  std::uint64_t next_arrival_ = 1;
  std::size_t parked_taken_ = 0;  // by the last batch that took some
  bool queue_held_up_ = false;    // the last batch took nothing of a queue that had something
  // Of the batch at hand.
  TransactionCost cost_;
  engine::TransactionColumns scratch_;  // one unpacked parked transaction
};

}  // namespace kilokv::server
