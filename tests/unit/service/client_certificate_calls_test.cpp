// Calls that are open when the certificate of their client stops to count: which of them end, how, and how soon.
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/certificates.hpp"
#include "tests/support/test_folder.hpp"
#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

using kilokv::test::Identity;
using kilokv::test::TestFolder;

constexpr std::int64_t kDay = 86400;
constexpr auto kSoon = std::chrono::seconds(5);  // about two seconds, and more on a busy machine

// All calls of one client, each of which waits for the server.
class Calls {
 public:
  Calls(const std::shared_ptr<grpc::Channel>& channel, test::FakeDatabase* database)
      : channel_(channel), stub_(v1::KiloKV::NewStub(channel)) {
    for (grpc::ClientContext* context : {&idle_context_, &in_session_context_, &alone_context_, &batch_context_,
                                         &execute_context_, &detached_context_}) {
      context->set_deadline(std::chrono::system_clock::now() + kDeadline);
    }
    idle_ = stub_->Session(&idle_context_);
    in_session_ = stub_->Session(&in_session_context_);
    v1::SessionRequest request = message(1);
    request.set_session(std::string(16, 's'));
    EXPECT_TRUE(in_session_->Write(request));
    alone_ = stub_->Session(&alone_context_);
    EXPECT_TRUE(alone_->Write(message(1)));
    v1::ExecuteBatchRequest batch;
    *batch.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
    batch_ = stub_->ExecuteBatch(&batch_context_, batch);
    execute_ = execute(&execute_context_, false);
    detached_ = execute(&detached_context_, true);
    for (int i = 0; i < 5; ++i) requests_.push_back(database->take());
  }
  // Requires: the calls end.
  ~Calls() {
    for (const auto& request : requests_) {
      if (request != nullptr) test::FakeDatabase::commit(request.get());
    }
  }

  // How each call has ended.
  std::vector<grpc::Status> finish() {
    v1::SessionResponse response;
    v1::ExecuteBatchResponse of_batch;
    for (auto* stream : {&idle_, &in_session_, &alone_}) {
      while ((*stream)->Read(&response)) {
      }
    }
    while (batch_->Read(&of_batch)) {
    }
    return {idle_->Finish(),  in_session_->Finish(), alone_->Finish(),
            batch_->Finish(), execute_.get(),        detached_.get()};
  }
  // Answers what waits. Then all calls end.
  void answer() {
    for (auto* stream : {&idle_, &in_session_, &alone_}) (*stream)->WritesDone();
    for (const auto& request : std::exchange(requests_, {})) test::FakeDatabase::commit(request.get());
  }
  grpc::Status call_again() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    v1::OpenSessionResponse response;
    return stub_->OpenSession(&context, {}, &response);
  }
  const grpc::ClientContext& execute_context() const { return execute_context_; }
  grpc::Channel& channel() { return *channel_; }

 private:
  static v1::SessionRequest message(std::uint64_t number) {
    v1::SessionRequest request;
    request.set_number(number);
    *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
    return request;
  }
  std::future<grpc::Status> execute(grpc::ClientContext* context, bool detached) {
    return std::async(std::launch::async, [this, context, detached] {
      v1::ExecuteRequest request;
      *request.mutable_transaction() = test::transfer("a", "b", 1);
      request.set_detached(detached);
      v1::ExecuteResponse response;
      return stub_->Execute(context, request, &response);
    });
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::KiloKV::Stub> stub_;
  grpc::ClientContext idle_context_, in_session_context_, alone_context_, batch_context_, execute_context_,
      detached_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>> idle_, in_session_, alone_;
  std::unique_ptr<grpc::ClientReader<v1::ExecuteBatchResponse>> batch_;
  std::future<grpc::Status> execute_, detached_;
  std::vector<std::unique_ptr<Request>> requests_;
};

// The parameter: whether clients log in, by their certificates.
class ClientCertificateCalls : public testing::TestWithParam<bool> {
 protected:
  ClientCertificateCalls() {
    std::filesystem::create_directory(folder_.path("lists"));
    folder_.write("cert.pem", server_identity_.certificate());
    folder_.write("key.pem", server_identity_.key());
    ::chmod(folder_.path("key.pem").c_str(), 0600);
    revoke({});
    folder_.write("lists/second.crl", second_.revocation_list({}, std::time(nullptr) + kDay));
    ServiceOptions options;
    options.login = GetParam();
    options.tls = {.cert_file = folder_.path("cert.pem"),
                   .key_file = folder_.path("key.pem"),
                   .client_ca_file = folder_.write("ca.pem", authority_.certificate() + second_.certificate()),
                   .crl_dir = folder_.path("lists")};
    for (const char* name : {"alice", "bob"}) {
      database_.change_access(
          nullptr,
          [name](const AccessTable&) -> Result<AccessChange> {
            return AccessChange{.kind = AccessChange::Kind::put_user,
                                .role = {},
                                .user = {.name = name, .roles = {}, .certificates = {name}},
                                .token = {}};
          },
          [](const Result<BatchNumber>& batch) { EXPECT_TRUE(batch.ok()); });
    }
    service_ = std::make_unique<KiloKvService>(options, kInfo);
    auto started = GrpcServer::start("127.0.0.1:0", service_.get(), options);
    EXPECT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
    server_->accept();
    service_->serve(&database_);
  }

