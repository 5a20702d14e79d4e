#include "server/core/access/access_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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
// A login made now.
Login with_certificate(const AccessTable& table, const std::string& of, const std::string& name) {
  const CertificateHolder* const holder = table.holder_of(name);
  return {.user = of, .token = {}, .certificate = name, .certificate_since = holder == nullptr ? 0 : holder->since};
}

Status check(const AccessTable& table, const AccessChange& change, bool with_certificates = true) {
  return table.after({&change, 1}, with_certificates).status();
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
    Result<AccessTable> after = table_.after({&change, 1}, true);
    ASSERT_TRUE(after.ok()) << after.status().message();
    table_ = std::move(*after);
  }
  StatusCode code_of(const AccessChange& change) const { return check(table_, change).code(); }

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
  EXPECT_EQ(table_.rights(with_certificate(table_, "alice", "alice.example")), alice);
}

TEST_F(AccessTableTest, ALoginCountsWhileItsTokenAndItsUserAreThere) {
  EXPECT_EQ(table_.rights(with_token("alice", "t2")), nullptr);  // the token of another
  EXPECT_EQ(table_.rights(with_token("carol", "t1")), nullptr);
  EXPECT_EQ(table_.rights(with_certificate(table_, "bob", "alice.example")), nullptr);
  EXPECT_EQ(table_.rights(with_certificate(table_, "alice", "")), nullptr);
  make(removal(Kind::remove_token, "t1"));
  EXPECT_EQ(table_.rights(with_token("alice", "t1")), nullptr);
  const Login alice = with_certificate(table_, "alice", "alice.example");
  make(user("alice", {"boss"}, {"alice.example", "alice.other"}));
  EXPECT_NE(table_.rights(alice), nullptr);
  EXPECT_NE(table_.rights(with_certificate(table_, "alice", "alice.other")), nullptr);
  make(user("alice", {"teller"}));  // without the certificate
  EXPECT_EQ(table_.rights(alice), nullptr);
  make(user("alice", {"teller"}, {"alice.example"}));
  EXPECT_EQ(table_.rights(alice), nullptr) << "the name was given again: that is another login";
  EXPECT_NE(table_.rights(with_certificate(table_, "alice", "alice.example")), nullptr);
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
  EXPECT_EQ(check(full, role("one more")).code(), StatusCode::invalid_argument);  // its name
  EXPECT_EQ(check(full, role("more")).code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(check(full, role("r0")).ok());
}

TEST_F(AccessTableTest, ACertificateIsNoWayInIfTheServerAsksForNone) {
  make(user("alice", {"boss"}, {"alice.example"}));
  make(removal(Kind::remove_token, "t1"));
  EXPECT_TRUE(check(table_, removal(Kind::remove_user, "bob")).ok());
  EXPECT_EQ(check(table_, removal(Kind::remove_user, "bob"), false).code(), StatusCode::failed_precondition);
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
    const Status status = check(table, more);
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
  EXPECT_TRUE(check(table, removal(Kind::remove_user, "u0")).ok());
  EXPECT_TRUE(check(table, user("u1", {})).ok());
}

// Its entries take more than their texts.
TEST_F(AccessTableTest, TheSizeIsThatOfTheMemory) {
  AccessTable table;
  AccessChange many = role("many");
  many.role.read.clear();
  for (char c = 'a'; c <= 'z'; ++c) many.role.read.push_back({std::string(1, c), std::string(2, c)});
  table.apply(many);
  const std::size_t of_role = table.bytes();
  EXPECT_GE(of_role, 28 * sizeof(KeyRange) + sizeof(Role));
  table.apply(user("alice", {"many"}));
  EXPECT_GE(table.bytes() - of_role, 28 * sizeof(KeyRange) + sizeof(User) + sizeof(Rights));
  const std::size_t before = table.bytes();
  table.apply(token("0123456789abcdef", "alice"));
  EXPECT_GE(table.bytes() - before, sizeof(Token) + sizeof(std::string) + 2 * 16);
}

TEST_F(AccessTableTest, ANewTokenTakesThePlaceOfTheOneThatExpiredFirst) {
  AccessTable table;
  table.apply(user("alice", {}));
  for (std::size_t i = 1; i < AccessTable::kTokensMax; ++i) {
    table.apply(token("t" + std::to_string(i), "alice", i < 3 ? static_cast<TimeUs>(10 - i) : 0));
  }
  const AccessChange last = token("t0", "alice", 20), next = token("new", "alice");
  EXPECT_EQ(table.replaced_by(next.token, 100), nullptr) << "there is room";
  table.apply(last);
  ASSERT_NE(table.replaced_by(next.token, 100), nullptr);
  EXPECT_EQ(table.replaced_by(next.token, 100)->id, "t2");  // at 8
  EXPECT_EQ(table.replaced_by(next.token, 8)->id, "t2");
  EXPECT_EQ(table.replaced_by(next.token, 7), nullptr) << "it had not expired";
  EXPECT_EQ(table.replaced_by(last.token, 100), nullptr) << "it is there already";
  EXPECT_EQ(check(table, next).code(), StatusCode::resource_exhausted);
  const AccessChange both[] = {removal(Kind::remove_token, "t2"), next};
  const Result<AccessTable> after = table.after(both, true);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after->tokens().size(), AccessTable::kTokensMax);
  EXPECT_TRUE(after->tokens().contains("t1"));
}

