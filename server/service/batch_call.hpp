// ExecuteBatch: one request of many transactions. The server streams their results as they finish. If the client goes
// away, the transactions that have not started are dropped and those that wait are cancelled, unless the request is in
// a session or detached.
#pragma once

#include <memory>

#include "server/core/request.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/call_requests.hpp"

namespace kilokv::server {

class BatchCall final : public AnswerStream, public ResponseSink {
 public:
  BatchCall(CallContext* context, CallEnvironment* environment) : AnswerStream(context, environment) {}

  // Reads the request, decodes it and submits it. The call ends after its last answer, or with an error.
  void start();

  void results(const ResultSlice& slice, bool last) override;
  void fail(const Status& status) override;
  bool gone() const override { return ended(); }

 private:
  void OnReadDone(bool ok) override;
  Status try_start(grpc::ByteBuffer* message);
  void on_gone() override { requests_.abandon(); }
  Status as_late(const Status& status) const override { return status.as_not_run(); }  // it has only one message

  grpc::ByteBuffer incoming_;
  bool as_columns_ = false;
  CallRequests requests_;
};

}  // namespace kilokv::server
