// Session: a stream of numbered requests, many in flight, answered as they finish.
//
// Flow control: the next request is read only while the stream has fewer than stream_requests_max requests in flight
// and fewer than stream_bytes_max bytes in them and in answers not yet sent; gRPC's windows then hold the client back.
// An error of one request is an answer; only a message that cannot be parsed, or a malformed session in the first one,
// ends the stream. A client that goes away cancels nothing: its answers are dropped here, not in the database.
#pragma once

#include <memory>
#include <optional>

#include "kilokv/v1/kilokv.pb.h"
#include "server/core/request.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/gate.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

class SessionStream final : public AnswerStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  SessionStream(grpc::CallbackServerContext* context, const DatabaseGate* gate, const ServiceOptions* options,
                AnswerAccount* account)
      : AnswerStream(context, options->stream_answer_bytes_max, account), gate_(gate), options_(options) {}

  void start();
  // Ends the stream with `status` after the answers that wait to be sent.
  void end(const Status& status);

 private:
  class Answer;

  void OnReadDone(bool ok) override;
  void on_sent() override { read_on(); }

  Status take(grpc::ByteBuffer buffer);
  Status bind(const v1::SessionRequest& message);
  Status submit(const v1::SessionRequest& message, std::uint64_t bytes, std::shared_ptr<Answer> answer);
  void answered(std::uint64_t bytes);
  void read_on();  // mutex_ held

  const DatabaseGate* const gate_;
  const ServiceOptions* const options_;

  // Used by the reading reaction alone.
  grpc::ByteBuffer incoming_;
  bool bound_ = false;  // the first message has come
  std::optional<SessionId> session_;

  // Under mutex_.
  bool reading_ = false;  // a read is under way, or what it gave is being taken
  bool half_closed_ = false;
  std::uint32_t requests_in_flight_ = 0;
  std::uint64_t request_bytes_ = 0;  // of those
};

}  // namespace kilokv::server
