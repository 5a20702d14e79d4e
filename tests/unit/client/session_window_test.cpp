// How a session sends fewer requests at a time to a server that has too much to do (send_window.hpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

using namespace std::chrono_literals;

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 20'000 && !holds(); ++i) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(holds());
}

// A server that holds the first three requests, treats the fourth as a test says, and answers all others unless the
// test says otherwise. A stream has one writer at a time: its own thread, or the one that calls a function of this.
class HoldsThree {
 public:
  // Returns whether it has dealt with the request.
  using Treat = std::function<bool(int arrival, const v1::SessionRequest& request, const FakeServer::Write& write)>;

  std::optional<grpc::Status> take(FakeServer* server, const v1::SessionRequest& request,
                                   const FakeServer::Write& write) {
    const std::lock_guard lock(writing_);
    const int arrival = ++seen;
    write_ = write;
    if (arrival < 4) {
      held_.push_back(request);
    } else if (!treat(arrival, request, write)) {
      server->answer(request, write);
    }
    return std::nullopt;
  }
  void answer_held(FakeServer* server) {
    const std::lock_guard lock(writing_);
    for (const auto& request : held_) server->answer(request, write_);
    held_.clear();
  }
  void answer(FakeServer* server, const v1::SessionRequest& request) {
    const std::lock_guard lock(writing_);
    server->answer(request, write_);
  }
  void write(const v1::SessionResponse& response) {
    const std::lock_guard lock(writing_);
    write_(response);
  }
  void wait_for(int arrivals) const {
    wait_until([&] { return seen >= arrivals; });
  }

  std::atomic<int> seen = 0;
  Treat treat;  // a test sets it before it sends something

 private:
  std::mutex writing_;
  std::vector<v1::SessionRequest> held_;
  FakeServer::Write write_;
};

class WindowTest : public SessionTest {
 protected:
  void SetUp() override {
    refuse_the_fourth([](std::uint64_t number) { return refusal_for_load(number, 10'000); });
    server_.on_request = [this](const v1::SessionRequest& request, const auto& write) {
      return three_.take(&server_, request, write);
    };
    open();
  }
  void TearDown() override {  // the server of the base uses members of this
    session_.reset();
    client_.reset();
    server_.stop();
  }
  void refuse_the_fourth(const std::function<v1::SessionResponse(std::uint64_t)>& refusal) {
    three_.treat = [refusal](int arrival, const v1::SessionRequest& request, const FakeServer::Write& write) {
      if (arrival == 4) write(refusal(request.number()));
      return arrival == 4;
    };
  }
  void send(int count, const Batch& batch, const CallOptions& options = {}) {
    for (int i = 0; i < count; ++i) {
      auto end = std::make_shared<std::promise<Error>>();
      ends_.push_back(end->get_future());
      session_->execute_async(
          batch,
          [end](const Progress& progress) {
            if (progress.done) end->set_value(progress.error);
          },
          options);
    }
  }
  // Sends the first four, and waits until the delay of the fourth is over. On a slow machine the refusal takes a while.
  void begin_with(const Batch& batch) {
    send(3, batch);
    three_.wait_for(3);
    send(1, adds(1));
    three_.wait_for(4);
    std::this_thread::sleep_for(1s);
  }
  Error end_of(std::size_t request) {
    if (ends_[request].wait_for(20s) == std::future_status::ready) return ends_[request].get();
    Error error;
    error.code = ErrorCode::unknown;
    error.message = "the request has not ended";
    return error;
  }
  void expect_ends(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Error error = end_of(i);
      ASSERT_FALSE(error) << i << ": " << error.message;
      EXPECT_EQ(server_.times_applied(i + 1), 1u);
    }
  }
  // Others are sent and answered while the server holds the first three, and after it has refused the fourth.
  void expect_open_with(const Batch& batch) {
    begin_with(batch);
    send(10, adds(1));
    expect_ends(3, 14);
    three_.answer_held(&server_);
    expect_ends(0, 3);
  }
  static Batch wait() {
    Batch wait;
    wait.begin({.wait_timeout_us = 60'000'000});
    wait.guard_exists(wait.key("a"), OnFalse::wait);
    wait.add(wait.key("b"), 1);
    wait.end();
    return wait;
  }
  std::vector<std::uint64_t> numbers_seen() {
    std::vector<std::uint64_t> numbers;
    for (const auto& request : server_.seen()) numbers.push_back(request.number());
    return numbers;
  }
  std::size_t times_seen(std::uint64_t number) {
    const auto numbers = numbers_seen();
    return static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), number));
  }

  HoldsThree three_;
  std::vector<std::future<Error>> ends_;
};

