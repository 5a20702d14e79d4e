// What the stages of the pipeline share: a request on its way, a batch on its way, the queues between stages, and the
// positions that batches have reached.
//
//   submit (any thread) -> AdmissionQueue -> Executor -> LogStage -> AnswerStage, and Checkpointer beside them.
//
// Ownership: a Batch belongs to exactly one stage at a time and moves along with the pointer. A RequestRun is shared by
// the batches (and the parking lot) that hold some of its transactions; what is mutable in it says who may touch it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/pipeline/live_results.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

// A request that was admitted, until its last transaction is answered.
struct RequestRun {
  std::unique_ptr<Request> request;  // the columns; returned to the pool once all is in a batch. Executor.
  std::optional<SessionId> session;
  std::uint64_t number = 0;
  std::uint64_t acknowledged_through = 0;
  Hash128 digest;
  UploadedPart uploaded;               // of its content
  std::shared_ptr<Upload> upload;      // where its guards came from, until it is admitted
  bool alone = false;                  // one transaction that has a batch of its own
  std::uint32_t transactions = 0;      // in the whole request
  std::vector<std::uint32_t> indices;  // of those that run, where not all do (a retry after a crash); else empty
  std::shared_ptr<ResponseSink> sink;  // without a session; with one the session table holds the sinks
  std::uint32_t to_run = 0;            // transactions that run
  std::uint32_t batched = 0;           // of those, how many went into a batch. Executor.
  std::uint32_t unanswered = 0;        // of those, how many were not answered yet. Answer worker.
  std::uint64_t queued_bytes = 0;      // charged to the admission queue
  TransactionCost cost;                // of those that run; its log is given back when all is answered
  std::uint64_t largest_value = 0;     // at which it was priced
  struct {
    std::uint32_t transaction = 0;
    std::uint64_t log_bytes = 0;
  } dearest;                               // of those that run
  std::uint64_t stored_read_bytes = 0;     // left for guard values and reads in stored results. Log worker.
  std::uint64_t waiting_transactions = 0;  // charged to the parking lot; given back when all is answered
  TimeUs admitted_us = 0;                  // monotonic
  bool failed = false;                     // ended without results: what is left of it does not run. Executor.
  std::vector<std::uint64_t> parked_ids;   // of all that ever were in the parking lot. Executor.

  std::uint32_t index_of(std::uint32_t i) const { return indices.empty() ? i : indices[i]; }
};

// What a batch holds of one request: transactions [begin, end) of its columns, or none, where it only answers what was
// cancelled.
struct BatchPart {
  std::shared_ptr<RequestRun> run;
  std::uint32_t begin = 0, end = 0;
  std::uint32_t first = 0;  // transaction `begin` is the run's number `first`, and so on (RequestRun::index_of)
  BatchNumber admitted_batch = 0;
  std::uint64_t first_arrival = 0;  // of `begin`; consecutive
  std::uint64_t parked_id = 0;      // of a single transaction that was parked before ...
  TimeUs deadline_us = 0;           // ... and its deadline
  // Those that are answered with this batch: all of [begin, end) with consecutive indices, or the listed ones.
  bool whole = true;
  std::vector<LiveItem> items;
  std::size_t encoded_begin = 0, encoded_end = 0;  // in Batch::encoded_results; sessions only

  std::uint32_t answered() const { return whole ? end - begin : static_cast<std::uint32_t>(items.size()); }
};

// The position that a batch leaves behind.
struct Position {
  BatchNumber batch = 0;
  Version next_version = 1;
  Version tombstone_floor = 0;
  TimeUs time_us = 0;
  Hash128 state_hash;
};

// A batch on its way. Pooled: clear() keeps every capacity.
struct Batch {
  engine::BatchHeader header;
  engine::TransactionColumns columns;
  engine::Column<std::uint8_t> expires;
  engine::BatchResults results;
  engine::WriteColumns writes;
  std::vector<BatchPart> parts;
  std::vector<SessionEntry> session_entries;  // opened and closed; results are added by the log stage
  std::string encoded_results;
  std::vector<std::function<void()>> when_durable;  // run by the answer worker, after the results
  Position after;

  void clear();
  LiveSlice slice_of(const BatchPart& part, const engine::Engine& engine) const;
};

// First in, first out, between two stages. Its bound is the number of batches in flight.
template <class T>
class StageQueue {
 public:
  void push(T item) {
    const std::scoped_lock lock(mutex_);
    items_.push_back(std::move(item));
  }
  // All that is there, in order.
  std::vector<T> take_all() {
    const std::scoped_lock lock(mutex_);
    std::vector<T> taken(std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end()));
    items_.clear();
    return taken;
  }
  std::optional<T> take() {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> taken = std::move(items_.front());
    items_.pop_front();
    return taken;
  }
  bool empty() const {
    const std::scoped_lock lock(mutex_);
    return items_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::deque<T> items_;
};

// A Position that one stage moves and others read.
class SharedPosition {
 public:
  void set(const Position& position) {
    const std::scoped_lock lock(mutex_);
    position_ = position;
    batch_.store(position.batch, std::memory_order_release);
  }
  Position get() const {
    const std::scoped_lock lock(mutex_);
    return position_;
  }
  BatchNumber batch() const { return batch_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  Position position_;
  std::atomic<BatchNumber> batch_{0};
};

// Counters since the start; each has one writer (`refused`: many).
struct Counters {
  std::atomic<std::uint64_t> batches{0}, transactions{0}, committed{0}, guard_failed{0}, wait_expired{0}, overflow{0},
      type_mismatch{0}, refused{0};
  std::atomic<std::uint64_t> batches_serial{0}, batches_parallel{0}, batches_on_device{0}, shadow_batches{0},
      shadow_skipped{0};
};

// What an empty one still holds.
std::uint64_t capacity_bytes(const Request& request);
std::uint64_t capacity_bytes(const Batch& batch);

// Objects that keep their capacity: at most so many, and so many bytes in all. Thread-safe.
template <class T>
class Pool {
 public:
  Pool(std::size_t kept_max, std::uint64_t bytes_max) : kept_max_(kept_max), bytes_max_(bytes_max) {}
  std::unique_ptr<T> take() {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) return std::make_unique<T>();
    auto item = std::move(items_.back());
    items_.pop_back();
    bytes_ -= capacity_bytes(*item);
    return item;
  }
  // Requires: the item is cleared.
  void give(std::unique_ptr<T> item) {
    const std::uint64_t bytes = capacity_bytes(*item);
    const std::scoped_lock lock(mutex_);
    if (items_.size() >= kept_max_ || bytes_ + bytes > bytes_max_) return;
    bytes_ += bytes;
    items_.push_back(std::move(item));
  }
  std::uint64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<T>> items_;
  std::uint64_t bytes_ = 0;  // of items_
  const std::size_t kept_max_;
  const std::uint64_t bytes_max_;
};

}  // namespace kilokv::server
