// Refusals in a session: when a request is sent again, and what the client says about whether it ran.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

TEST_F(SessionTest, WaitsAsLongAsTheServerAsks) {
  std::atomic<int> left = 2;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (left.fetch_sub(1) <= 0) return server_.answer(request, write);
    write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 60'000));
    return std::nullopt;
  };
  open();
  const auto result = session_->execute(adds(1), within(10'000'000));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->attempts, 3u);
  EXPECT_GE(result->return_us - result->invoke_us, 120'000);
  EXPECT_EQ(result->refusals.count, 2u);
  EXPECT_EQ(result->refusals.early, 0u);
  EXPECT_EQ(result->refusals.asked_us, 120'000u);
  EXPECT_GE(result->refusals.waited_us, result->refusals.asked_us);
  EXPECT_LE(static_cast<std::int64_t>(result->refusals.waited_us), result->return_us - result->invoke_us);
  EXPECT_EQ(session_->execute(adds(1))->refusals.count, 0u) << "each request has its own";
}

// The second delay ends with the request, so it is not one that was waited for.
TEST_F(SessionTest, TheLastDelayOfARequestThatIsGivenUpDoesNotCount) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 100'000));
    return std::nullopt;
  };
  open();
  std::promise<Refusals> ended;
  session_->execute_async(
      adds(1),
      [&](const Progress& progress) {
        if (progress.done) ended.set_value(progress.refusals);
      },
      within(199'000));
  const Refusals refusals = ended.get_future().get();
  EXPECT_LE(refusals.count, 2u);
  EXPECT_LE(refusals.asked_us, 100'000u);
  EXPECT_GE(refusals.waited_us, refusals.asked_us);
}

TEST_F(SessionTest, ARefusalThatLastsIsToldAtTheDeadline) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 60'000'000));
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1), within(200'000)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_EQ(error.setting, "--some-setting");
  EXPECT_NE(error.message.find("attempts"), std::string::npos);
}

TEST_F(SessionTest, ARefusalAfterALossDoesNotClaimThatNothingRan) {
  std::atomic<int> attempts = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (++attempts == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost");
    write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 60'000'000));
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1), within(500'000)).error();
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(error.code, ErrorCode::deadline_exceeded) << error.message;
  EXPECT_FALSE(never_ran(error));
}

// Such as a full table: waiting does not help.
TEST_F(SessionTest, ARefusalWithoutADelayIsNotSentAgain) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() != 1) return server_.answer(request, write);
    write(refusal(1, grpc::StatusCode::RESOURCE_EXHAUSTED, 0));
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1), within(60'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_EQ(error.setting, "--some-setting");
  EXPECT_TRUE(never_ran(error));
  EXPECT_EQ(session_->attempts(1), 1u);
  expect_acknowledged(2);  // the server needs to keep nothing for number 1
}

// The server has lost the first answer, and then its table is full.
TEST_F(SessionTest, ARefusalWithoutADelayAfterALossDoesNotClaimThatNothingRan) {
  for (const auto code : {grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::INVALID_ARGUMENT,
                          grpc::StatusCode::FAILED_PRECONDITION}) {
    std::atomic<int> attempts = 0;
    std::atomic<bool> refuse = true;
    server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
      if (++attempts == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost");
      if (!refuse) return server_.answer(request, write);
      write(refusal(request.number(), code, 0));
      return std::nullopt;
    };
    open();
    const Error error = session_->execute(adds(1), within(60'000'000)).error();
    EXPECT_EQ(attempts, 2);
    EXPECT_FALSE(never_ran(error)) << to_string(error.code) << ": " << error.message;
    EXPECT_NE(error.message.find("refused"), std::string::npos) << error.message;
    refuse = false;
    EXPECT_TRUE(session_->execute(adds(1)));
    EXPECT_EQ(server_.seen().back().acknowledged_through(), 0u) << "the number is kept";
    EXPECT_TRUE(session_->resume(1, adds(1))) << "its fate can be asked for";
    expect_acknowledged(2);
    session_.reset();  // the server of the test knows one session at a time
  }
}

