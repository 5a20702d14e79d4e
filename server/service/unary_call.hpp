// Execute and Get: unary calls that the database answers later.
//
// A call ends once: by its answer, or when the client goes away or its deadline passes, so that what nobody waits for
// holds nothing in gRPC while its transaction waits. What comes then is dropped here; the database cancels nothing.
// Thread safety: all members; gRPC may run reactions of one call at the same time.
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

class UnaryCall : public grpc::ServerUnaryReactor, public ResponseSink, public std::enable_shared_from_this<UnaryCall> {
 public:
  // Keeps the call alive until gRPC has let go of it. Requires: called once, before gRPC sees the reactor.
  void adopted_by_rpc() { self_ = shared_from_this(); }

  void results(const ResultSlice& slice, bool last) final;
  void fail(const Status& status) final;
  bool gone() const final;

 protected:
  // `answer`: where gRPC wants the answer's bytes.
  UnaryCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : options_(*options), context_(context), answer_(answer) {}

  // The results of the one transaction as the bytes of the response. A status that is not ok takes its place.
  virtual Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const = 0;

  const ServiceOptions& options_;

 private:
  void OnCancel() final;
  void OnDone() final {
    const std::shared_ptr<void> self = std::move(self_);  // the last of gRPC's use; may destroy this on return
  }
  void finish(const Status& status);  // mutex_ held

  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const answer_;
  mutable std::mutex mutex_;
  bool finished_ = false;
  std::shared_ptr<void> self_;
};

class ExecuteCall final : public UnaryCall {
 public:
  ExecuteCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : UnaryCall(context, options, answer) {}

  // Decodes `message` and submits it; the call ends with its answer or its error.
  void submit(const DatabaseGate& gate, const grpc::ByteBuffer& message);

 private:
  Status try_submit(const DatabaseGate& gate, grpc::ByteBuffer message);
  Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const override;
};

class GetCall final : public UnaryCall {
 public:
  GetCall(grpc::CallbackServerContext* context, const ServiceOptions* options, grpc::ByteBuffer* answer)
      : UnaryCall(context, options, answer) {}

  // The same. Values that are too much for one message are INVALID_ARGUMENT: a read has no effect that must be told.
  void submit(const DatabaseGate& gate, const grpc::ByteBuffer& message);

 private:
  Status try_submit(const DatabaseGate& gate, grpc::ByteBuffer message);
  Status encode(const ResultSlice& slice, grpc::ByteBuffer* answer) const override;
};

}  // namespace kilokv::server