  void revoke(const std::vector<const Identity*>& revoked) {
    folder_.write("lists/first.crl", authority_.revocation_list(revoked, std::time(nullptr) + kDay));
  }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> connect(const Identity& client) const {
    const auto credentials = grpc::SslCredentials({.pem_root_certs = authority_.certificate(),
                                                   .pem_private_key = client.key(),
                                                   .pem_cert_chain = client.certificate()});
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride("localhost");
    return grpc::CreateCustomChannel(server_->endpoint(), credentials, arguments);
  }

  // `stop`: makes the certificate of the calls invalid. All of them end soon, and so does their connection, while those
  // of others go on.
  void expect_ended(const Identity& client, const Identity& other, const std::string& problem,
                    const std::function<void()>& stop) {
    Calls others(connect(other), &database_), ended(connect(client), &database_);
    ASSERT_EQ(ended.channel().GetState(false), GRPC_CHANNEL_READY);
    stop();
    const auto began = std::chrono::steady_clock::now();
    std::vector<grpc::Status> statuses = ended.finish();
    EXPECT_LT(std::chrono::steady_clock::now() - began, kSoon);
    EXPECT_TRUE(ended.channel().WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now() + kSoon));
    EXPECT_EQ(database_.abandoned(), 3u) << "what has no session ends with its call, unless it is detached";
    const auto found = ended.execute_context().GetServerTrailingMetadata().find("kilokv-error-bin");
    ASSERT_NE(found, ended.execute_context().GetServerTrailingMetadata().end());
    v1::ErrorDetail detail;
    EXPECT_TRUE(detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size())));
    EXPECT_FALSE(detail.not_run()) << "it may have run";
    statuses.push_back(ended.call_again());
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      EXPECT_EQ(statuses[i].error_code(), grpc::StatusCode::UNAUTHENTICATED) << i << statuses[i].error_message();
      EXPECT_EQ(statuses[i].error_message(), statuses.back().error_message()) << "the reason of a new call";
      EXPECT_NE(statuses[i].error_message().find(problem), std::string::npos) << i << statuses[i].error_message();
    }
    EXPECT_EQ(others.channel().GetState(false), GRPC_CHANNEL_READY);
    others.answer();
    for (const grpc::Status& status : others.finish()) EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(others.call_again().ok());
    EXPECT_EQ(database_.abandoned(), 3u);
  }

  TestFolder folder_;
  Identity authority_{{.name = "CA", .is_authority = true}}, second_{{.name = "Second", .is_authority = true}};
  Identity server_identity_{{.name = "server", .alternative_names = "DNS:localhost"}, &authority_};
  Identity alice_{{.name = "alice"}, &authority_}, bob_{{.name = "bob"}, &authority_};
  test::FakeDatabase database_;
  std::unique_ptr<KiloKvService> service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_P(ClientCertificateCalls, EndWhenItIsRevoked) {
  expect_ended(bob_, alice_, R"(it was revoked by "CN=CA")", [this] { revoke({&bob_}); });
}

TEST_P(ClientCertificateCalls, EndWhenItsAuthorityIsTakenAway) {
  const Identity bob({.name = "bob"}, &second_);
  expect_ended(bob, alice_, R"(its issuer "CN=Second" is not one of the authorities)",
               [this] { folder_.write("ca.pem", authority_.certificate()); });
}

TEST_P(ClientCertificateCalls, EndWhenItExpires) {
  const std::int64_t end = std::time(nullptr) + 4;
  const Identity bob({.name = "bob", .until = end}, &authority_);
  expect_ended(bob, alice_, "it expired on", [end] {
    while (std::time(nullptr) < end) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
}

// Its last call has ended before, so nothing of it waits for the server.
TEST_P(ClientCertificateCalls, AConnectionWithoutCallsEndsToo) {
  const auto quiet = connect(bob_), other = connect(alice_);
  for (const auto& channel : {quiet, other}) {
    grpc::ClientContext context;
    v1::OpenSessionResponse response;
    EXPECT_TRUE(v1::KiloKV::NewStub(channel)->OpenSession(&context, {}, &response).ok());
  }
  revoke({&bob_});
  EXPECT_TRUE(quiet->WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now() + kSoon));
  EXPECT_EQ(other->GetState(false), GRPC_CHANNEL_READY);
}

INSTANTIATE_TEST_SUITE_P(Logins, ClientCertificateCalls, testing::Bool());

}  // namespace
}  // namespace kilokv::server
