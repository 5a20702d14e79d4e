// A request from its admission until its last transaction is answered.
//
// Ownership: the batches and the parking lot share the object while they hold some of the request's transactions.
//
// Thread safety: the admitting thread fills the object in. After AdmissionQueue::push(), most members do not change any
// more. A member changes only if its comment ends with the name of a thread (executor, answer worker or log worker).
// Only this thread changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/access/access_table.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/session_table.hpp"
#include "server/core/trace_parent.hpp"

namespace kilokv::server {

struct AdmittedRequest {
  std::unique_ptr<Request> content;  // the columns; returned to the pool when all is in batches. Executor.
  RequestIdentity identity;
  UploadedPart uploaded;           // the number of its uploaded keys, and the digest of the rest of its content
  std::shared_ptr<Upload> upload;  // holds its uploaded keys until the request is admitted, then null
  bool own_batch = false;          // the request is one transaction that gets a batch of its own
  std::uint32_t transactions = 0;  // in the whole request
  // Which transactions of the request run; empty: all. After a crash, a retry runs only those without a stored result.
  std::vector<std::uint32_t> indices;
  std::shared_ptr<ResponseSink> sink;  // null in a session, because there the session table holds the sinks
  std::shared_ptr<Client> client;      // never null once it is admitted
  std::shared_ptr<const Login> login;  // null: no rights are needed
  // The rights that all its transactions were checked with, and a version of the access table that has them. Executor.
  std::shared_ptr<const Rights> rights;
  std::uint64_t access_version = 0;
  // The version that the transactions that are not in a batch yet were checked with. Executor.
  std::uint64_t queue_access_version = 0;
  std::uint32_t to_run = 0;        // transactions that run
  std::uint32_t batched = 0;       // how many of them went into a batch. Executor.
  std::uint32_t unanswered = 0;    // how many of them are not answered yet. Answer worker.
  std::uint64_t queued_bytes = 0;  // bytes that the admission queue counts for it
  // The sum over all transactions that run. Its log space is given back when all of them are answered.
  TransactionCost cost;
  bool data_in_room = false;        // as DataBudget::reserve says
  std::uint64_t largest_value = 0;  // bytes of the largest value that `cost` was estimated with
  std::uint64_t parts_value = 0;    // the same for content->parts_of_batch, rounded up to a power of two. Executor.
  std::uint64_t cost_left = 0;      // sum of these parts, of the transactions that are not in a batch yet. Executor.
  struct Highest {
    std::uint32_t transaction = 0;
    std::uint64_t amount = 0;
    void look(std::uint32_t t, std::uint64_t of_t) {
      if (of_t > amount) *this = {t, of_t};
    }
  } most_log_bytes, most_copies, most_reads;  // of the transactions that run
  // Bytes that guard values and reads may still take in the stored results of this request. Log worker.
  std::uint64_t stored_read_bytes = 0;
  std::uint64_t waiting_transactions = 0;  // parking places that it takes until all its transactions are answered
  TimeUs admitted_us = 0;                  // on the monotonic clock
  TraceParent trace;
  std::uint32_t decided = 0;              // how many of its transactions were decided or cancelled. Executor.
  bool failed = false;                    // ended with an error: its other transactions do not run. Executor.
  std::vector<std::uint64_t> parked_ids;  // of all its transactions that ever were parked. Executor.

  // The client that counts what the request holds until all of it is answered. A session outlives the connection.
  Client* holder() const { return identity.session ? client->keeper() : client.get(); }
  std::uint32_t index_of(std::uint32_t i) const { return indices.empty() ? i : indices[i]; }
};

}  // namespace kilokv::server
