// Bad input to every method, and what it must say.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/generic/generic_stub.h>

#include <future>

#include "server/service/message_buffer.hpp"
#include "server/service/status_map.hpp"
#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

// Every method gets bad input, and what it must say.
TEST_F(ServiceTest, EveryRefusalHasAReason) {
  service_.serve(&database_);
  const auto refusal = [&](auto method, const auto& request, auto response) {
    auto call = context();
    const grpc::Status status = (stub_.get()->*method)(call.get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << request.GetTypeName();
    return detail_of(*call).reason();
  };
  const auto unary = [](auto method) { return method; };
  using Stub = v1::KiloKV::Stub;
  using Context = grpc::ClientContext*;
#define KILOKV_METHOD(name) \
  unary(static_cast<grpc::Status (Stub::*)(Context, const v1::name##Request&, v1::name##Response*)>(&Stub::name))
  v1::ExecuteRequest execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->clear_operand();
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_MISSING_FIELD);
  execute = execute_request();
  execute.mutable_transaction()->set_precedence(256);
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->set_limit(1);  // the reason that columns get, too
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_NOT_ALLOWED);
  execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->mutable_range();
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_NOT_ALLOWED);
  EXPECT_EQ(refusal(KILOKV_METHOD(UploadReadSet), v1::UploadReadSetRequest(), v1::UploadReadSetResponse()),
            v1::ERROR_REASON_MISSING_FIELD);
  v1::OpenSessionRequest open;
  open.set_lease_us(1);
  EXPECT_EQ(refusal(KILOKV_METHOD(OpenSession), open, v1::OpenSessionResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  EXPECT_EQ(refusal(KILOKV_METHOD(KeepSessionAlive), v1::KeepSessionAliveRequest(), v1::KeepSessionAliveResponse()),
            v1::ERROR_REASON_MISSING_FIELD);
  v1::CloseSessionRequest close;
  EXPECT_EQ(refusal(KILOKV_METHOD(CloseSession), close, v1::CloseSessionResponse()), v1::ERROR_REASON_MISSING_FIELD);
  close.set_session("short");
  EXPECT_EQ(refusal(KILOKV_METHOD(CloseSession), close, v1::CloseSessionResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::AttachSessionRequest attach;
  EXPECT_EQ(refusal(KILOKV_METHOD(AttachSession), attach, v1::AttachSessionResponse()), v1::ERROR_REASON_MISSING_FIELD);
  attach.set_session("12345678");
  EXPECT_EQ(refusal(KILOKV_METHOD(AttachSession), attach, v1::AttachSessionResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::GetRequest get;
  EXPECT_EQ(refusal(KILOKV_METHOD(Get), get, v1::GetResponse()), v1::ERROR_REASON_MISSING_FIELD);
  get.add_keys(std::string(2048, 'x'));
  EXPECT_EQ(refusal(KILOKV_METHOD(Get), get, v1::GetResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::ScanRequest scan;
  scan.set_reader("short");
  EXPECT_EQ(refusal(KILOKV_METHOD(Scan), scan, v1::ScanResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::ListParkedRequest list;
  list.set_limit(10'001);
  EXPECT_EQ(refusal(KILOKV_METHOD(ListParked), list, v1::ListParkedResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  EXPECT_EQ(refusal(KILOKV_METHOD(Cancel), v1::CancelRequest(), v1::CancelResponse()), v1::ERROR_REASON_MISSING_FIELD);
#undef KILOKV_METHOD

  auto batch = context();
  auto reader = stub_->ExecuteBatch(batch.get(), {});
  v1::ExecuteBatchResponse slice;
  EXPECT_FALSE(reader->Read(&slice));
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_EQ(detail_of(*batch).reason(), v1::ERROR_REASON_MISSING_FIELD);

  auto session = context();
  auto stream = stub_->Session(session.get());
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Write({}));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().reason(), v1::ERROR_REASON_MISSING_FIELD);
  session->TryCancel();
  stream->Finish();
}

TEST_F(ServiceTest, MalformedMessagesAndUnknownMethodsAreRefusedInOurWords) {
  grpc::GenericStub stub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  const auto refusal = [&](const std::string& method, grpc::ClientContext* call) {
    const grpc::Slice garbage("\xff\xff\xff");
    grpc::ByteBuffer request(&garbage, 1), response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(call, method, {}, &request, &response, [&](grpc::Status status) { ended.set_value(status); });
    return ended.get_future().get();
  };
  service_.serve(&database_);
  const auto* methods = v1::ErrorDetail::descriptor()->file()->FindServiceByName("KiloKV");
  ASSERT_GE(methods->method_count(), 12);
  for (int i = 0; i < methods->method_count(); ++i) {
    auto call = context();
    const grpc::Status status = refusal("/kilokv.v1.KiloKV/" + methods->method(i)->name(), call.get());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << methods->method(i)->name();
    EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE) << methods->method(i)->name();
    EXPECT_EQ(detail_of(*call).field(), "message");
  }
  auto call = context();
  const grpc::Status status = refusal("/kilokv.v1.KiloKV/Jump", call.get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "unknown method /kilokv.v1.KiloKV/Jump");
  EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_UNKNOWN_METHOD);
  EXPECT_TRUE(detail_of(*call).not_run());
  EXPECT_EQ(database_.submitted(), 0u);
}

// A parsed message can take many times the memory of its bytes, so the length is checked first. Malformed bytes show
// it.
TEST_F(ServiceTest, AnOverlongMessageOfAnyMethodIsNotParsed) {
  service_.serve(&database_);
  grpc::GenericStub stub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  grpc::ByteBuffer response;
  const auto send = [&](const std::string& method, const std::string& bytes, grpc::ClientContext* call) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1);
    std::promise<grpc::Status> ended;
    stub.UnaryCall(call, "/kilokv.v1.KiloKV/" + method, {}, &request, &response,
                   [&](grpc::Status status) { ended.set_value(status); });
    return ended.get_future().get();
  };
  const std::size_t most = ServiceOptions().message_bytes_max;
  const auto* methods = v1::ErrorDetail::descriptor()->file()->FindServiceByName("KiloKV");
  for (int i = 0; i < methods->method_count(); ++i) {
    const std::string& method = methods->method(i)->name();
    if (method == "Session") continue;
    auto fits = context(), too_long = context();
    EXPECT_EQ(send(method, std::string(most, '\xff'), fits.get()).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(detail_of(*fits).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE) << method;
    EXPECT_EQ(send(method, std::string(most + 1, '\xff'), too_long.get()).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    const v1::ErrorDetail detail = detail_of(*too_long);
    EXPECT_EQ(detail.reason(), v1::ERROR_REASON_MESSAGE_TOO_LARGE) << method;
    EXPECT_EQ(detail.setting(), "--message-bytes-max") << method;
    EXPECT_EQ(detail.limit(), std::to_string(most) + " bytes") << method;
    EXPECT_EQ(detail.actual(), std::to_string(most + 1) + " bytes") << method;
    EXPECT_TRUE(detail.not_run()) << method;
  }

  // A stream reads the number, because the refusal names it. The rows are malformed inside.
  v1::SessionRequest head;
  head.set_number(7);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.WriteTag(v1::SessionRequest::kRowsFieldNumber << 3 | 2);
    coded.WriteVarint32(static_cast<std::uint32_t>(most));
    coded.WriteString(std::string(most, '\xff'));
  }
  bytes += head.SerializeAsString();
  auto stream = context();
  EXPECT_TRUE(send("Session", bytes, stream.get()).ok());
  v1::SessionResponse refused;
  ASSERT_TRUE(parse_message(&response, UINT64_MAX, &refused).ok());
  EXPECT_EQ(refused.number(), 7u);
  EXPECT_EQ(refused.error().detail().reason(), v1::ERROR_REASON_MESSAGE_TOO_LARGE);
  EXPECT_TRUE(refused.error().detail().not_run());
  auto no_fields = context();
  EXPECT_EQ(send("Session", std::string(most + 1, '\xff'), no_fields.get()).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_fields).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE);
  EXPECT_EQ(database_.submitted(), 0u);
}

TEST_F(ServiceTest, TheDetailRidesOnEveryCode) {
  v1::ExecuteResponse response;
  auto recovering = context();
  EXPECT_EQ(stub_->Execute(recovering.get(), execute_request(), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(detail_of(*recovering).reason(), v1::ERROR_REASON_RECOVERING);
  EXPECT_TRUE(detail_of(*recovering).not_run());
  service_.serve(&database_);
  const std::pair<Status, v1::ErrorReason> refusals[] = {
      {Status(StatusCode::failed_precondition, ErrorReason::session_unknown, "x"), v1::ERROR_REASON_SESSION_UNKNOWN},
      {Status(StatusCode::aborted, ErrorReason::snapshot_too_old, "x"), v1::ERROR_REASON_SNAPSHOT_TOO_OLD},
      {Status(StatusCode::unavailable, ErrorReason::draining, "x"), v1::ERROR_REASON_DRAINING},
      {Status(StatusCode::data_loss, "x"), v1::ERROR_REASON_CORRUPT},
      {Status(StatusCode::internal, "x"), v1::ERROR_REASON_FAILED}};
  for (const auto& [status, reason] : refusals) {
    std::thread answerer([this, &status = status] { database_.take()->sink->fail(status); });
    auto call = context();
    EXPECT_EQ(stub_->Execute(call.get(), execute_request(), &response).error_code(), to_grpc_code(status.code()));
    answerer.join();
    EXPECT_EQ(detail_of(*call).reason(), reason) << to_string(status.code());
    EXPECT_FALSE(detail_of(*call).not_run());
  }
  service_.close();
  auto draining = context();
  EXPECT_FALSE(stub_->Execute(draining.get(), execute_request(), &response).ok());
  EXPECT_EQ(detail_of(*draining).reason(), v1::ERROR_REASON_DRAINING);
}

}  // namespace
}  // namespace kilokv::server
