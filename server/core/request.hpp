// A client's request inside the server, and where its answers go. No gRPC.
//
// Life of a request: the service decodes and validates it into a Request from the pool, and hands it to
// Database::submit. From there on core owns it. Its transactions finish in one batch or, where one WAITs, in several;
// for each batch the sink gets one ResultSlice, and after the last one `last` is set. A request that ends without
// results (refused, unavailable, cancelled by drain) gets exactly one fail() instead, or after some slices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// One finished transaction, ready to be answered. Views are valid during ResponseSink::results alone.
struct TransactionResult {
  std::uint32_t index = 0;  // in its request
  engine::Outcome outcome = engine::Outcome::undecided;
  bool cancelled = false;  // by Cancel, before it was decided; no outcome then
  engine::FailedIn failed_in = engine::FailedIn::none;
  std::uint32_t failed_index = engine::kNone;
  BatchNumber batch = 0;
  BatchNumber admitted_batch = 0;
  std::uint32_t rank = 0;
  TimeUs batch_time_us = 0;
  std::optional<Version> version;  // if it wrote
  bool reads_dropped = false;      // stored result beyond --result-bytes-max: version and outcome only
};

// A value as it was read.
struct ReadValue {
  std::string_view key;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string_view bytes;
  std::optional<Version> version;  // null: the transaction's own earlier write
};

// Receives the results of some transactions of one request, in index order within the call.
// For each transaction: transaction(), then guard_value() if a guard decided, then read() for each GET and range pair,
// in the order in which they ran. operation: index of the operation within the list that ran.
class ResultVisitor {
 public:
  virtual ~ResultVisitor() = default;
  virtual void transaction(const TransactionResult& result) = 0;
  virtual void guard_value(const ReadValue& value) = 0;
  virtual void read(std::uint32_t operation, const ReadValue& value) = 0;
};

// Results of one request from one batch (or from what a session has stored).
class ResultSlice {
 public:
  virtual ~ResultSlice() = default;
  virtual std::uint32_t size() const = 0;
  virtual void visit(ResultVisitor* visitor) const = 0;
};

// Where answers go. Calls come from the answer worker (or, for stored results and refusals, from the submitting
// thread), never two at once for one request; they must not block. Core drops its reference after the last call.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // `last`: every transaction of the request has now been answered.
  virtual void results(const ResultSlice& slice, bool last) = 0;
  virtual void fail(const Status& status) = 0;
  // The client has gone. Results are dropped, and core may call fail() early. Any thread.
  virtual bool gone() const { return false; }
};

// A decoded, validated request.
struct Request {
  engine::TransactionColumns transactions;
  RequestIdentity identity;  // without the digest, which admission computes
  // How many keys were uploaded under the number: their guards come before those of the one transaction, which is in a
  // session and does not wait.
  std::uint64_t uploaded_keys = 0;
  std::shared_ptr<ResponseSink> sink;

  // Keeps the capacity of the columns.
  void clear() {
    transactions.clear();
    identity = {};
    uploaded_keys = 0;
    sink.reset();
  }
};

// What an empty one still holds.
inline std::uint64_t capacity_bytes(const Request& request) { return request.transactions.capacity_bytes(); }

// With what requests end, and calls are refused, once the server drains.
inline Status draining() {
  return Status(StatusCode::unavailable, "the server is shutting down; in a session, send the request again")
      .because(ErrorReason::draining);
}

}  // namespace kilokv::server
