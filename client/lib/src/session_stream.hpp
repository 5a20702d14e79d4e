// One gRPC stream of a session. It owns itself from start() until the end of the stream, which it reports last.
// Requests are written as bytes (encode.hpp), so that a request is encoded once however often it is sent.
// The session outlives it: SessionState::close() waits for on_stream_end(), before which the stream has let go of the
// channel. A channel that ends on a thread of gRPC ends that thread's queue under it (grpc 1.51,
// CallbackAlternativeCQ).
//
// Thread safety: write() by one caller at a time (SessionState's lock), and never after on_stream_broken().
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <memory>

#include "client/lib/src/connection.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {

class SessionState;

class SessionStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, v1::SessionResponse> {
 public:
  SessionStream(SessionState* session, std::shared_ptr<grpc::Channel> channel);
  void start();
  // Requires: the write before it was reported by on_written. `more_follows`: it may wait for the next write.
  void write(const grpc::ByteBuffer& message, bool more_follows);
  void cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  SessionState* const session_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::SessionResponse> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer outgoing_;
  v1::SessionResponse incoming_;
};

}  // namespace kilokv::client
