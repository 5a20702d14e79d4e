// ExecuteBatch: one request of many transactions. The server streams their results as they finish.
#pragma once

#include <memory>

#include "server/core/request.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/gate.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

class BatchCall final : public AnswerStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>, public ResponseSink {
 public:
  BatchCall(grpc::CallbackServerContext* context, const ServiceOptions* options, AnswerAccount* account)
      : AnswerStream(context, options->stream_answer_bytes_max, account), options_(options) {}

  // Decodes `message` and submits it. The call ends after its last answer, or with an error.
  void submit(const DatabaseGate& gate, const grpc::ByteBuffer& message);

  void results(const ResultSlice& slice, bool last) override;
  void fail(const Status& status) override;
  bool gone() const override { return ended(); }

 private:
  Status try_submit(const DatabaseGate& gate, grpc::ByteBuffer message);

  const ServiceOptions* const options_;
  bool as_columns_ = false;
};

}  // namespace kilokv::server
