#include "server/service/reflection.hpp"

#include <google/protobuf/descriptor.pb.h>
#include <grpc/reflection/v1alpha/reflection.grpc.pb.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/service/service_fixture.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using grpc::reflection::v1alpha::ServerReflection;
using ReflectionRequest = grpc::reflection::v1alpha::ServerReflectionRequest;
using ReflectionResponse = grpc::reflection::v1alpha::ServerReflectionResponse;

ReflectionRequest list_services() {
  ReflectionRequest request;
  request.set_list_services("");
  return request;
}

std::set<std::string> files_of(const ReflectionResponse& response) {
  std::set<std::string> names;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    names.insert(file.name());
  }
  return names;
}

std::vector<std::string> services_of(const ReflectionResponse& response) {
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  return names;
}

TEST(ReflectTest, EachKindOfRequestIsAnswered) {
  ReflectionRequest request = list_services();
  request.set_host("h");
  ReflectionResponse response = reflect(request);
  EXPECT_EQ(services_of(response),
            (std::vector<std::string>{"kilokv.v1.KiloKV", "grpc.reflection.v1alpha.ServerReflection",
                                      "grpc.health.v1.Health"}));
  EXPECT_EQ(response.valid_host(), "h");
  EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());

  const std::set<std::string> files = {"kilokv/v1/kilokv.proto", "kilokv/v1/transaction.proto",
                                       "kilokv/v1/columns.proto", "kilokv/v1/activity.proto"};
  for (const char* symbol : {"kilokv.v1.KiloKV", "kilokv.v1.KiloKV.Execute", "kilokv.v1.StatusResponse"}) {
    request.set_file_containing_symbol(symbol);
    EXPECT_EQ(files_of(reflect(request)), files) << symbol;
  }
  request.set_file_by_filename("kilokv/v1/kilokv.proto");
  EXPECT_EQ(files_of(reflect(request)), files);
  request.set_all_extension_numbers_of_type("kilokv.v1.StatusResponse");
  response = reflect(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(), "kilokv.v1.StatusResponse");
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TEST(ReflectTest, WhatIsNotThereIsAnError) {
  ReflectionRequest request;
  EXPECT_EQ(reflect(request).error_response().error_code(), grpc::INVALID_ARGUMENT);
  request.set_file_containing_symbol("none\n");
  EXPECT_EQ(reflect(request).error_response().error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(reflect(request).error_response().error_message(), "this server has no symbol \"none\\n\"");
  request.set_file_by_filename("none");
  EXPECT_EQ(reflect(request).error_response().error_code(), grpc::NOT_FOUND);
  request.set_all_extension_numbers_of_type("none");
  EXPECT_EQ(reflect(request).error_response().error_code(), grpc::NOT_FOUND);
  for (const char* type : {"none", "kilokv.v1.StatusResponse"}) {
    request.mutable_file_containing_extension()->set_containing_type(type);
    request.mutable_file_containing_extension()->set_extension_number(7);
    EXPECT_EQ(reflect(request).error_response().error_code(), grpc::NOT_FOUND);
  }
}

// A client of the stream.
class ReflectionTest : public ServiceTest {
 protected:
  ReflectionTest() : ReflectionTest(ServiceOptions()) {}
  explicit ReflectionTest(const ServiceOptions& options) : ServiceTest(options) {
    channel_ = grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials());
    reflection_ = ServerReflection::NewStub(channel_);
  }
  // The status of a stream with this one request.
  grpc::Status status_of(const ReflectionRequest& request, const std::string& token = {}) {
    const auto call = context();
    if (!token.empty()) call->AddMetadata("authorization", "Bearer " + token);
    const auto stream = reflection_->ServerReflectionInfo(call.get());
    stream->Write(request);
    stream->WritesDone();
    for (ReflectionResponse response; stream->Read(&response);) ++answers_;
    return stream->Finish();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ServerReflection::Stub> reflection_;
  int answers_ = 0;
};

TEST_F(ReflectionTest, AStreamAnswersInOrder) {
  const auto call = context();
  const auto stream = reflection_->ServerReflectionInfo(call.get());
  ReflectionResponse response;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->Write(list_services()));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(services_of(response).size(), 3u);
    ASSERT_TRUE(stream->Write(ReflectionRequest()));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_TRUE(response.has_error_response());
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ReflectionTest, ALongRequestIsRefused) {
  ReflectionRequest request;
  request.set_host(std::string(kReflectionBytesMax, 'h'));
  const grpc::Status status = status_of(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("4096 bytes"), std::string::npos) << status.error_message();
  EXPECT_EQ(answers_, 0);
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(ReflectionTest, OpenStreamsHoldNoThreads) {
  EXPECT_TRUE(status_of(list_services()).ok());
  const std::size_t before = threads_of_process();
  constexpr std::size_t kStreams = 50;
  std::vector<std::unique_ptr<grpc::ClientContext>> calls;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<ReflectionRequest, ReflectionResponse>>> streams;
  for (std::size_t i = 0; i < kStreams; ++i) {
    calls.push_back(context());
    streams.push_back(reflection_->ServerReflectionInfo(calls.back().get()));
    ReflectionResponse response;
    ASSERT_TRUE(streams.back()->Write(list_services()));
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  EXPECT_LT(threads_of_process(), before + kStreams / 2);
  for (const auto& call : calls) call->TryCancel();
  for (const auto& stream : streams) EXPECT_EQ(stream->Finish().error_code(), grpc::CANCELLED);
}

class ReflectionLoginTest : public ReflectionTest {
 protected:
  static ServiceOptions options() {
    ServiceOptions options;
    options.login = true;
    return options;
  }
  ReflectionLoginTest() : ReflectionTest(options()), token_(*tls::make_token()) {
    AccessChange user{.kind = AccessChange::Kind::put_user, .role = {}, .user = {"u", {}, {}}, .token = {}};
    AccessChange token{.kind = AccessChange::Kind::put_token, .role = {}, .user = {}, .token = {}};
    token.token = {.id = token_.parts.id, .user = "u", .secret_hash = token_.parts.secret_hash};
    change(user);
    change(token);
  }
  void change(const AccessChange& change) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return change; }, [](const auto&) {});
  }
  void remove_user() {
    change({.kind = AccessChange::Kind::remove_user, .role = {}, .user = {"u", {}, {}}, .token = {}});
  }

  const tls::NewToken token_;
};

