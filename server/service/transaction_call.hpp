// Execute and Get: the unary calls that run a transaction. The database answers them later. (ExecuteBatch and Session
// have files of their own. All other calls are in service.cpp.)
//
// A call ends once: with its answer, or when its client goes away, or when its deadline passes. The last two free the
// memory of gRPC while the transaction still waits. A later answer is dropped here. Nothing is cancelled in the
// database. Thread safety: all members, because gRPC may run several reactions of one call at the same time.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>

#include "server/core/request.hpp"
#include "server/service/gate.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

class TransactionCall : public grpc::ServerUnaryReactor,
                        public ResponseSink,
                        public std::enable_shared_from_this<TransactionCall> {
 public:
  // Keeps the call alive until gRPC no longer uses it. Requires: called once, before gRPC sees the reactor.
  void adopted_by_rpc() { self_ = shared_from_this(); }

  void results(const ResultSlice& slice, bool last) final;
  void fail(const Status& status) final;
  bool gone() const final;

 protected:
  // `answer` is the buffer in which gRPC expects the bytes of the answer.
  TransactionCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : options_(*options), context_(context), answer_(answer) {}

  // Writes the results of the one transaction as the bytes of the response. If the status is not ok, it is sent
  // instead.
  virtual Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const = 0;

  const ServiceOptions& options_;

 private:
  void OnCancel() final;
  void OnDone() final {
    const std::shared_ptr<void> self = std::move(self_);  // gRPC uses the call no more; the return may destroy it
  }
  void finish(const Status& status);  // requires: mutex_ is held

  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const answer_;
  mutable std::mutex mutex_;
  bool finished_ = false;
  std::shared_ptr<void> self_;
};

class ExecuteCall final : public TransactionCall {
 public:
  ExecuteCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : TransactionCall(context, options, answer) {}

  // Decodes `message` and submits it. The call ends with its answer or an error.
  void submit(const DatabaseGate& gate, const grpc::ByteBuffer& message);

 private:
  Status try_submit(const DatabaseGate& gate, grpc::ByteBuffer message);
  Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const override;
};

class GetCall final : public TransactionCall {
 public:
  GetCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : TransactionCall(context, options, answer) {}

  // The same. If the values do not fit into one message, the call fails with INVALID_ARGUMENT. That is safe, because a
  // read has no effect that the client must learn.
  void submit(const DatabaseGate& gate, const grpc::ByteBuffer& message);

 private:
  Status try_submit(const DatabaseGate& gate, grpc::ByteBuffer message);
  Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const override;
};

}  // namespace kilokv::server
