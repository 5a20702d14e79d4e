// The stream of a session (session_stream.hpp).
#include "client/lib/src/session_stream.hpp"

#include "client/lib/src/session_state.hpp"

namespace kilokv::client {

SessionStream::SessionStream(SessionState* session, std::shared_ptr<grpc::Channel> channel)
    : session_(session), stub_(std::move(channel)) {}

void SessionStream::start() {
  session_->connection().log_in(&context_);
  stub_.PrepareBidiStreamingCall(&context_, "/kilokv.v1.KiloKV/Session", {}, this);
  AddHold();  // needed because writes start outside of reactions; released when the stream breaks
  StartRead(&incoming_);
  StartCall();
}

void SessionStream::write(const grpc::ByteBuffer& message, bool more_follows) {
  outgoing_ = message;
  grpc::WriteOptions options;
  if (more_follows) options.set_buffer_hint();
  StartWrite(&outgoing_, options);
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) {
    session_->on_stream_broken();
    RemoveHold();
    return;
  }
  session_->on_response(&incoming_);
  StartRead(&incoming_);
}

void SessionStream::OnWriteDone(bool ok) { session_->on_written(ok); }

void SessionStream::OnDone(const grpc::Status& status) {
  SessionState* const session = session_;
  Error error = to_error(status, context_, session->where());
  delete this;
  session->on_stream_end(std::move(error));
}

}  // namespace kilokv::client
