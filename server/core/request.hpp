// A client's request inside the server, and the sink that gets its answers. This file does not depend on gRPC.
//
// Life of a request: the service decodes and validates it into a Request from the pool, and passes it to
// Database::submit. From then on core owns it. Its transactions finish in one batch, or in several if it is large or
// some WAIT. For each batch the sink gets at least one ResultSlice; the last one of all has `last` set. A request that
// ends without results (refused, unavailable, cancelled by a drain) gets exactly one fail() instead of its last slice.
//
// Thread safety: plain data, except ResponseSink, whose comment says more.
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
#include "server/core/trace_parent.hpp"

namespace kilokv::server {

struct Client;
struct Login;

// One finished transaction, ready to be answered. Views are valid only during ResponseSink::results.
struct TransactionResult {
  std::uint32_t index = 0;  // in its request
  engine::Outcome outcome = engine::Outcome::undecided;
  bool cancelled = false;  // by Cancel, before it was decided; then there is no outcome
  engine::FailedIn failed_in = engine::FailedIn::none;
  std::uint32_t failed_index = engine::kNone;
  BatchNumber batch = 0;
  BatchNumber admitted_batch = 0;
  std::uint32_t rank = 0;
  TimeUs batch_time_us = 0;
  std::optional<Version> version;  // set if it wrote
  bool reads_dropped = false;      // its stored result is beyond --result-bytes-max: only version and outcome are kept
};

// A value as a transaction read it.
struct ReadValue {
  std::string_view key;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string_view bytes;
  std::optional<Version> version;  // null: the transaction's own earlier write
};

// Receives the results of some transactions of one request, in index order within the call. For each transaction come:
// transaction(), then guard_value() if a guard decided, then read() for each GET and each range pair, in the order in
// which they ran. operation: index of the operation within the list that ran.
class ResultVisitor {
 public:
  virtual ~ResultVisitor() = default;
  virtual void transaction(const TransactionResult& result) = 0;
  virtual void guard_value(const ReadValue& value) = 0;
  virtual void read(std::uint32_t operation, const ReadValue& value) = 0;
};

// Results of one request from one batch (or from the results that a session has stored).
class ResultSlice {
 public:
  virtual ~ResultSlice() = default;
  virtual std::uint32_t size() const = 0;
  virtual void visit(ResultVisitor* visitor) const = 0;
};

// Where answers go. The answer worker calls it; for stored results and refusals, the submitting thread does. Results
// that come while the submitting thread shows stored ones are shown by the same thread. Two calls for one sink never
// overlap. A call must not block. Core drops its reference after the last call.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // `last`: every transaction of the request has now been answered.
  virtual void results(const ResultSlice& slice, bool last) = 0;
  virtual void fail(const Status& status) = 0;
  // The client has gone. Results are dropped, and core may call fail() early. Any thread.
  virtual bool gone() const { return false; }
};

// The memory that a sink may take, with its allocation, when its call has ended. Core keeps and counts a sink until its
// request ends, which may be a day later. So a sink must not keep more than this.
inline constexpr std::uint64_t kSinkBytes = 96;

// A decoded, validated request.
struct Request {
  engine::TransactionColumns transactions;
  RequestIdentity identity;  // without the digest, which admission computes
  // How many keys were uploaded under this number. Their guards come before those of the request's one transaction.
  // That transaction is in a session and does not wait.
  std::uint64_t uploaded_keys = 0;
  std::shared_ptr<ResponseSink> sink;
  std::shared_ptr<Client> client;      // who sent it; null: nobody in particular, which has no share to keep to
  std::shared_ptr<const Login> login;  // whose rights it needs; null: it may do everything
  TraceParent trace;                   // no part of its content
  // What part of a batch each transaction takes (BatchParts). Admission fills it in. It is here because a request is
  // used again and keeps its memory.
  std::vector<std::uint32_t> parts_of_batch;

  // Keeps the capacity of the columns.
  void clear() {
    transactions.clear();
    parts_of_batch.clear();
    identity = {};
    uploaded_keys = 0;
    sink.reset();
    client.reset();
    login.reset();
    trace = {};
  }
};

// A request that was submitted, for Database::abandon. Empty: nothing of it can be abandoned.
struct AdmittedRequest;
using SubmittedRequest = std::weak_ptr<AdmittedRequest>;

// The memory that an empty request still holds.
inline std::uint64_t capacity_bytes(const Request& request) {
  return request.transactions.capacity_bytes() + request.parts_of_batch.capacity() * sizeof(std::uint32_t);
}

// The status of requests and calls that end because the server drains.
inline Status draining() {
  return Status(StatusCode::unavailable, ErrorReason::draining,
                "the server is shutting down; in a session, send the request again");
}

}  // namespace kilokv::server
