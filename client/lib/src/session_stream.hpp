// One gRPC stream of a session. It owns itself from start() until the end of the stream. The call that reports the end
// is its last one. Requests are written as bytes (encode.hpp), so that a request is encoded once, however often it is
// sent.
//
// The session outlives the stream. SessionState::close() waits for on_stream_end(), and the stream releases the channel
// before that call. The reason: if a channel is destroyed on a thread of gRPC, it destroys the queue that this thread
// is using (grpc 1.51, CallbackAlternativeCQ).
//
// Thread safety: one thread at a time calls write() (SessionState's lock), and none after on_stream_broken().
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
  // `more_follows`: gRPC may hold this message back until the next write. Requires: on_written() has reported the last
  // write.
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
