#include "server/core/access/access_check.hpp"

#include <gtest/gtest.h>

#include <functional>
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

TEST(AccessCheckTest, RefusalsNameTheKey) {
  using Build = std::function<void(engine::ColumnsBuilder&)>;
  using engine::GuardKind, engine::OpKind;
  const Rights rights{.read = KeySet({keys_with_prefix("r/")}), .write = KeySet({keys_with_prefix("w/")})};
  const auto refusal = [&](const Build& build) {
    engine::TransactionColumns columns;
    engine::ColumnsBuilder builder(&columns, {});
    builder.begin();
    build(builder);
    builder.end();
    return check_rights(columns, 0, 1, rights, "alice", [](std::uint32_t t) { return t; }).message();
  };
  const auto expect = [&](const Build& build, const std::string& text) {
    EXPECT_EQ(refusal(build).substr(0, text.size() + 1), text + ";");
  };
  expect([](auto& b) { b.op(OpKind::put, b.key("bonus")); },
         "transactions[0].then[0]: user \"alice\" has no write right to the key \"bonus\"");
  expect([](auto& b) { b.op(OpKind::get, b.key("r/1")), b.op(OpKind::get, b.key("w/1")); },
         "transactions[0].then[1]: user \"alice\" has no read right to the key \"w/1\"");
  expect([](auto& b) { b.range_op(OpKind::range_get, "q", "s", 1); },
         "transactions[0].then[0]: user \"alice\" has no read right to all keys of its range");
  expect([](auto& b) { b.range_op(OpKind::range_get_reverse, "q", "s", 1); },
         "transactions[0].then[0]: user \"alice\" has no read right to all keys of its range");
  expect([](auto& b) { b.guard(GuardKind::greater_equal, engine::OnFalse::fail, b.key("g"), 0, b.key("r/1")); },
         "transactions[0].guards[0]: user \"alice\" has no read right to the key \"g\"");
  expect([](auto& b) { b.guard(GuardKind::time_after, engine::OnFalse::fail, b.key("t"), 0); },
         "transactions[0].guards[0]: user \"alice\" has no read right to the key \"t\"");
  expect([](auto& b) { b.guard(GuardKind::greater_equal, engine::OnFalse::fail, b.key("r/1"), 0, b.key("other")); },
         "transactions[0].guards[0]: user \"alice\" has no read right to the key \"other\"");
  EXPECT_EQ(refusal([](auto& b) { b.guard(GuardKind::time_after, engine::OnFalse::fail, engine::kNone, 7); }), "");
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
