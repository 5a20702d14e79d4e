#include "server/service/transaction_call.hpp"

#include <google/protobuf/arena.h>

#include <string>
#include <utility>

#include "server/service/call_sink.hpp"
#include "server/service/decode.hpp"
#include "server/service/encode.hpp"
#include "server/service/identity.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/read_set.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {
namespace {

// Fills the response up to the longest message. Counts the bytes of all values, even of those that do not fit.
class GetVisitor final : public ResultVisitor {
 public:
  GetVisitor(v1::GetResponse* response, std::uint64_t message_bytes_max)
      : response_(response), bytes_max_(message_bytes_max) {}
  std::uint64_t bytes() const { return bytes_; }

 private:
  void transaction(const TransactionResult& result) override {
    response_->set_batch(result.batch);
    response_->set_rank(result.rank);
    response_->set_admitted_batch(result.admitted_batch);
    response_->set_batch_time_us(result.batch_time_us);
  }
  void guard_value(const ReadValue&) override {}
  void read(std::uint32_t operation, const ReadValue& value) override {
    bytes_ += read_bytes_bound(value);
    if (bytes_ > bytes_max_) return;
    v1::Read* read = response_->add_reads();
    read->set_operation(operation);
    fill_read(value, read);
  }

  v1::GetResponse* response_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = kMessageBytesBound;
};

Status check_keys(const v1::GetRequest& request, const engine::TransactionLimits& limits) {
  const auto keys = static_cast<std::uint64_t>(request.keys_size());
  if (keys == 0 || keys > limits.operations_max) {
    return Status::invalid({.field = "keys",
                            .limit = "1 to " + std::to_string(limits.operations_max) + " keys",
                            .actual = std::to_string(keys) + " keys",
                            .setting = "--operations-max"})
        .because(keys == 0 ? ErrorReason::missing_field : ErrorReason::out_of_range);
  }
  for (int i = 0; i < request.keys_size(); ++i) {
    const std::size_t bytes = request.keys(i).size();
    if (bytes >= 1 && bytes <= limits.key_bytes_max) continue;
    return Status::invalid({.field = "keys[" + std::to_string(i) + "]",
                            .limit = "1 to " + std::to_string(limits.key_bytes_max) + " bytes",
                            .actual = std::to_string(bytes) + " bytes",
                            .setting = "--key-bytes-max"});
  }
  return {};
}

}  // namespace

// The one transaction has one result, so the first slice is the last.
void TransactionCall::results(const ResultSlice& slice, bool /*last*/) {
  if (ended()) return;
  // The results may be those of an earlier call with another login, which this call has joined.
  Status status = environment_->check_login(caller_);
  // No time goes into an answer that would be refused.
  if (status.ok()) status = environment_->answers.check(client_.get());
  Result<grpc::ByteBuffer> bytes = status.ok() ? encode(slice) : Result<grpc::ByteBuffer>(std::move(status));
  if (bytes.ok()) {
    answer(*bytes);
  } else {
    end_with(bytes.status());
  }
}

void TransactionCall::on_message(grpc::ByteBuffer* message) {
  const auto self = std::static_pointer_cast<TransactionCall>(shared_from_this());
  const Status refused = environment_->decode_by(client_, message, [self](grpc::ByteBuffer* taken) {
    if (self->ended()) return;
    const Status status = self->try_start(taken);
    if (!status.ok()) self->fail(status.as_not_run());
  });
  if (!refused.ok()) fail(refused.as_not_run());
}

void TransactionCall::submit(Database* database, std::unique_ptr<Request> request, bool detached) {
  request->client = client_;
  request->login = caller_.login;
  request->trace = trace_;
  request->sink = std::make_shared<CallSink>(std::static_pointer_cast<TransactionCall>(shared_from_this()));
  SubmittedRequest submitted = database->submit(std::move(request));
  if (!detached) requests_.add(database, std::move(submitted));
}

Status ExecuteCall::try_start(grpc::ByteBuffer* message) {
  const ServiceOptions& options = environment_->options;
  Result<Database*> database = environment_->gate.get();
  if (!database.ok()) return database.status();
  google::protobuf::Arena arena;
  auto* parsed = google::protobuf::Arena::CreateMessage<v1::ExecuteRequest>(&arena);
  Status status = parse_message(message, options.message_bytes_max, {.transactions = options.limits}, parsed);
  if (!status.ok()) return status;
  Result<RequestIdentity> identity = parse_identity(parsed->id());
  if (!identity.ok()) return identity.status();
  std::unique_ptr<Request> request = (*database)->acquire_request();
  const DecodeContext context{(*database)->key_secret(), options.limits};
  status = parsed->uploaded_keys() > 0 ? decode_beside_uploaded(*parsed, context, &request->transactions)
                                       : decode(parsed->transaction(), context, &request->transactions);
  if (!status.ok()) return status;
  request->uploaded_keys = parsed->uploaded_keys();
  request->identity = *identity;
  submit(*database, std::move(request), parsed->detached());
  return {};
}

Result<grpc::ByteBuffer> ExecuteCall::encode(const ResultSlice& slice) const {
  v1::ResultRows rows;
  RowsEncoder encoder([&] { return &rows; }, environment_->options.message_bytes_max);
  slice.visit(&encoder);
  encoder.finish();
  v1::ExecuteResponse response;
  if (rows.results_size() > 0) response.mutable_result()->Swap(rows.mutable_results(0));
  return serialize_message(response);
}

Status GetCall::try_start(grpc::ByteBuffer* message) {
  const ServiceOptions& options = environment_->options;
  Result<Database*> database = environment_->gate.get();
  if (!database.ok()) return database.status();
  google::protobuf::Arena arena;
  auto* parsed = google::protobuf::Arena::CreateMessage<v1::GetRequest>(&arena);
  Status status = parse_message(message, options.message_bytes_max, {.transactions = options.limits}, parsed);
  if (status.ok()) status = check_keys(*parsed, options.limits);
  if (!status.ok()) return status;
  std::unique_ptr<Request> request = (*database)->acquire_request();
  engine::ColumnsBuilder builder(&request->transactions, (*database)->key_secret());
  builder.begin();
  for (const std::string& key : parsed->keys()) builder.op(engine::OpKind::get, builder.key(key));
  builder.end();
  status = engine::validate(request->transactions, options.limits);
  if (!status.ok()) return status;
  submit(*database, std::move(request), false);
  return {};
}

Result<grpc::ByteBuffer> GetCall::encode(const ResultSlice& slice) const {
  const std::uint64_t bytes_max = environment_->options.message_bytes_max;
  v1::GetResponse response;
  GetVisitor visitor(&response, bytes_max);
  slice.visit(&visitor);
  if (visitor.bytes() <= bytes_max) return serialize_message(response);
  return Status::invalid({.field = "keys",
                          .limit = "values that fit in an answer of " + std::to_string(bytes_max) +
                                   " bytes; ask for fewer keys at a time",
                          .actual = std::to_string(visitor.bytes()) + " bytes",
                          .setting = "--message-bytes-max"})
      .because(ErrorReason::answer_too_large);
}

}  // namespace kilokv::server
