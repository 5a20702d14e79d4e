#include "server/service/batch_call.hpp"

#include <google/protobuf/arena.h>

#include "kilokv/v1/kilokv.pb.h"
#include "server/service/decode.hpp"
#include "server/service/encode.hpp"
#include "server/service/identity.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {

void BatchCall::submit(const DatabaseGate& gate, const grpc::ByteBuffer& message) {
  const Status status = try_submit(gate, message);
  if (!status.ok()) fail(status.as_not_run());
}

Status BatchCall::try_submit(const DatabaseGate& gate, grpc::ByteBuffer message) {
  Result<Database*> database = gate.get();
  if (!database.ok()) return database.status();
  google::protobuf::Arena arena;
  auto* parsed = google::protobuf::Arena::CreateMessage<v1::ExecuteBatchRequest>(&arena);
  Status status = parse_message(&message, options_->message_bytes_max, parsed);
  if (!status.ok()) return status;
  Result<RequestIdentity> identity = parse_identity(parsed->id());
  if (!identity.ok()) return identity.status();

  as_columns_ = parsed->has_columns();
  std::unique_ptr<Request> request = (*database)->acquire_request();
  status = decode_transactions(*parsed, {(*database)->key_secret(), options_->limits}, &request->transactions);
  if (!status.ok()) return status;
  request->identity = *identity;
  request->sink = std::static_pointer_cast<BatchCall>(shared_from_this());
  (*database)->submit(std::move(request));
  return {};
}

void BatchCall::results(const ResultSlice& slice, bool last) {
  if (ended()) return;
  const auto messages = encode_slice<v1::ExecuteBatchResponse>(slice, as_columns_, options_->message_bytes_max);
  std::vector<grpc::ByteBuffer> buffers;
  buffers.reserve(messages.size());
  for (const v1::ExecuteBatchResponse& message : messages) buffers.push_back(serialize_message(message));
  const std::lock_guard lock(mutex_);
  for (const grpc::ByteBuffer& buffer : buffers) write(buffer);
  if (last) finish_when_sent(grpc::Status::OK);
}

void BatchCall::fail(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (!finished()) finish_when_sent(to_grpc(status, context()));
}

}  // namespace kilokv::server
