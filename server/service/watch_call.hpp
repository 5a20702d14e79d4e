// Watch: the client asks once, and the server streams the durable writes of a range. The WatchStreamer reads them.
//
// Thread safety: all members.
#pragma once

#include <memory>
#include <string>

#include "kilokv/v1/kilokv.pb.h"
#include "server/service/answer_stream.hpp"

namespace kilokv::server {

class WatchStreamer;

class WatchCall final : public AnswerStream {
 public:
  WatchCall(CallContext* context, CallEnvironment* environment, WatchStreamer* streamer)
      : AnswerStream(context, environment), streamer_(streamer) {}

  // Reads the request.
  void start();
  // Ends the watch before its request is read.
  void refuse(const Status& status);
  void end_without_login(const AccessTable& table) override;
  void end_when_stopping(const Status& status) override { end(status); }

  // The streamer uses these.
  const v1::WatchRequest& request() const { return request_; }
  bool is_over() const { return ended(); }
  // Whether the client has taken all answers.
  bool is_sent() const;
  void send(const v1::WatchResponse& answer);
  void end(const Status& status);
  // UNAVAILABLE, PERMISSION_DENIED and UNAUTHENTICATED: the caller may not watch this range now.
  Result<Database*> database() const;

 private:
  void OnReadDone(bool ok) override;
  void on_sent() override;
  void on_gone() override;
  Status take(grpc::ByteBuffer* message);
  Status check_range() const;
  Status as_late(const Status& status) const override { return status.as_not_run(); }  // it has only one message

  WatchStreamer* const streamer_;
  grpc::ByteBuffer incoming_;
  v1::WatchRequest request_;
};

}  // namespace kilokv::server
