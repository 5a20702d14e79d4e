// The lines about requests that are refused: the first of a kind, and then counts.
#include "server/service/refusal_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "server/core/access/access_check.hpp"
#include "tests/unit/service/log_lines.hpp"

namespace kilokv::server {
namespace {

const Status kFull =
    Status::exhausted(ErrorReason::queue_full, {"queue", "10", "11", "--queue-transactions-max"}, 1000);

class RefusalLogTest : public ::testing::Test {
 protected:
  const Client client_{"ipv4:127.0.0.1:7"};
  test::LogLines lines_;
  RefusalLog log_;
};

TEST_F(RefusalLogTest, TheFirstOfAKindIsToldAtOnce) {
  for (int i = 0; i < 100; ++i) log_.note(kFull, client_);
  EXPECT_EQ(lines_.take(),
            "warning kilokvd refused requests reason=QUEUE_FULL code=RESOURCE_EXHAUSTED times=1 "
            "last_client=\"ipv4:127.0.0.1:7\" error=\"" +
                kFull.message() + "\"\n");
  log_.note(Status(StatusCode::unavailable, ErrorReason::draining, "draining"), client_);
  const std::string other = lines_.take();
  EXPECT_TRUE(other.starts_with("info kilokvd refused requests reason=DRAINING code=UNAVAILABLE times=1 ")) << other;
}

TEST_F(RefusalLogTest, AtTheLevelDebugEachHasALine) {
  spdlog::default_logger()->set_level(spdlog::level::debug);
  for (int i = 0; i < 3; ++i) log_.note(kFull, client_);
  const std::string lines = lines_.take();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
  EXPECT_NE(lines.find("debug kilokvd refused a request reason=QUEUE_FULL"), std::string::npos) << lines;
}

TEST_F(RefusalLogTest, ErrorsOfTheServerAreErrors) {
  log_.note(Status(StatusCode::internal, "no \"random\" bytes"), client_);
  EXPECT_EQ(lines_.take(),
            "error kilokvd refused requests reason=FAILED code=INTERNAL times=1 last_client=\"ipv4:127.0.0.1:7\" "
            "error=\"no \\\"random\\\" bytes\"\n");
}

TEST_F(RefusalLogTest, WhatIsNoRefusalHasNoLine) {
  log_.note({}, client_);
  log_.note(Status(StatusCode::cancelled, "the client has gone away"), client_);
  // These have lines of their own.
  log_.note(Status(StatusCode::unauthenticated, ErrorReason::login_wrong, "x"), client_);
  log_.note(Status(StatusCode::unauthenticated, ErrorReason::login_missing, "x"), client_);
  EXPECT_EQ(lines_.take(), "");
}

TEST_F(RefusalLogTest, AKeyInAnErrorIsNotWritten) {
  log_.note(right_missing("alice", "read", "transactions[0].guards[0]", " to the key \"secret-key\""), client_);
  const std::string line = lines_.take();
  EXPECT_NE(line.find("reason=RIGHT_MISSING"), std::string::npos) << line;
  EXPECT_NE(line.find("field=\"transactions[0].guards[0]\""), std::string::npos) << line;
  EXPECT_EQ(line.find("secret-key"), std::string::npos) << line;
}

TEST_F(RefusalLogTest, AClientThatIsCutOffIsToldOf) {
  log_.note(Status::exhausted(ErrorReason::slow_reader, {"answers", "1", "2", "--answers-bytes-max"}, 1000), client_);
  EXPECT_TRUE(
      lines_.take().starts_with("warning kilokvd cut off clients that do not take their answers reason=SLOW_READER"));
  for (int i = 0; i < 5; ++i) log_.note_timeout(client_);
  const std::string line = lines_.take();
  EXPECT_TRUE(line.starts_with("warning kilokvd cut off calls whose clients did not take an answer")) << line;
  EXPECT_NE(line.find("times=1 last_client=\"ipv4:127.0.0.1:7\""), std::string::npos) << line;
}

}  // namespace
}  // namespace kilokv::server