TEST_F(WindowTest, AfterARefusalTheOthersStayInTheClient) {
  begin_with(adds(1));
  send(10, adds(1));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(three_.seen, 4) << "the server has three, so there is no room for a fourth";
  three_.answer_held(&server_);
  expect_ends(0, 14);
  EXPECT_EQ(three_.seen, 15) << "14 requests, one of them twice";
  const std::vector<std::uint64_t> expected = {1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  EXPECT_EQ(numbers_seen(), expected) << "the one that was refused goes first";
}

TEST_F(WindowTest, ARefusalForAnotherReasonIsAboutItsRequestOnly) {
  refuse_the_fourth([](std::uint64_t number) {
    v1::SessionResponse full = refusal(number, grpc::StatusCode::RESOURCE_EXHAUSTED, 10'000);
    full.mutable_error()->mutable_detail()->set_reason(v1::ERROR_REASON_DISK_FULL);
    return full;
  });
  expect_open_with(adds(1));
}

TEST_F(WindowTest, ARefusalOfAServerThatEndsDoesNotClose) {
  refuse_the_fourth([](std::uint64_t number) { return refusal(number, grpc::StatusCode::UNAVAILABLE, 10'000); });
  expect_open_with(adds(1));
}

TEST_F(WindowTest, WhatWasOnALostStreamTakesNoPlace) {
  begin_with(adds(1));
  server_.stop();
  server_.start();
  send(10, adds(1));
  expect_ends(0, 14);
}

TEST_F(WindowTest, RequestsThatMayWaitTakeNoPlace) { expect_open_with(wait()); }

TEST_F(WindowTest, RequestsThatMayWaitPassThoseThatHaveNoRoom) {
  begin_with(adds(1));
  send(1, adds(1));
  send(1, wait());
  expect_ends(5, 6);
  EXPECT_EQ(times_seen(5), 0u);
  three_.answer_held(&server_);
  expect_ends(0, 5);
}

TEST_F(WindowTest, ARequestThatWasNotSentTellsWhy) {
  begin_with(adds(1));
  const Error error = session_->execute(adds(1), within(200'000)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_EQ(error.reason, "QUEUE_FULL");
  EXPECT_EQ(error.setting, "--some-setting");
  EXPECT_TRUE(never_ran(error));
  EXPECT_EQ(error.attempts, 0u);
  EXPECT_NE(error.message.find("before request 5 was sent"), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("resume it"), std::string::npos) << error.message;
  EXPECT_EQ(session_->resume(5, adds(1)).error().code, ErrorCode::failed_precondition) << "there is nothing to learn";
  three_.answer_held(&server_);
  expect_ends(0, 4);
}

// Requests 4 and 5 are refused and have no room. The deadline of 5 passes, and it is resumed.
TEST_F(WindowTest, ARequestThatIsResumedWithoutRoomIsSentOnce) {
  v1::SessionRequest resumed;
  std::atomic<bool> resumed_arrived = false, refused_later = false;
  three_.treat = [&](int arrival, const v1::SessionRequest& request, const FakeServer::Write& write) {
    if (arrival == 4) return true;  // the window must not close before the fifth is sent
    if (arrival == 5) {
      write(refusal_for_load(4, 10'000));
      write(refusal_for_load(5, 10'000));
      return true;
    }
    if (request.number() == 6 && !refused_later.exchange(true)) {
      write(refusal_for_load(6, 10'000));
      return true;
    }
    if (request.number() == 5 && !resumed_arrived) {
      resumed = request;
      resumed_arrived = true;
      return true;
    }
    return request.number() == 5;
  };
  send(3, adds(1));
  three_.wait_for(3);
  send(1, adds(1));
  send(1, adds(1), within(1'500'000));
  const Error error = end_of(4);
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_EQ(error.attempts, 1u);
  auto again = std::async(std::launch::async, [&] { return session_->resume(5, adds(1)); });
  std::this_thread::sleep_for(100ms);
  three_.answer_held(&server_);
  wait_until([&] { return resumed_arrived.load(); });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(times_seen(5), 2u);
  three_.answer(&server_, resumed);
  EXPECT_TRUE(again.get());
  expect_ends(0, 4);
  EXPECT_TRUE(session_->execute(adds(1), within(10'000'000))) << "its place is free again";
}

// Request 4 gets no answer until its deadline, and is resumed while request 5 has closed the window. Then the refusal
// of its first sending arrives.
TEST_F(WindowTest, ALateRefusalDelaysTheResumedRequest) {
  three_.treat = [&](int arrival, const v1::SessionRequest& request, const FakeServer::Write& write) {
    if (arrival == 5) write(refusal_for_load(request.number(), 10'000));
    return arrival <= 5;
  };
  send(3, adds(1));
  three_.wait_for(3);
  EXPECT_EQ(session_->execute(adds(1), within(300'000)).error().code, ErrorCode::deadline_exceeded);
  send(1, adds(1));
  three_.wait_for(5);
  std::this_thread::sleep_for(1s);
  auto again = std::async(std::launch::async, [&] { return session_->resume(4, adds(1)); });
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(times_seen(4), 1u);
  three_.write(refusal_for_load(4, 2'000'000));
  std::this_thread::sleep_for(1s);
  three_.answer_held(&server_);
  const auto result = again.get();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->refusals.count, 1u);
  EXPECT_EQ(result->refusals.early, 0u);
  EXPECT_EQ(times_seen(4), 2u);
}

// Request 1 is given up while the session rests after its refusal. Then only the end of the rest lets others go.
TEST_F(WindowTest, ARestEndsAlthoughTheRefusedRequestIsGivenUp) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() != 1) return server_.answer(request, write);
    write(refusal_for_load(1, 1'500'000));
    return std::nullopt;
  };
  send(1, adds(1), within(1'000'000));
  EXPECT_EQ(end_of(0).code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(session_->execute(adds(1), within(10'000'000)));
}

// The listener of the request asks for it, before the session has noted that it has ended.
TEST_F(WindowTest, AnEndedRequestIsNotResumedFromItsOwnEnd) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    return server_.answer(request, write);
  };
  std::promise<std::thread> started;
  std::promise<Error> resumed;
  session_->execute_async(adds(1), [&](const Progress& progress) {
    if (!progress.done) return;
    std::thread other([&] { resumed.set_value(session_->resume(1, adds(1), within(5'000'000)).error()); });
    std::this_thread::sleep_for(500ms);
    started.set_value(std::move(other));
  });
  started.get_future().get().join();
  EXPECT_EQ(resumed.get_future().get().code, ErrorCode::failed_precondition);
}

// The stream ends with an error of two requests. While the first hears of it, the second is given up and resumed.
TEST_F(WindowTest, TheEndOfAStreamDoesNotEndWhatWasResumedMeanwhile) {
  std::atomic<bool> first_ended = false;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    const int arrival = ++three_.seen;
    if (arrival > 2) {  // the resumed one is in flight until the end of the stream has been dealt with
      wait_until([&] { return first_ended.load(); });
      std::this_thread::sleep_for(200ms);
      return server_.answer(request, write);
    }
    if (arrival == 1) return std::nullopt;
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "the token is over");
  };
  std::promise<void> given_up;
  std::promise<Error> first, second;
  session_->execute_async(adds(1), [&](const Progress& progress) {
    if (!progress.done) return;
    given_up.get_future().wait_for(20s);
    wait_until([&] { return three_.seen == 3; });  // the second is resumed
    first_ended = true;
    first.set_value(progress.error);
  });
  std::atomic<int> ends = 0;
  session_->execute_async(
      adds(1),
      [&](const Progress& progress) {
        if (!progress.done) return;
        ++ends;
        given_up.set_value();
        second.set_value(progress.error);
      },
      within(1'000'000));
  EXPECT_EQ(second.get_future().get().code, ErrorCode::deadline_exceeded);
  const auto resumed = session_->resume(2, adds(1), within(10'000'000));
  EXPECT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(first.get_future().get().code, ErrorCode::permission_denied);
  EXPECT_EQ(ends, 1);
}

// The requests come back one at a time, with a pause between them.
TEST_F(WindowTest, AServerThatRefusesEverythingGetsRest) {
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    ++three_.seen;
    write(refusal_for_load(request.number(), 300'000));
    return std::nullopt;
  };
  send(100, adds(1));
  std::this_thread::sleep_for(1s);
  const int before = three_.seen;
  std::this_thread::sleep_for(1'500ms);
  EXPECT_GE(three_.seen - before, 1);
  EXPECT_LE(three_.seen - before, 10);
}

}  // namespace
}  // namespace kilokv::client
