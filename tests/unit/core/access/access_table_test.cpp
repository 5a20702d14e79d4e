#include "server/core/access/access_table.hpp"

#include <gtest/gtest.h>

#include <string>

#include "server/core/access/access_record.hpp"
#include "server/core/options.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;

AccessChange role(const std::string& name, bool admin = false) {
  return {.kind = Kind::put_role,
          .role = {.name = name, .read = {{"a", "m"}}, .write = {{"a", "b"}, {"x", ""}}, .admin = admin},
          .user = {},
          .token = {}};
}

AccessChange user(const std::string& name, std::vector<std::string> roles, std::vector<std::string> certificates = {}) {
  return {.kind = Kind::put_user,
          .role = {},
          .user = {.name = name, .roles = std::move(roles), .certificates = std::move(certificates)},
          .token = {}};
}

AccessChange token(const std::string& id, const std::string& of, TimeUs expires_us = 0) {
  AccessChange change{.kind = Kind::put_token, .role = {}, .user = {}, .token = {}};
  change.token = {.id = id, .user = of, .secret_hash = {}, .created_us = 5, .expires_us = expires_us};
  change.token.secret_hash.fill(7);
  return change;
}

AccessChange removal(Kind kind, const std::string& name) {
  AccessChange change{.kind = kind, .role = {}, .user = {}, .token = {}};
  change.role.name = change.user.name = change.token.id = name;
  return change;
}

Login with_token(const std::string& of, const std::string& id) { return {.user = of, .token = id, .certificate = {}}; }
Login with_certificate(const std::string& of, const std::string& name) {
  return {.user = of, .token = {}, .certificate = name};
}

class AccessTableTest : public testing::Test {
 protected:
  AccessTableTest() {
    for (const AccessChange& change : {role("teller"), role("boss", true), user("alice", {"teller"}, {"alice.example"}),
                                       user("bob", {"boss", "teller"}), token("t1", "alice"), token("t2", "bob")}) {
      make(change);
    }
  }
  void make(const AccessChange& change) {
    const Status status = table_.check(change, true);
    ASSERT_TRUE(status.ok()) << status.message();
    table_.apply(change);
  }
  StatusCode code_of(const AccessChange& change) const { return table_.check(change, true).code(); }

  AccessTable table_;
};

TEST_F(AccessTableTest, AUserHasTheRightsOfAllItsRoles) {
  const auto alice = table_.rights(with_token("alice", "t1"));
  ASSERT_NE(alice, nullptr);
  EXPECT_TRUE(alice->read.contains("c"));
  EXPECT_FALSE(alice->write.contains("c"));
  EXPECT_TRUE(alice->write.contains("z"));
  EXPECT_FALSE(alice->admin);
  EXPECT_TRUE(table_.rights(with_token("bob", "t2"))->admin);
  EXPECT_EQ(table_.rights(with_certificate("alice", "alice.example")), alice);
}

TEST_F(AccessTableTest, ALoginCountsWhileItsTokenAndItsUserAreThere) {
  EXPECT_EQ(table_.rights(with_token("alice", "t2")), nullptr);  // the token of another
  EXPECT_EQ(table_.rights(with_token("carol", "t1")), nullptr);
  EXPECT_EQ(table_.rights(with_certificate("bob", "alice.example")), nullptr);
  EXPECT_EQ(table_.rights(with_certificate("alice", "")), nullptr);
  make(removal(Kind::remove_token, "t1"));
  EXPECT_EQ(table_.rights(with_token("alice", "t1")), nullptr);
  EXPECT_NE(table_.rights(with_certificate("alice", "alice.example")), nullptr);
  make(user("alice", {"teller"}));  // without the certificate
  EXPECT_EQ(table_.rights(with_certificate("alice", "alice.example")), nullptr);
  make(token("t3", "alice"));
  make(removal(Kind::remove_user, "alice"));
  EXPECT_EQ(table_.rights(with_token("alice", "t3")), nullptr);
  EXPECT_FALSE(table_.tokens().contains("t3"));
  // A new user with this name does not get the old tokens back.
  make(user("alice", {"teller"}));
  EXPECT_EQ(table_.rights(with_token("alice", "t3")), nullptr);
}

TEST_F(AccessTableTest, TheRightsOfOthersStayTheSameObject) {
  const auto bob = table_.rights(with_token("bob", "t2")), alice = table_.rights(with_token("alice", "t1"));
  make(role("other"));
  make(user("alice", {"teller", "other"}));
  EXPECT_EQ(table_.rights(with_token("bob", "t2")), bob);
  EXPECT_NE(table_.rights(with_token("alice", "t1")), alice);
  make(removal(Kind::remove_role, "teller"));
  EXPECT_NE(table_.rights(with_token("bob", "t2")), bob);
  EXPECT_EQ(table_.users().at("bob").roles, std::vector<std::string>{"boss"});
}

TEST_F(AccessTableTest, WrongChangesAreRefused) {
  EXPECT_EQ(code_of(role("")), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(role("two words")), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(role(std::string(129, 'a'))), StatusCode::invalid_argument);
  AccessChange empty_range = role("teller");
  empty_range.role.read = {{"b", "b"}};
  EXPECT_EQ(code_of(empty_range), StatusCode::invalid_argument);
  AccessChange many = role("teller");
  many.role.write.assign(AccessTable::kRangesMax + 1, KeyRange{"a", "b"});
  EXPECT_EQ(code_of(many), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(user("dora", {"nobody"})), StatusCode::not_found);
  EXPECT_EQ(code_of(user("dora", {}, {"alice.example"})), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(user("dora", {}, {""})), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(token("t9", "dora")), StatusCode::not_found);
  for (const Kind kind : {Kind::remove_role, Kind::remove_user, Kind::remove_token}) {
    EXPECT_EQ(code_of(removal(kind, "nobody")), StatusCode::not_found);
  }
}

