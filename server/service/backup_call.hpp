// Backup: the client asks once, and the server streams a backup. The BackupStreamer makes it.
//
// Thread safety: all members.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kilokv/v1/kilokv.pb.h"
#include "server/service/answer_stream.hpp"

namespace kilokv::server {

class BackupStreamer;

class BackupCall final : public AnswerStream {
 public:
  BackupCall(CallContext* context, CallEnvironment* environment, BackupStreamer* streamer)
      : AnswerStream(context, environment), streamer_(streamer), peer_(context->peer()) {}

  // Reads the request.
  void start();
  void end_without_login(const AccessTable& table) override;
  void end_when_stopping(const Status& status) override { end(status); }

  // The streamer uses these.
  const v1::BackupRequest& request() const { return request_; }
  const std::string& peer() const { return peer_; }
  const Caller& caller() const { return caller_; }
  bool is_over() const { return ended(); }
  // Whether the client has taken all answers.
  bool is_sent() const;
  void send(const v1::BackupResponse& answer);
  void end(const Status& status);  // ok: the backup is complete
  // UNAVAILABLE, PERMISSION_DENIED and UNAUTHENTICATED: the caller may not make a backup now.
  Result<Database*> database() const;

 private:
  void OnReadDone(bool ok) override;
  void on_sent() override;
  void on_gone() override;
  Status take(grpc::ByteBuffer* message);
  Status as_late(const Status& status) const override { return status.as_not_run(); }  // it has only one message

  BackupStreamer* const streamer_;
  const std::string peer_;
  grpc::ByteBuffer incoming_;
  v1::BackupRequest request_;
};

}  // namespace kilokv::server
