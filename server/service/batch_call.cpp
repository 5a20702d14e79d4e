#include "server/service/batch_call.hpp"

#include <google/protobuf/arena.h>

#include "kilokv/v1/kilokv.pb.h"
#include "server/service/call_sink.hpp"
#include "server/service/decode.hpp"
#include "server/service/encode.hpp"
#include "server/service/identity.hpp"
#include "server/service/long_rows.hpp"
#include "server/service/message_buffer.hpp"

namespace kilokv::server {

void BatchCall::start() {
  if (!caller_.status.ok()) return fail(caller_.status.as_not_run());
  const std::lock_guard lock(mutex_);
  read(&incoming_);
}

void BatchCall::OnReadDone(bool ok) {
  if (!ok) return fail(no_message());
  read_ended();
  grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
  const auto self = std::static_pointer_cast<BatchCall>(shared_from_this());
  const Status refused = environment_->decode_by(client_, &message, [self](grpc::ByteBuffer* taken) {
    if (self->ended()) return;
    const Status status = self->try_start(taken);
    if (!status.ok()) self->fail(status.as_not_run());
  });
  if (!refused.ok()) fail(refused.as_not_run());
}

Status BatchCall::try_start(grpc::ByteBuffer* message) {
  const ServiceOptions& options = environment_->options;
  Result<Database*> database = environment_->gate.get();
  if (!database.ok()) return database.status();
  google::protobuf::Arena arena(arena_for(kParsedFactor * message->Length()));
  auto* parsed = google::protobuf::Arena::CreateMessage<v1::ExecuteBatchRequest>(&arena);
  bool rows_left = false;
  Status status = parse_request(message, options.message_bytes_max, parsed, &rows_left);
  if (!status.ok()) return status;
  Result<RequestIdentity> identity = parse_identity(parsed->id());
  if (!identity.ok()) return identity.status();

  as_columns_ = parsed->has_columns();
  std::unique_ptr<Request> request = (*database)->acquire_request();
  status =
      decode_request(*parsed, rows_left, message, {(*database)->key_secret(), options.limits}, &request->transactions);
  if (!status.ok()) return status;
  request->identity = *identity;
  request->client = client_;
  request->login = caller_.login;
  request->trace = trace_;
  request->sink = std::make_shared<CallSink>(std::static_pointer_cast<BatchCall>(shared_from_this()));
  SubmittedRequest submitted = (*database)->submit(std::move(request));
  if (!parsed->detached()) requests_.add(*database, std::move(submitted));
  return {};
}

// The results may be those of an earlier call with another login, which this call has joined.
void BatchCall::results(const ResultSlice& slice, bool last) {
  if (const Status status = environment_->check_login(caller_); !status.ok()) fail(status);
  if (!ended()) {
    encode_slice<v1::ExecuteBatchResponse>(slice, as_columns_, environment_->options.message_bytes_max,
                                           [this](v1::ExecuteBatchResponse* message, bool) {
                                             if (ended()) return;
                                             const grpc::ByteBuffer buffer = serialize_message(*message);
                                             const std::lock_guard lock(mutex_);
                                             write(buffer);
                                           });
  }
  const std::lock_guard lock(mutex_);
  if (last) finish_when_sent(grpc::Status::OK);
}

void BatchCall::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  end_when_sent(status);
}

}  // namespace kilokv::server
