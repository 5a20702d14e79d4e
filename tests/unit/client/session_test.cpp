#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

#include "client/lib/src/error.hpp"
#include "tests/unit/client/fake_server.hpp"
#include "tests/unit/client/test_batch.hpp"

namespace kilokv::client {
namespace {

class SessionTest : public ::testing::Test {
 protected:
  void open(const SessionOptions& options = {}) {
    auto client = Client::connect(server_.client_options());
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
    auto session = client_->open_session(options);
    ASSERT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
  }

  static CallOptions within(std::uint64_t timeout_us, Encoding encoding = Encoding::columns) {
    CallOptions options;
    options.timeout_us = timeout_us;
    options.encoding = encoding;
    return options;
  }

  static ErrorCode error_code_of(grpc::StatusCode code) { return client::error_code(static_cast<std::uint32_t>(code)); }

  // A transaction that can be sent with an upload, and one that must be.
  static Batch one_read() { return reads(1); }
  static Batch many_reads() { return reads(2'000); }
  static Batch reads(int keys) {
    Batch batch;
    batch.begin();
    for (int i = 0; i < keys; ++i) batch.guard_version(batch.key("read" + std::to_string(i)), 0);
    batch.add(batch.key("sum"), 1);
    batch.end();
    return batch;
  }

  // Sends until a message acknowledges `number`: that happens soon after an answer, not with it.
  void expect_acknowledged(std::uint64_t number) {
    for (int i = 0; i < 1'000 && server_.seen().back().acknowledged_through() < number; ++i) {
      ASSERT_TRUE(session_->execute(adds(1)));
    }
    EXPECT_GE(server_.seen().back().acknowledged_through(), number);
  }

  static v1::SessionResponse refusal(std::uint64_t number, grpc::StatusCode code, std::uint64_t retry_after_us) {
    v1::SessionResponse response;
    response.set_number(number);
    response.set_last(true);
    response.mutable_error()->set_code(static_cast<std::uint32_t>(code));
    response.mutable_error()->set_message("refused");
    response.mutable_error()->mutable_detail()->set_retry_after_us(retry_after_us);
    response.mutable_error()->mutable_detail()->set_not_run(true);
    response.mutable_error()->mutable_detail()->set_setting("--some-setting");
    return response;
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, AnswersColumnsAndRows) {
  open();
  EXPECT_EQ(session_->id().size(), 32u);
  const auto columns = session_->execute(adds(3), within(5'000'000));
  ASSERT_TRUE(columns) << columns.error().message;
  EXPECT_EQ(columns->request, 1u);
  EXPECT_EQ(columns->attempts, 1u);
  EXPECT_LE(columns->invoke_us, columns->return_us);
  EXPECT_EQ(columns->results.at(2).version, 102u);
  const auto rows = session_->execute(adds(2), within(5'000'000, Encoding::rows));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->request, 2u);
  EXPECT_EQ(rows->results.at(1).version, 101u);
  EXPECT_TRUE(server_.seen()[1].has_rows());
}

TEST_F(SessionTest, ALostStreamIsOpenedAgainAndTheRequestAppliedOnce) {
  std::atomic<int> left = 3;
  server_.on_request = [&](const auto& request, const auto& write) -> std::optional<grpc::Status> {
    if (left.fetch_sub(1) <= 0) return server_.answer(request, write);
    if (left == 0) server_.apply(request);  // the third time it runs, but the answer is lost
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  open();
  const auto result = session_->execute(adds(2), within(10'000'000));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->attempts, 4u);
  EXPECT_EQ(session_->attempts(1), 4u);
  EXPECT_EQ(server_.times_applied(1), 1u);
  for (const auto& request : server_.seen()) EXPECT_EQ(request.number(), 1u);
}

TEST_F(SessionTest, PartsThatComeAgainAreReportedOnce) {
  std::atomic<int> attempt = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    v1::SessionResponse part;
    part.set_number(request.number());
    if (attempt++ == 0) {
      *part.mutable_columns() = FakeServer::committed(2, 1);
      part.mutable_columns()->add_index(1);
      part.mutable_columns()->add_index(3);
      write(part);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
    }
    *part.mutable_columns() = FakeServer::committed(4, 2);
    part.set_last(true);
    write(part);
    return std::nullopt;
  };
  open();
  std::multiset<std::uint32_t> reported;
  std::promise<void> done;
  session_->execute_async(adds(4), [&](const Progress& progress) {
    reported.insert(progress.indices.begin(), progress.indices.end());
    for (const std::uint32_t i : progress.indices) EXPECT_EQ(progress.results.at(i).batch, i % 2 == 1 ? 1u : 2u);
    if (progress.done) {
      EXPECT_FALSE(progress.error);
      done.set_value();
    }
  });
  done.get_future().wait();
  EXPECT_EQ(reported, (std::multiset<std::uint32_t>{0, 1, 2, 3}));
}

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

TEST_F(SessionTest, InvalidArgumentEndsTheRequestAlone) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() != 1) return server_.answer(request, write);
    write(refusal(1, grpc::StatusCode::INVALID_ARGUMENT, 0));
    return std::nullopt;
  };
  open();
  const Error error = session_->execute(adds(1)).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.setting, "--some-setting");
  expect_acknowledged(2);
}

