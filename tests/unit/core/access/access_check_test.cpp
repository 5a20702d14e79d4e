#include "server/core/access/access_check.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kilokv::server {
namespace {

// Programs read the violation, so that they need not read the text.
TEST(AccessCheckTest, RefusalsSayWhatWasNeededInFields) {
  const Status missing = right_missing("alice", "write", "transactions[3].then[1]");
  ASSERT_NE(missing.violation(), nullptr);
  EXPECT_EQ(missing.code(), StatusCode::permission_denied);
  EXPECT_EQ(missing.reason(), ErrorReason::right_missing);
  EXPECT_EQ(missing.violation()->field, "transactions[3].then[1]");
  EXPECT_EQ(missing.violation()->limit, "the write right");
  EXPECT_EQ(missing.violation()->actual, "user \"alice\" without it");
  const Login login{.user = "alice", .token = "t1", .certificate = {}, .expires_us = 5};
  for (const Status& status : {login_gone("alice"), login_expired(login)}) {
    ASSERT_NE(status.violation(), nullptr) << status.message();
    EXPECT_EQ(status.violation()->field, "login");
    EXPECT_FALSE(status.violation()->limit.empty() || status.violation()->actual.empty());
  }
}

TEST(AccessCheckTest, NamesAreOnOneLine) {
  const std::string name = "a\nb" + std::string(200, 'x');
  const Login login{.user = name, .token = name, .certificate = {}};
  for (const Status& status : {right_missing(name, "read", "range"), login_gone(name), login_expired(login)}) {
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_LT(status.message().size(), 250u);
  }
}

}  // namespace
}  // namespace kilokv::server
