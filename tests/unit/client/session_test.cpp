// Sessions of the client: answers, lost streams, leases, callbacks, and the end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

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

TEST_F(SessionTest, TheServerIsAskedForTheLease) {
  SessionOptions options;
  options.lease_us = 7'000'000;
  open(options);
  EXPECT_EQ(server_.lease_us_asked, 7'000'000u);
}

// The token of a client does not count any more. Asking again soon does not help, and may look like a flood.
TEST_F(SessionTest, ALeaseIsNotRenewedMoreOftenWithoutALogin) {
  server_.lease_us = 1'500'000;
  std::atomic<int> renewals = 0;
  server_.on_keep_alive = [&]() -> grpc::Status {
    ++renewals;
    return {grpc::StatusCode::UNAUTHENTICATED, "the token has expired"};
  };
  open();
  std::this_thread::sleep_for(std::chrono::milliseconds(2'600));
  EXPECT_GE(renewals, 1);
  EXPECT_LE(renewals, 5) << "one each half second";
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
