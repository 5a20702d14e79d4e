// Role: see local_calls.hpp.
#include "server/service/local_calls.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/check.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/service/status_map.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using google::protobuf::Message;
namespace json = google::protobuf::util;

constexpr char kService[] = "kilokv.v1.KiloKV";

std::unique_ptr<Message> make(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

const google::protobuf::MethodDescriptor* method_of(const std::string& name) {
  const google::protobuf::ServiceDescriptor* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(kService);
  KILOKV_CHECK(service != nullptr);
  return service->FindMethodByName(name);
}

std::string error_of(StatusCode code, const std::string& message, const v1::ErrorDetail& detail) {
  constexpr std::string_view kReasonPrefix = "ERROR_REASON_";
  std::string reason = v1::ErrorReason_Name(detail.reason());
  if (reason.starts_with(kReasonPrefix)) reason.erase(0, kReasonPrefix.size());
  std::string text;
  google::protobuf::Struct error;
  auto& fields = *error.mutable_fields();
  fields["code"].set_string_value(to_string(code));
  fields["reason"].set_string_value(reason);
  fields["message"].set_string_value(message);
  fields["field"].set_string_value(detail.field());
  fields["limit"].set_string_value(detail.limit());
  fields["actual"].set_string_value(detail.actual());
  fields["setting"].set_string_value(detail.setting());
  fields["not_run"].set_bool_value(detail.not_run());
  fields["retry_after_us"].set_string_value(std::to_string(detail.retry_after_us()));
  google::protobuf::Struct whole;
  *(*whole.mutable_fields())["error"].mutable_struct_value() = std::move(error);
  KILOKV_CHECK(json::MessageToJsonString(whole, &text).ok());
  return text;
}

LocalCalls::Answer refusal(const Status& status) { return {status.code(), error_json(status)}; }

LocalCalls::Answer too_large(std::size_t bytes, std::size_t bytes_max) {
  return refusal(Status::invalid({.field = "the answer",
                                  .limit = std::to_string(bytes_max) + " bytes in the console",
                                  .actual = std::to_string(bytes) + " bytes",
                                  .setting = ""})
                     .because(ErrorReason::answer_too_large));
}

}  // namespace

std::string error_json(const Status& status) {
  v1::Error error;
  fill_error(status, &error);
  return error_of(status.code(), error.message(), error.detail());
}

struct LocalCalls::Flight {
  grpc::ClientContext context;
  std::string path, owner;
  bool may_wait = false;
  grpc::ByteBuffer request, response;
  const google::protobuf::Descriptor* response_type = nullptr;
  Done done;
  // Ends before the context.
  std::optional<std::stop_callback<std::function<void()>>> cancel;
};

LocalCalls::LocalCalls(grpc::Server* server, Logins* logins) {
  std::optional<std::string> secret = tls::make_secret();
  KILOKV_CHECK(secret);
  secret_ = std::move(*secret);
  logins->set_local_secret(secret_);
  channel_ = server->InProcessChannel(grpc::ChannelArguments());
}

void LocalCalls::begin(const Call& call, Done done) {
  if (call.cancelled.stop_requested()) return done(refusal(Status(StatusCode::cancelled, "the browser has gone")));
  const google::protobuf::MethodDescriptor* const method = method_of(call.method);
  if (method == nullptr || method->client_streaming() || method->server_streaming()) {
    return done(refusal(Status(StatusCode::unimplemented, ErrorReason::unknown_method, "there is no such call")));
  }
  const std::unique_ptr<Message> request = make(method->input_type());
  if (const auto parsed = json::JsonStringToMessage(call.json, request.get()); !parsed.ok()) {
    return done(refusal(Status(StatusCode::invalid_argument, ErrorReason::malformed_message,
                               "this is not the JSON of a request: " + std::string(parsed.message()))));
  }
  const auto flight = std::make_shared<Flight>();
  bool owns = false;
  const grpc::Status serialized = grpc::SerializationTraits<Message>::Serialize(*request, &flight->request, &owns);
  KILOKV_CHECK(serialized.ok());
  flight->path = std::string("/") + kService + "/" + call.method;
  flight->response_type = method->output_type();
  flight->done = std::move(done);
  flight->context.AddMetadata(kLocalSecretKey, secret_);
  flight->context.AddMetadata(kLocalPeerKey, call.peer);
  if (!call.token.empty()) flight->context.AddMetadata("authorization", "Bearer " + call.token);
  flight->context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(call.timeout_us));
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return flight->done(refusal(Status(StatusCode::unavailable, ErrorReason::draining, "draining")));
    if (const Status place = place_for(call); !place.ok()) return flight->done(refusal(place));
    flight->owner = call.owner;
    flight->may_wait = call.may_wait;
    open_.insert(flight);
  }
  flight->cancel.emplace(call.cancelled, [context = &flight->context] { context->TryCancel(); });
  grpc::GenericStub(channel_).UnaryCall(&flight->context, flight->path, {}, &flight->request, &flight->response,
                                        [this, flight](const grpc::Status& status) { end(flight, status); });
}

LocalCalls::Answer LocalCalls::answer_of(Flight* flight) {
  const std::size_t bytes = flight->response.Length();
  if (bytes > kResponseBytesMax) return too_large(bytes, kResponseBytesMax);
  const std::lock_guard lock(one_answer_);
  const std::unique_ptr<Message> response = make(flight->response_type);
  const bool is_parsed = grpc::SerializationTraits<Message>::Deserialize(&flight->response, response.get()).ok();
  json::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  Answer answer;
  if (!is_parsed || !json::MessageToJsonString(*response, &answer.json, options).ok()) {
    return refusal(Status(StatusCode::internal, "the answer of the service is not a message of the protocol"));
  }
  return answer.json.size() > kJsonBytesMax ? too_large(answer.json.size(), kJsonBytesMax) : answer;
}

void LocalCalls::end(const std::shared_ptr<Flight>& flight, const grpc::Status& status) {
  Answer answer;
  if (!status.ok()) {
    answer.code = from_grpc_code(status.error_code());
    answer.json = error_of(answer.code, status.error_message(), detail_of(flight->context));
  } else {
    answer = answer_of(flight.get());
  }
  flight->done(std::move(answer));
  const std::lock_guard lock(mutex_);
  open_.erase(flight);
  ended_.notify_all();
}

Status LocalCalls::place_for(const Call& call) const {
  const auto full = [](const char* what, std::size_t most) {
    constexpr DurationUs kRetryUs = 1000000;
    return Status::exhausted(ErrorReason::calls_full, {what, std::to_string(most), "one more", ""}, kRetryUs);
  };
  if (open_.size() >= kOpenCallsMax) return full("open calls of the console", kOpenCallsMax);
  if (!call.may_wait) return {};
  std::size_t waits = 0, of_owner = 0;
  for (const std::shared_ptr<Flight>& flight : open_) {
    waits += flight->may_wait ? 1 : 0;
    of_owner += flight->may_wait && flight->owner == call.owner ? 1 : 0;
  }
  if (of_owner >= kWaitsOfOwnerMax) return full("open transactions of one user in the console", kWaitsOfOwnerMax);
  return waits < kWaitsMax ? Status() : full("open transactions in the console", kWaitsMax);
}

void LocalCalls::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  for (const std::shared_ptr<Flight>& flight : open_) flight->context.TryCancel();
  ended_.wait(lock, [this] { return open_.empty(); });
}

}  // namespace kilokv::server