// The last token that has room comes when others have expired. A replay makes it twice.
TEST_F(AccessTableTest, ToMakeAChangeTwiceIsToMakeItOnceInAFullTable) {
  AccessTable table;
  table.apply(role("teller"));
  table.apply(user("alice", {"teller"}, {"alice.example"}));
  for (std::size_t i = 0; i + 2 < AccessTable::kTokensMax; ++i) {
    table.apply(token("t" + std::to_string(i), "alice", i < 3 ? 4 : 0));  // created at 5
  }
  std::vector<AccessChange> changes = {token("a", "alice"),
                                       removal(Kind::remove_token, "a"),
                                       token("b", "alice"),
                                       token("c", "alice"),
                                       removal(Kind::remove_token, "t1"),
                                       token("d", "alice", 9),
                                       removal(Kind::remove_role, "teller"),
                                       role("teller"),
                                       user("alice", {})};
  for (std::size_t made = 1; made <= changes.size(); ++made) {
    table.apply(changes[made - 1]);
    AccessTable again = table;
    for (std::size_t i = 0; i < made; ++i) again.apply(changes[i]);
    EXPECT_EQ(again.hash(), table.hash()) << made;
  }
}

TEST_F(AccessTableTest, SomeChangesTakeNothingAway) {
  EXPECT_FALSE(table_.takes_away(token("t9", "alice")));
  EXPECT_FALSE(table_.takes_away(token("t1", "alice", 9)));
  EXPECT_TRUE(table_.takes_away(token("t1", "bob")));
  EXPECT_FALSE(table_.takes_away(role("new")));
  EXPECT_FALSE(table_.takes_away(role("teller")));
  AccessChange wider = role("teller");
  wider.role.read = {{"a", "c"}, {"b", "n"}};
  wider.role.write.push_back({"c", "d"});
  EXPECT_FALSE(table_.takes_away(wider));
  AccessChange narrower = role("teller");
  narrower.role.read = {{"a", "l"}};
  EXPECT_TRUE(table_.takes_away(narrower));
  narrower = role("teller");
  narrower.role.write = {{"a", "b"}, {"x", "y"}};
  EXPECT_TRUE(table_.takes_away(narrower));
  EXPECT_FALSE(table_.takes_away(user("carol", {"teller"})));
  EXPECT_FALSE(table_.takes_away(user("alice", {"boss", "teller"}, {"alice.example", "b"})));
  EXPECT_TRUE(table_.takes_away(user("alice", {"boss"}, {"alice.example"})));
  EXPECT_TRUE(table_.takes_away(user("alice", {"teller"})));
  for (const Kind kind : {Kind::remove_role, Kind::remove_user, Kind::remove_token}) {
    EXPECT_TRUE(table_.takes_away(removal(kind, "any")));
  }
}

// A name may be long, or have any bytes.
TEST_F(AccessTableTest, ErrorsShowNamesOnOneLine) {
  make(user("carol", {}, {"two\nlines" + std::string(200, 'x')}));
  const Status status = check(table_, user("dora", {}, {"two\nlines" + std::string(200, 'x')}));
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  EXPECT_LT(status.message().size(), 200u) << status.message();
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

TEST_F(AccessTableTest, AUserHasAWeight) {
  EXPECT_EQ(table_.weight("alice"), 1u);
  EXPECT_EQ(table_.weight("nobody"), 1u);
  AccessChange change = user("alice", {"teller"}, {"alice.example"});
  const std::string without = encode_change(change);
  for (const std::uint32_t weight : {0u, 101u, 0xffffffffu}) {
    change.user.weight = weight;
    EXPECT_EQ(code_of(change), StatusCode::invalid_argument) << weight;
  }
  const Hash128 before = table_.hash();
  change.user.weight = 100;
  make(change);
  EXPECT_EQ(table_.weight("alice"), 100u);
  EXPECT_NE(table_.hash(), before);
  const Result<AccessTable> again = decode_table(encode_table(table_));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->weight("alice"), 100u);
  EXPECT_EQ(again->hash(), table_.hash());
  // Records from before there were weights: as they are, and with a weight of 1.
  const std::string with = encode_change(change);
  EXPECT_EQ(with.size(), without.size() + sizeof(std::uint32_t));
  EXPECT_EQ(with.substr(0, without.size()), without);
  const Result<AccessChange> old = decode_change(without);
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->user.weight, 1u);
  make(*old);
  EXPECT_EQ(table_.hash(), before);
  // Damage is found.
  for (const char* weight : {"\0\0\0\0", "\1\0\0\0", "\x65\0\0\0", "\2\0\0\1"}) {
    EXPECT_EQ(decode_change(without + std::string(weight, 4)).status().code(), StatusCode::data_loss);
  }
  EXPECT_FALSE(decode_change(with.substr(0, with.size() - 1)).ok());
  EXPECT_FALSE(decode_change(with + '\0').ok());
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