TEST_F(SessionTest, AResumedRequestThatIsRefusedMayHaveRunBefore) {
  std::atomic<bool> mute = true;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (mute) return std::nullopt;
    write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 0));
    return std::nullopt;
  };
  open();
  EXPECT_EQ(session_->execute(adds(1), within(50'000)).error().code, ErrorCode::deadline_exceeded);
  mute = false;
  const Error error = session_->resume(1, adds(1), within(60'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_FALSE(never_ran(error));
}

TEST_F(SessionTest, ARefusedResumeOfARequestInFlightDoesNotAcknowledgeIt) {
  std::promise<void> arrived;
  std::atomic<bool> mute = true;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() != 1) return server_.answer(request, write);
    if (mute.exchange(false)) arrived.set_value();
    return std::nullopt;
  };
  open();
  std::promise<void> ended;
  session_->execute_async(adds(1), [&](const Progress& progress) {
    if (progress.done) ended.set_value();
  });
  arrived.get_future().wait();
  EXPECT_EQ(session_->resume(1, adds(1)).error().code, ErrorCode::failed_precondition);
  EXPECT_TRUE(session_->execute(adds(1)));
  EXPECT_EQ(server_.seen().back().acknowledged_through(), 0u);
  session_.reset();
  ended.get_future().wait();
}

// One request runs on the server when a proxy ends the stream.
TEST_F(SessionTest, TheEndOfAStreamDoesNotSayThatItsRequestsDidNotRun) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto&) -> std::optional<grpc::Status> {
    server_.apply(request);
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "the token is over");
  };
  open();
  const Error error = session_->execute(adds(1), within(60'000'000)).error();
  EXPECT_FALSE(never_ran(error)) << error.message;
  EXPECT_EQ(error.code, ErrorCode::permission_denied) << error.message;
}

TEST_F(SessionTest, GrpcsOwnRefusalOfAStreamIsNotSentAgain) {
  server_.on_request = [&](const v1::SessionRequest&, const auto&) -> std::optional<grpc::Status> {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "memory");  // no ErrorDetail
  };
  open();
  const Error error = session_->execute(adds(1), within(60'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_FALSE(never_ran(error));
  EXPECT_EQ(server_.seen().size(), 1u);
}

// Such a stream is lost without a word of the service.
TEST_F(SessionTest, AStreamThatGrpcResetsForItsMemoryIsOpenedAgain) {
  std::atomic<int> attempts = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (++attempts > 1) return server_.answer(request, write);
    server_.apply(request);
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11");
  };
  open();
  const auto result = session_->execute(adds(1), within(60'000'000));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->attempts, 2u);
  EXPECT_EQ(server_.times_applied(1), 1u);
}

// The server says of each sending whether it ran. The client must say it of the request.
TEST_F(SessionTest, ARefusalThatEndsARequestAfterALossDoesNotClaimThatNothingRan) {
  for (const auto code : {grpc::StatusCode::FAILED_PRECONDITION, grpc::StatusCode::INVALID_ARGUMENT,
                          grpc::StatusCode::PERMISSION_DENIED}) {
    std::atomic<int> attempts = 0;
    server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
      if (++attempts == 1) {
        server_.apply(request);
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer is lost");
      }
      write(refusal(request.number(), code, 0));
      return std::nullopt;
    };
    open();
    const Error error = session_->execute(adds(1), within(10'000'000)).error();
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(error.code, error_code_of(code)) << error.message;
    EXPECT_FALSE(error.not_run);
    EXPECT_TRUE(error.may_have_run);
    EXPECT_FALSE(never_ran(error));
    EXPECT_EQ(error.request, 1u);
    EXPECT_EQ(error.attempts, 2u);
    EXPECT_NE(error.message.find("may have run"), std::string::npos) << error.message;
    server_.on_request = nullptr;
    EXPECT_TRUE(session_->resume(1, adds(1), within(10'000'000))) << "its results can still be had";
    session_.reset();  // the server of the test knows one session at a time
  }
}

