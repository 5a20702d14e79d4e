// Session: a stream of numbered requests. Many can be in flight, and each is answered when it finishes.
//
// Flow control: the next request is read only while two counts are below their limits. The requests in flight are fewer
// than stream_requests_max. Their bytes, with those of the unsent answers, are fewer than stream_bytes_max. While the
// stream is not read, gRPC's flow control makes the client wait.
// An error of one request is an answer. The stream itself ends only after a message that cannot be parsed, or after a
// malformed session in its first message, or because its client may make no calls any more. If the client goes away,
// its answers are dropped in this class. What it sent in a session goes on. What it sent without a session ends with
// the stream, unless it is detached.
#pragma once

#include <memory>
#include <optional>

#include "kilokv/v1/kilokv.pb.h"
#include "server/core/request.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/call_requests.hpp"

namespace kilokv::server {

class SessionStream final : public AnswerStream {
 public:
  SessionStream(CallContext* context, CallEnvironment* environment) : AnswerStream(context, environment) {}

  ~SessionStream() override;

  void start();
  // Ends the stream before its first message is read.
  void refuse(const Status& status);
  // Ends the stream with `status` after the queued answers are sent.
  void end(const Status& status);
  void end_when_stopping(const Status& status) override { end(status); }
  // Ends the stream with PERMISSION_DENIED if its login does not count any more.
  void end_without_login(const AccessTable& table) override;

 private:
  class Answer;

  bool is_over() const;
  void OnReadDone(bool ok) override;
  void on_sent() override { read_on(); }
  void on_gone() override { requests_.abandon(); }

  void take_and_read_on(grpc::ByteBuffer* message, const Status& refused);
  void handled(bool half_closed);
  Status take(grpc::ByteBuffer* buffer, const Status& refused);
  Status bind(const v1::SessionRequest& message);
  Status check_bound(const v1::SessionRequest& message) const;
  Status submit(const v1::SessionRequest& message, grpc::ByteBuffer* rows, std::uint64_t bytes,
                std::shared_ptr<Answer> answer);
  void answered(std::uint64_t bytes);
  void read_on();  // requires: mutex_ is held

  // Only the reading reaction, and the decoding of its message, use these. The next message is read after that.
  grpc::ByteBuffer incoming_;
  bool bound_ = false;  // whether the first message has come
  std::optional<SessionId> session_;
  std::uint64_t holder_ = 0;  // of the session

  CallRequests requests_;  // those without a session

  // Guarded by mutex_.
  bool reading_ = false;  // a read is in progress, or its message waits or is being handled
  bool half_closed_ = false;
  std::uint32_t requests_in_flight_ = 0;
  std::uint64_t request_bytes_ = 0;  // of the requests in flight
};

}  // namespace kilokv::server