TEST_F(ReflectionLoginTest, ItNeedsALogin) {
  EXPECT_EQ(status_of(list_services(), token_.text).error_code(), grpc::UNAVAILABLE) << "it recovers";
  service_.serve(&database_);
  EXPECT_EQ(status_of(list_services()).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(status_of(list_services(), tls::make_token()->text).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(answers_, 0);
  EXPECT_TRUE(status_of(list_services(), token_.text).ok());
  EXPECT_EQ(answers_, 1);
  remove_user();
  EXPECT_EQ(status_of(list_services(), token_.text).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(ReflectionLoginTest, AnOpenStreamEndsWithItsLogin) {
  service_.serve(&database_);
  const auto call = context();
  call->AddMetadata("authorization", "Bearer " + token_.text);
  const auto stream = reflection_->ServerReflectionInfo(call.get());
  ReflectionResponse response;
  ASSERT_TRUE(stream->Write(list_services()));
  ASSERT_TRUE(stream->Read(&response));
  remove_user();
  stream->Write(list_services());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::PERMISSION_DENIED);
}

TEST_F(ReflectionLoginTest, StatusWithoutADatabaseIsRefused) {
  const auto status = [&] {
    const auto call = context();
    call->AddMetadata("authorization", "Bearer " + token_.text);
    v1::StatusResponse response;
    const grpc::Status ended = stub_->Status(call.get(), {}, &response);
    return std::pair(ended.error_code(), detail_of(*call).reason());
  };
  EXPECT_EQ(status(), std::pair(grpc::UNAVAILABLE, v1::ERROR_REASON_RECOVERING));
  service_.serve(&database_);
  EXPECT_EQ(status().first, grpc::PERMISSION_DENIED) << "the user has no metrics right";
  service_.close();
  EXPECT_EQ(status(), std::pair(grpc::UNAVAILABLE, v1::ERROR_REASON_DRAINING));
}

}  // namespace
}  // namespace kilokv::server