TEST_F(SessionTest, ARefusalOfEverySendingStillClaimsThatNothingRan) {
  std::atomic<int> attempts = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    const bool full = ++attempts < 3;
    write(refusal(request.number(), full ? grpc::StatusCode::RESOURCE_EXHAUSTED : grpc::StatusCode::FAILED_PRECONDITION,
                  full ? 1'000 : 0));
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1), within(10'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::failed_precondition) << error.message;
  EXPECT_TRUE(error.not_run);
  EXPECT_TRUE(never_ran(error));
  EXPECT_EQ(error.attempts, 3u);
}

// The first sending is refused. The second one is on the wire, on a new stream without an answer, at the deadline.
TEST_F(SessionTest, ARefusalOfAnEarlierSendingSaysNothingAboutTheOneOnTheWire) {
  std::atomic<int> attempts = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (++attempts == 1) {
      write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 100'000));
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream breaks");
    }
    server_.apply(request);
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1), within(1'000'000)).error();
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(server_.times_applied(1), 1u);
  EXPECT_EQ(error.code, ErrorCode::deadline_exceeded) << error.message;
  EXPECT_FALSE(never_ran(error));
}

TEST_F(SessionTest, AResumedRequestMayHaveRunAndKeepsItsAttempts) {
  std::atomic<int> attempts = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (++attempts == 1) {
      server_.apply(request);  // and no answer
    } else {
      write(refusal(request.number(), grpc::StatusCode::RESOURCE_EXHAUSTED, 60'000'000));
    }
    return std::nullopt;
  };
  open();
  const Batch batch = adds(1);
  EXPECT_EQ(session_->execute(batch, within(50'000)).error().code, ErrorCode::deadline_exceeded);
  const Error error = session_->resume(1, batch, within(300'000)).error();
  EXPECT_EQ(attempts, 2);
  EXPECT_FALSE(never_ran(error)) << error.message;
  EXPECT_EQ(error.attempts, 2u);
  server_.on_request = nullptr;
  const auto result = session_->resume(1, batch, within(10'000'000));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->attempts, 3u);
}

// Another number would apply it twice.
TEST_F(SessionTest, ARequestThatIsTooLargeAfterALossIsNotSentUnderAnotherNumber) {
  std::atomic<int> attempts = 0, commits = 0;
  server_.on_execute = [&](const auto&, auto*, auto*) {
    ++commits;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not expected");
  };
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (++attempts == 1) {
      server_.apply(request);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer is lost");
    }
    v1::SessionResponse response = refusal(request.number(), grpc::StatusCode::INVALID_ARGUMENT, 0);
    response.mutable_error()->mutable_detail()->set_setting("--guards-max");
    write(response);
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(one_read(), within(10'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error.message;
  EXPECT_FALSE(never_ran(error));
  EXPECT_EQ(commits, 0);
}

// A commit with uploaded keys: sent once and lost, then refused, and at last for longer than the deadline.
TEST_F(SessionTest, ACommitWithAnUploadDoesNotClaimThatNothingRanAfterALoss) {
  for (const auto code : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::FAILED_PRECONDITION}) {
    std::atomic<int> commits = 0;
    server_.on_execute = [&](const auto&, auto*, grpc::ServerContext* context) {
      if (++commits == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer is lost");
      v1::ErrorDetail detail;
      detail.set_not_run(true);
      if (commits >= 4) detail.set_retry_after_us(60'000'000);
      return FakeServer::with_detail(code, "refused", detail, context);
    };
    open();
    const Error error = session_->execute(many_reads(), within(30'000'000)).error();
    EXPECT_EQ(commits, 4);
    EXPECT_EQ(error.code, error_code_of(code)) << error.message;
    EXPECT_FALSE(error.not_run) << error.message;
    EXPECT_TRUE(error.may_have_run);
    EXPECT_FALSE(never_ran(error));
    EXPECT_EQ(error.request, 1u);
    EXPECT_EQ(error.attempts, static_cast<std::uint32_t>(commits));
    const Error again = session_->resume(1, many_reads(), within(30'000'000)).error();
    EXPECT_FALSE(never_ran(again)) << again.message;
    EXPECT_EQ(again.attempts, static_cast<std::uint32_t>(commits));
  }
}

}  // namespace
}  // namespace kilokv::client
