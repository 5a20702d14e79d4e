// A request from its admission until its last transaction is answered.
//
// Ownership: the batches, and the parking lot, share it while they hold some of its transactions.
//
// Thread safety: the admitting thread fills it in. After AdmissionQueue::push(), only the members that name a thread
// change, and only that thread changes them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {

struct AdmittedRequest {
  std::unique_ptr<Request> content;  // the columns; returned to the pool once all of it is in batches. Executor.
  RequestIdentity identity;
  UploadedPart uploaded;               // the uploaded part of its content
  std::shared_ptr<Upload> upload;      // the upload that its guards came from, until it is admitted
  bool own_batch = false;              // it is one transaction that gets a batch of its own
  std::uint32_t transactions = 0;      // in the whole request
  std::vector<std::uint32_t> indices;  // of those that run, if not all run (a retry after a crash); else empty
  std::shared_ptr<ResponseSink> sink;  // without a session; in a session the session table holds the sinks
  std::uint32_t to_run = 0;            // transactions that run
  std::uint32_t batched = 0;           // how many of them went into a batch. Executor.
  std::uint32_t unanswered = 0;        // how many of them are not answered yet. Answer worker.
  std::uint64_t queued_bytes = 0;      // charged to the admission queue
  TransactionCost cost;                // of those that run; its log space is given back when all is answered
  std::uint64_t largest_value = 0;     // at which the cost was estimated
  struct {
    std::uint32_t transaction = 0;
    std::uint64_t log_bytes = 0;
  } costliest;                             // the costliest of those that run
  std::uint64_t stored_read_bytes = 0;     // left for guard values and reads in stored results. Log worker.
  std::uint64_t waiting_transactions = 0;  // charged to the parking lot; given back when all is answered
  TimeUs admitted_us = 0;                  // monotonic
  bool decided = false;                    // at least one of its transactions is decided, or was cancelled. Executor.
  bool failed = false;                     // ended without results: the rest of it does not run. Executor.
  std::vector<std::uint64_t> parked_ids;   // of all its transactions that ever were parked. Executor.

  std::uint32_t index_of(std::uint32_t i) const { return indices.empty() ? i : indices[i]; }
};

}  // namespace kilokv::server
