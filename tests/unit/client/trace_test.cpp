// The trace that a call names, on its way to the server, and the level of the server's log.
#include <mutex>
#include <string>
#include <vector>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

const std::string kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class TraceTest : public SessionTest {
 protected:
  static CallOptions with(const std::string& traceparent) {
    CallOptions options;
    options.traceparent = traceparent;
    return options;
  }
};

TEST_F(TraceTest, ARequestOfASessionHasItInItsMessage) {
  open();
  ASSERT_TRUE(session_->execute(adds(1), with(kTrace)));
  ASSERT_TRUE(session_->execute(adds(1)));
  const std::vector<v1::SessionRequest> seen = server_.seen();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].traceparent(), kTrace);
  EXPECT_EQ(seen[1].traceparent(), "");
}

TEST_F(TraceTest, ARetryHasItToo) {
  open();
  int sendings = 0;
  server_.on_request = [&](const v1::SessionRequest& request,
                           const FakeServer::Write& write) -> std::optional<grpc::Status> {
    if (++sendings == 1) {
      write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 1000));
      return std::nullopt;
    }
    return server_.answer(request, write);
  };
  ASSERT_TRUE(session_->execute(adds(1), with(kTrace)));
  const std::vector<v1::SessionRequest> seen = server_.seen();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].traceparent(), kTrace);
}

TEST_F(TraceTest, ACallHasItInItsMetadata) {
  open();
  std::vector<std::string> seen;
  std::mutex mutex;
  server_.on_execute = [&](const v1::ExecuteRequest&, v1::ExecuteResponse* response, grpc::ServerContext* context) {
    const auto found = context->client_metadata().find("traceparent");
    const std::lock_guard lock(mutex);
    seen.emplace_back(found == context->client_metadata().end()
                          ? std::string()
                          : std::string(found->second.data(), found->second.size()));
    response->mutable_result()->set_outcome(v1::OUTCOME_COMMITTED);
    response->mutable_result()->set_batch(1);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(client_->execute(adds(1), with(kTrace)));
  ASSERT_TRUE(client_->execute(adds(1)));
  ASSERT_TRUE(session_->execute(many_reads(), with(kTrace)));  // with an upload
  EXPECT_EQ(seen, (std::vector<std::string>{kTrace, "", kTrace}));
}

// gRPC ends the program at some of these.
TEST_F(TraceTest, AMalformedOneIsRefusedBeforeAnythingIsSent) {
  open();
  const std::vector<std::string> malformed = {"x",
                                              "a\nb",
                                              "\xff" + kTrace.substr(1),
                                              kTrace + "-00",
                                              kTrace + " ",
                                              "ff" + kTrace.substr(2),
                                              "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                              "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                              "cc" + kTrace.substr(2) + "-\n",
                                              "cc" + kTrace.substr(2) + '-' + std::string(300, 'x'),
                                              "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"};
  for (const std::string& wrong : malformed) {
    SCOPED_TRACE(wrong);
    for (const Error& error :
         {session_->execute(adds(1), with(wrong)).error(), client_->execute(adds(1), with(wrong)).error(),
          client_->execute(adds(2), with(wrong)).error(), client_->get({"a"}, with(wrong)).error(),
          session_->execute(many_reads(), with(wrong)).error()}) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error.message;
      EXPECT_NE(error.message.find("traceparent is malformed"), std::string::npos) << error.message;
    }
  }
  EXPECT_TRUE(server_.seen().empty());
  ASSERT_TRUE(client_->execute(adds(1), with("cc" + kTrace.substr(2) + "-later"))) << "a later version of the standard";
}

TEST_F(TraceTest, TheLevelOfTheLogIsToldAndChanged) {
  open();
  EXPECT_EQ(client_->log_level().value(), "info");
  EXPECT_EQ(client_->set_log_level("debug").value(), "info");
  EXPECT_EQ(client_->log_level().value(), "debug");
  EXPECT_EQ(client_->set_log_level("").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(client_->set_log_level("loud").error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace kilokv::client
