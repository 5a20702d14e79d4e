// Execute and Get: the unary calls that run a transaction. The database answers them later. (ExecuteBatch and Session
// have files of their own. All other calls are in service.cpp.)
//
// If the client goes away, or the deadline of the call passes, the call is freed while the transaction still waits.
// Outside a session, the transaction then ends with its call, unless the request is detached. A later answer is dropped
// (call_sink.hpp). Thread safety: all members.
#pragma once

#include <memory>

#include "server/core/request.hpp"
#include "server/service/call_requests.hpp"
#include "server/service/unary_call.hpp"

namespace kilokv::server {

class TransactionCall : public UnaryCall, public ResponseSink {
 public:
  void results(const ResultSlice& slice, bool last) final;
  void fail(const Status& status) final { end_with(status); }
  bool gone() const final { return ended(); }

 protected:
  using UnaryCall::UnaryCall;

  // Decodes and submits.
  virtual Status try_start(grpc::ByteBuffer* message) = 0;
  // The results of the one transaction as the bytes of the response, or the error to send instead.
  virtual Result<grpc::ByteBuffer> encode(const ResultSlice& slice) const = 0;
  // Passes the request on. `detached`: it goes on without its call.
  void submit(Database* database, std::unique_ptr<Request> request, bool detached);

 private:
  // Decodes the request and submits it. The call ends with its answer or an error.
  void on_message(grpc::ByteBuffer* message) final;
  void on_gone() final { requests_.abandon(); }

  CallRequests requests_;
};

class ExecuteCall final : public TransactionCall {
 public:
  ExecuteCall(CallContext* context, CallEnvironment* environment) : TransactionCall(context, environment) {}

 private:
  Status try_start(grpc::ByteBuffer* message) override;
  Result<grpc::ByteBuffer> encode(const ResultSlice& slice) const override;
};

// If the values do not fit into one message, the call fails with INVALID_ARGUMENT. That is safe, because a read has no
// effect that the client must learn.
class GetCall final : public TransactionCall {
 public:
  GetCall(CallContext* context, CallEnvironment* environment) : TransactionCall(context, environment) {}

 private:
  Status try_start(grpc::ByteBuffer* message) override;
  Result<grpc::ByteBuffer> encode(const ResultSlice& slice) const override;
};

}  // namespace kilokv::server
