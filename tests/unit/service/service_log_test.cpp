// The traces that calls name, and the level of the log.
#include <memory>
#include <string>
#include <thread>

#include "server/service/log_level.hpp"
#include "tests/unit/service/audit_lines.hpp"
#include "tests/unit/service/log_lines.hpp"
#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

const std::string kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const std::string kOther = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-00";

TEST_F(ServiceTest, TheMetadataOfACallNameItsTrace) {
  service_.serve(&database_);
  for (const std::string& text : {kTrace, std::string()}) {
    auto call = context();
    if (!text.empty()) call->AddMetadata("traceparent", text);
    auto answered = std::make_unique<v1::ExecuteResponse>();
    std::thread client([&] { EXPECT_TRUE(stub_->Execute(call.get(), execute_request(), answered.get()).ok()); });
    const std::unique_ptr<Request> request = database_.take();
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->trace.present(), !text.empty());
    if (!text.empty()) {
      EXPECT_EQ(request->trace, *parse_traceparent(text));
    }
    test::FakeDatabase::commit(request.get());
    client.join();
  }
}

TEST_F(ServiceTest, GetAndExecuteBatchTakeTheTraceOfTheirMetadata) {
  service_.serve(&database_);
  auto get_call = context(), batch_call = context();
  get_call->AddMetadata("traceparent", kTrace);
  batch_call->AddMetadata("traceparent", kTrace);
  std::thread client([&] {
    v1::GetRequest get;
    get.add_keys("a");
    v1::GetResponse answer;
    EXPECT_TRUE(stub_->Get(get_call.get(), get, &answer).ok());
    v1::ExecuteBatchRequest batch;
    *batch.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
    v1::ExecuteBatchResponse part;
    const auto stream = stub_->ExecuteBatch(batch_call.get(), batch);
    while (stream->Read(&part)) continue;
    EXPECT_TRUE(stream->Finish().ok());
  });
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<Request> request = database_.take();
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->trace, *parse_traceparent(kTrace)) << i;
    test::FakeDatabase::commit(request.get());
  }
  client.join();
}

TEST_F(ServiceTest, ARequestOnAStreamNamesItsOwnTraceOrHasThatOfTheStream) {
  service_.serve(&database_);
  auto call = context();
  call->AddMetadata("traceparent", kTrace);
  auto stream = stub_->Session(call.get());
  v1::SessionRequest own = session_request(1);
  own.set_traceparent(kOther);
  ASSERT_TRUE(stream->Write(own));
  ASSERT_TRUE(stream->Write(session_request(2)));
  ASSERT_TRUE(stream->WritesDone());
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<Request> request = database_.take();
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->trace, *parse_traceparent(request->identity.number == 1 ? kOther : kTrace));
    test::FakeDatabase::commit(request.get());
  }
  v1::SessionResponse response;
  while (stream->Read(&response)) EXPECT_FALSE(response.has_error());
  EXPECT_TRUE(stream->Finish().ok());
}

// A request must not fail because of its trace.
TEST_F(ServiceTest, AMalformedTraceIsIgnoredAndTheLogSaysSoOnce) {
  service_.serve(&database_);
  test::LogLines lines;
  auto call = context();
  call->AddMetadata("traceparent", "planted \" nonsense");
  auto stream = stub_->Session(call.get());
  for (const std::string& text : {kTrace.substr(1), std::string(100000, '0'), std::string("planted nonsense")}) {
    v1::SessionRequest request = session_request(1);
    request.set_traceparent(text);
    ASSERT_TRUE(stream->Write(request));
    const std::unique_ptr<Request> submitted = database_.take();
    ASSERT_NE(submitted, nullptr);
    EXPECT_FALSE(submitted->trace.present());
    test::FakeDatabase::commit(submitted.get());
    v1::SessionResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_FALSE(response.has_error());
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  const std::string written = lines.take();
  EXPECT_NE(written.find("kilokvd ignores malformed traceparents times=1 "), std::string::npos) << written;
  EXPECT_EQ(written.find("planted"), std::string::npos) << written;
  EXPECT_EQ(written.find("traceparents", written.find("traceparents") + 1), std::string::npos) << written;
}

TEST_F(ServiceTest, TheLevelOfTheLogCanBeChangedAndAudited) {
  service_.serve(&database_);
  test::LogLines lines;
  test::AuditLines audit;
  const auto set = [this](const std::string& level, v1::SetLogLevelResponse* response) {
    v1::SetLogLevelRequest request;
    request.set_level(level);
    auto call = context();
    return stub_->SetLogLevel(call.get(), request, response);
  };
  v1::SetLogLevelResponse response;
  ASSERT_TRUE(set("", &response).ok());
  EXPECT_EQ(response.level(), "info");
  EXPECT_EQ(audit.take(), "");
  for (const std::string& level : log_levels()) {
    const std::string before = response.level();
    ASSERT_TRUE(set(level, &response).ok()) << level;
    EXPECT_EQ(response.level(), level);
    EXPECT_EQ(response.level_before(), before);
    EXPECT_EQ(log_level(), level);
    const std::string line = audit.take();
    EXPECT_TRUE(line.starts_with("kilokvd audit user=- peer=ipv4:127.0.0.1:")) << line;
    EXPECT_TRUE(line.ends_with(" change=log_level new_level=" + level + " old_level=" + before + " result=OK\n"))
        << line;
  }
  const grpc::Status wrong = set("loud", &response);
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(wrong.error_message().find("one of trace, debug, info"), std::string::npos) << wrong.error_message();
  EXPECT_EQ(log_level(), "off");
  EXPECT_EQ(audit.take(), "");
}

constexpr char kToldOnce[] = "kilokvd refused requests reason=MISSING_FIELD code=INVALID_ARGUMENT times=1 ";

TEST_F(ServiceTest, ARefusedCallIsToldOf) {
  service_.serve(&database_);
  test::LogLines lines;
  auto call = context();
  v1::GetResponse response;
  EXPECT_EQ(stub_->Get(call.get(), {}, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string written = lines.take();
  EXPECT_NE(written.find(kToldOnce), std::string::npos) << written;
}

TEST_F(ServiceTest, ARefusedRequestOnAStreamIsToldOf) {
  service_.serve(&database_);
  test::LogLines lines;
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(0)));
  v1::SessionResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.has_error());
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  const std::string written = lines.take();
  EXPECT_NE(written.find(kToldOnce), std::string::npos) << written;
}

}  // namespace
}  // namespace kilokv::server