TEST_F(AccessTableTest, SomebodyKeepsTheAdminRight) {
  for (const AccessChange& change :
       {role("boss"), removal(Kind::remove_role, "boss"), removal(Kind::remove_user, "bob"),
        removal(Kind::remove_token, "t2"), user("bob", {"teller"}), token("t2", "bob", 99)}) {
    EXPECT_EQ(code_of(change), StatusCode::failed_precondition);
  }
  make(user("alice", {"boss"}, {"alice.example"}));
  make(removal(Kind::remove_user, "bob"));
}

TEST_F(AccessTableTest, FullTablesTakeNothingNew) {
  AccessTable full;
  for (std::size_t i = 0; i < AccessTable::kRolesMax; ++i) full.apply(role("r" + std::to_string(i)));
  EXPECT_EQ(full.check(role("one more"), true).code(), StatusCode::invalid_argument);  // its name
  EXPECT_EQ(full.check(role("more"), true).code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(full.check(role("r0"), true).ok());
}

TEST_F(AccessTableTest, ACertificateIsNoWayInIfTheServerAsksForNone) {
  make(user("alice", {"boss"}, {"alice.example"}));
  make(removal(Kind::remove_token, "t1"));
  EXPECT_TRUE(table_.check(removal(Kind::remove_user, "bob"), true).ok());
  EXPECT_EQ(table_.check(removal(Kind::remove_user, "bob"), false).code(), StatusCode::failed_precondition);
}

// Each user has a copy of the ranges of its roles. So many users of a role with long ranges take much memory.
TEST_F(AccessTableTest, TheSizeOfAllTogetherIsBounded) {
  AccessChange large = role("large");
  large.role.read.clear();
  for (char c = 'a'; c <= 'z'; ++c) large.role.read.push_back({std::string(1000, c), std::string(1000, c) + "~"});
  AccessTable table;
  table.apply(large);
  int users = 0;
  for (; users < 1000; ++users) {
    const AccessChange more = user("u" + std::to_string(users), {"large"});
    const Status status = table.check(more, true);
    if (!status.ok()) {
      EXPECT_EQ(status.reason(), ErrorReason::access_full);
      break;
    }
    table.apply(more);
  }
  EXPECT_GT(users, 60);
  EXPECT_LT(users, 100);
  EXPECT_LE(table.bytes(), kAccessBytesMax);
  // What makes it smaller is always allowed.
  EXPECT_TRUE(table.check(removal(Kind::remove_user, "u0"), true).ok());
  EXPECT_TRUE(table.check(user("u1", {}), true).ok());
}

TEST_F(AccessTableTest, ANewTokenTakesThePlaceOfExpiredOnes) {
  AccessTable table;
  table.apply(user("alice", {}));
  for (std::size_t i = 0; i < AccessTable::kTokensMax; ++i) {
    table.apply(token("t" + std::to_string(i), "alice", i < 3 ? 4 : 0));  // created at 5
  }
  const AccessTable full = [&] {
    AccessTable other = table;
    for (const char* id : {"t0", "t1", "t2"}) other.apply(token(id, "alice"));
    return other;
  }();
  EXPECT_EQ(full.check(token("new", "alice"), true).code(), StatusCode::resource_exhausted);
  ASSERT_TRUE(table.check(token("new", "alice"), true).ok());
  table.apply(token("new", "alice"));
  EXPECT_EQ(table.tokens().size(), AccessTable::kTokensMax - 2);
  EXPECT_FALSE(table.tokens().contains("t0"));
  EXPECT_TRUE(table.tokens().contains("new"));
}

TEST_F(AccessTableTest, TheTableSurvivesItsBytes) {
  const Result<AccessTable> again = decode_table(encode_table(table_));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(encode_table(*again), encode_table(table_));
  EXPECT_EQ(again->hash(), table_.hash());
  EXPECT_TRUE(again->rights(with_token("bob", "t2"))->admin);
  EXPECT_EQ(AccessTable().hash(), Hash128{});
  // Changes that are made twice change nothing.
  const Hash128 before = table_.hash();
  for (const AccessChange& change : {role("teller"), token("t1", "alice")}) table_.apply(change);
  EXPECT_EQ(table_.hash(), before);
  table_.apply(token("t1", "alice", 77));
  EXPECT_NE(table_.hash(), before);
}

TEST_F(AccessTableTest, ChangesSurviveTheirBytesAndDamageIsFound) {
  for (const AccessChange& change :
       {role("teller"), user("alice", {"teller"}, {"a", "b"}), token("t1", "alice", 9), removal(Kind::remove_role, "r"),
        removal(Kind::remove_user, "u"), removal(Kind::remove_token, "t")}) {
    const std::string bytes = encode_change(change);
    const Result<AccessChange> again = decode_change(bytes);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(encode_change(*again), bytes);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_EQ(decode_change(std::string_view(bytes).substr(0, length)).status().code(), StatusCode::data_loss);
    }
    EXPECT_FALSE(decode_change(bytes + '\0').ok());
  }
  EXPECT_FALSE(decode_change("\x09").ok());
  EXPECT_FALSE(decode_change(std::string("\x03\x01\0\0\0a\xff\xff\xff\xff", 10)).ok());  // 4 billion roles
  EXPECT_FALSE(decode_table("\x01").ok());
}

}  // namespace
}  // namespace kilokv::server