TEST_F(SessionTest, RidesThroughARestartOfTheServer) {
  open();
  ASSERT_TRUE(session_->execute(adds(1)));
  server_.stop();
  std::promise<Error> ended;
  session_->execute_async(adds(5), [&](const Progress& progress) {
    if (progress.done) ended.set_value(progress.error);
  });
  server_.start();
  const Error error = ended.get_future().get();
  EXPECT_FALSE(error) << error.message;
  EXPECT_EQ(server_.times_applied(2), 1u);
}

TEST_F(SessionTest, WithoutAServerItSaysSoAtTheDeadline) {
  open();
  server_.stop();
  const Error error = session_->execute(adds(1), within(2'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::unavailable) << error.message;
  server_.start();
}

TEST_F(SessionTest, ADeadlineLeavesTheNumberToBeResumed) {
  std::atomic<bool> mute = true;
  server_.on_request = [&](const auto& request, const auto& write) -> std::optional<grpc::Status> {
    if (!mute || request.number() != 2) return server_.answer(request, write);
    server_.apply(request);
    return std::nullopt;
  };
  open();
  ASSERT_TRUE(session_->execute(adds(1)));
  const Batch batch = adds(3);
  const Error error = session_->execute(batch, within(50'000)).error();
  EXPECT_EQ(error.code, ErrorCode::deadline_exceeded) << error.message;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(session_->execute(adds(1)));
  EXPECT_EQ(server_.seen().back().acknowledged_through(), 1u) << "the open number holds it back";
  mute = false;
  const auto resumed = session_->resume(2, batch, within(5'000'000));
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->results.outcome(2), Outcome::committed);
  EXPECT_EQ(server_.times_applied(2), 1u);
  expect_acknowledged(52);
  EXPECT_EQ(session_->resume(2, batch).error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(session_->resume(9'999, batch).error().code, ErrorCode::failed_precondition);
}

TEST_F(SessionTest, AcknowledgesOnlyWhatHasReturned) {
  std::promise<void> in_callback, may_return, arrived;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() == 2) arrived.set_value();
    return server_.answer(request, write);
  };
  open();
  session_->execute_async(adds(1), [&](const Progress& progress) {
    if (!progress.done) return;
    in_callback.set_value();
    may_return.get_future().wait();
  });
  in_callback.get_future().wait();
  std::promise<void> second;
  session_->execute_async(adds(1), [&](const Progress&) { second.set_value(); });
  arrived.get_future().wait();
  may_return.set_value();
  second.get_future().wait();
  EXPECT_EQ(server_.seen().at(1).acknowledged_through(), 0u);
  expect_acknowledged(2);
}

TEST_F(SessionTest, AnExpiredSessionEndsClearly) {
  open();
  ASSERT_TRUE(session_->execute(adds(1)));
  server_.on_request = [](const auto&, const auto&) -> std::optional<grpc::Status> {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the session expired");
  };
  const Error error = session_->execute(adds(1), within(5'000'000)).error();
  EXPECT_EQ(error.code, ErrorCode::failed_precondition);
  EXPECT_NE(error.message.find("the session expired"), std::string::npos);
  const std::size_t before = server_.seen().size();
  EXPECT_EQ(session_->execute(adds(1), within(5'000'000)).error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(server_.seen().size(), before) << "it is not asked again";
  EXPECT_FALSE(never_ran(error)) << "it was sent";
  EXPECT_TRUE(never_ran(session_->execute(adds(1)).error())) << "it was not sent";
}

TEST_F(SessionTest, ALeaseThatCannotBeRenewedEndsTheSession) {
  server_.lease_us = 300'000;
  std::promise<void> asked;
  std::atomic<bool> once = false;
  server_.on_keep_alive = [&]() -> grpc::Status {
    if (!once.exchange(true)) asked.set_value();
    return {grpc::StatusCode::FAILED_PRECONDITION, "expired"};
  };
  open();
  asked.get_future().wait();
  Error error;  // it is refused as soon as the answer has arrived
  for (int i = 0; i < 10'000 && !error; ++i) error = session_->execute(adds(1)).error();
  EXPECT_EQ(error.code, ErrorCode::failed_precondition) << error.message;
}

TEST_F(SessionTest, WhatWasSentEndsWithTheStreamThatBreaksAfterTheLease) {
  server_.lease_us = 300'000;
  std::promise<void> sent, released;
  std::atomic<bool> refuse = false;
  server_.on_keep_alive = [&]() -> grpc::Status {
    return refuse ? grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "expired") : grpc::Status();
  };
  server_.on_request = [&](const auto&, const auto&) -> std::optional<grpc::Status> {
    sent.set_value();
    released.get_future().wait();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream breaks");
  };
  open();
  auto answer = std::async(std::launch::async, [&] { return session_->execute(adds(1), within(60'000'000)).error(); });
  sent.get_future().wait();
  refuse = true;
  Error error;  // until the client knows that the lease is lost
  for (int i = 0; i < 1'000 && error.code != ErrorCode::failed_precondition; ++i) {
    error = session_->execute(adds(1), within(20'000)).error();
  }
  EXPECT_EQ(error.code, ErrorCode::failed_precondition) << error.message;
  released.set_value();
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it waits for its deadline";
  error = answer.get();
  EXPECT_EQ(error.code, ErrorCode::failed_precondition);
  EXPECT_EQ(error.attempts, 1u);
  EXPECT_TRUE(error.may_have_run) << "it was on the wire";
}

// A channel that ends on a thread of gRPC takes that thread's queue away: the process crashed, about once in a hundred.
TEST_F(SessionTest, ClosingLeavesNothingOfTheChannelToGrpc) {
  server_.lease_us = 300'000;
  std::promise<void> asked, released;
  std::atomic<bool> once = false;
  server_.on_keep_alive = [&]() -> grpc::Status {
    if (!once.exchange(true)) {
      asked.set_value();
      released.get_future().wait();
    }
    return {};
  };
  open();
  asked.get_future().wait();
  const auto closed = std::async(std::launch::async, [&] {
    session_.reset();
    client_.reset();
  });
  const bool prompt = closed.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  released.set_value();
  server_.stop();
  EXPECT_TRUE(prompt) << "the renewal in flight is cancelled, not waited for";
}

TEST_F(SessionTest, ACallbackMaySendAtTheLimitOfRequestsInFlight) {
  SessionOptions options;
  options.requests_in_flight_max = 1;
  open(options);
  std::promise<void> done;
  std::atomic<int> left = 100;
  const Batch batch = adds(2);
  ProgressCallback next = [&](const Progress& progress) {
    if (!progress.done) return;
    EXPECT_EQ(session_->execute(batch).error().code, ErrorCode::failed_precondition) << "it must not wait here";
    if (--left == 0) {
      done.set_value();
    } else {
      session_->execute_async(batch, next);
    }
  };
  session_->execute_async(batch, next);
  done.get_future().wait();
  EXPECT_EQ(server_.times_applied(100), 1u);
}

TEST_F(SessionTest, MisuseIsReportedThroughTheCallback) {
  open();
  std::promise<Error> ended;
  session_->execute_async(Batch(), [&](const Progress& progress) {
    EXPECT_TRUE(progress.done);
    ended.set_value(progress.error);
  });
  EXPECT_EQ(ended.get_future().get().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(session_->execute(adds(1)));
  expect_acknowledged(1);
}

TEST_F(SessionTest, DestructionEndsWhatIsInFlight) {
  server_.on_request = [](const auto&, const auto&) -> std::optional<grpc::Status> { return std::nullopt; };
  open();
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    session_->execute_async(adds(1), [&](const Progress& progress) {
      if (progress.done && progress.error.code == ErrorCode::cancelled) ++cancelled;
    });
  }
  session_.reset();
  EXPECT_EQ(cancelled, 10);
}

// To close twice does no harm, so the server need not promise that nothing ran.
TEST_F(SessionTest, ACloseThatMeetsAFullServerIsSentAgain) {
  std::atomic<int> closes = 0;
  server_.on_close = [&](grpc::ServerContext* context) -> grpc::Status {
    if (++closes > 1) return {};
    v1::ErrorDetail detail;
    detail.set_retry_after_us(1'000);
    return FakeServer::with_detail(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail, context);
  };
  open();
  session_.reset();
  EXPECT_EQ(closes, 2);
}

TEST_F(SessionTest, AnAnswerThatMissesTransactionsIsAnError) {
  server_.on_request = [](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    v1::SessionResponse response;
    response.set_number(request.number());
    response.set_last(true);
    *response.mutable_columns() = FakeServer::committed(1);
    write(response);
    return std::nullopt;
  };
  open();
  EXPECT_EQ(session_->execute(adds(2)).error().code, ErrorCode::internal);
}

TEST_F(SessionTest, AMessageThatIsTooLargeForTheServerFailsAlone) {
  std::atomic<int> times = 0;
  std::promise<void> arrived;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() == 1 && ++times == 1) {
      arrived.set_value();
      return std::nullopt;  // still in flight when its stream breaks
    }
    return server_.answer(request, write);
  };
  open();
  std::promise<Error> small;
  session_->execute_async(adds(1), [&](const Progress& progress) { small.set_value(progress.error); });
  arrived.get_future().wait();
  Batch large;
  large.begin();
  large.put(large.key("k"), std::string_view(std::string(5 << 20, 'x')));
  large.end();
  const Error refused = session_->execute(large, within(10'000'000)).error();
  EXPECT_EQ(refused.code, ErrorCode::invalid_argument) << refused.message;
  EXPECT_EQ(refused.setting, "--message-bytes-max");
  EXPECT_EQ(refused.limit, "4194304 bytes (4 times the setting)");
  EXPECT_NE(refused.actual, "");
  const Error error = small.get_future().get();
  EXPECT_FALSE(error) << error.message;
  EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace kilokv::client
