// A batch on its way through the pipeline.
//
// Ownership: a Batch belongs to exactly one stage at a time and moves along with the pointer.
// Thread safety: none; its stage alone touches it.
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

// What a batch holds of one request: transactions [begin, end) of its columns, or none, where it only answers what was
// cancelled.
struct BatchPart {
  std::shared_ptr<AdmittedRequest> request;
  std::uint32_t begin = 0, end = 0;
  std::uint32_t first = 0;  // transaction `begin` is the `first` that runs of its request (AdmittedRequest::index_of)
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

// Pooled: clear() keeps every capacity.
struct Batch {
  engine::BatchHeader header;
  engine::TransactionColumns columns;
  engine::Column<std::uint8_t> last_try;
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

// What an empty one still holds.
std::uint64_t capacity_bytes(const Batch& batch);

}  // namespace kilokv::server
