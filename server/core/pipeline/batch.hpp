// A batch on its way through the pipeline.
//
// Ownership: exactly one stage owns a Batch at a time, and passes it on with the pointer. Thread safety: none; only its
// stage touches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/pipeline/admitted_request.hpp"
#include "server/core/pipeline/live_results.hpp"
#include "server/core/position.hpp"

namespace kilokv::server {

// The part of a batch that belongs to one request: transactions [begin, end) of its columns. The range is empty if the
// part only answers cancelled transactions.
struct BatchPart {
  std::shared_ptr<AdmittedRequest> request;
  std::uint32_t begin = 0, end = 0;
  std::uint32_t first = 0;  // place of `begin` among those that run of its request (AdmittedRequest::index_of)
  BatchNumber admitted_batch = 0;
  std::uint64_t first_arrival = 0;  // of `begin`; the others follow consecutively
  std::uint64_t parked_id = 0;      // of a single transaction that was parked before ...
  TimeUs deadline_us = 0;           // ... its deadline ...
  TimeUs parked_since_us = 0;       // ... the stamp of the batch that parked it first ...
  std::uint32_t parked_guard = 0;   // ... and the guard for which it was parked last
  // Transactions that are answered with this batch: all of [begin, end) with consecutive indices, or the listed ones.
  bool whole = true;
  std::vector<LiveItem> items;
  std::size_t encoded_begin = 0, encoded_end = 0;  // in Batch::encoded_results; sessions only

  std::uint32_t answered() const { return whole ? end - begin : static_cast<std::uint32_t>(items.size()); }
};

// When a batch reached the end of a stage, on the monotonic clock.
struct BatchTimes {
  TimeUs formed_us = 0, executed_us = 0, durable_us = 0;
};

// Batches are pooled: clear() keeps every capacity.
struct Batch {
  engine::BatchHeader header;
  engine::TransactionColumns columns;
  engine::Column<std::uint8_t> expires;
  engine::BatchResults results;
  engine::WriteColumns writes;
  std::vector<BatchPart> parts;
  std::vector<SessionEntry> session_entries;  // opened and closed; the log stage adds results
  std::vector<std::string> access_changes;    // as encode_change writes them
  // It deletes keys that have expired, and has nothing else. Then the space of the log that is reserved for it.
  bool expired = false;
  std::uint64_t reserved_log_bytes = 0;
  std::string encoded_results;
  std::vector<std::function<void()>> when_durable;  // the answer worker runs them, after the results
  Position after;
  BatchTimes times;
  // From the execution to the answer: its memory, and its part of CoreContext::unanswered_parts.
  std::uint64_t memory_bytes = 0, unanswered_parts = 0;

  void clear();
  LiveSlice slice_of(const BatchPart& part, const engine::Engine& engine) const;
};

// The memory that an empty batch still holds.
std::uint64_t capacity_bytes(const Batch& batch);
// The memory of what is in it now.
std::uint64_t content_bytes(const Batch& batch);

}  // namespace kilokv::server
