#include "server/service/bootstrap.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/test_folder.hpp"
#include "tests/unit/service/audit_lines.hpp"
#include "tests/unit/service/fake_database.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;

class BootstrapTest : public testing::Test {
 protected:
  Status start(bool again = false) { return bootstrap_admin(&database_, {.file = file_, .again = again}); }
  const AccessTable& table() {
    latest_ = database_.access().latest();
    return *latest_;
  }
  void change(const AccessChange& change) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return change; }, [](const auto&) {});
  }
  void remove_token(const std::string& id) {
    change({.kind = Kind::remove_token, .role = {}, .user = {}, .token = {.id = id, .user = {}}});
  }
  std::string content() {
    std::ifstream in(file_);
    std::string line;
    std::getline(in, line);
    return line;
  }
  std::string new_token() { return tls::make_token()->text; }
  // Writes a file that only its owner may read.
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_.write(name, text);
    ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
    return path;
  }
  // What the start says about the file.
  std::string refusal(bool again = false) {
    const Status status = start(again);
    EXPECT_EQ(status.code(), StatusCode::failed_precondition);
    return status.message();
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  kilokv::test::TestFolder folder_;
  test::AuditLines audit_;
  const std::string file_ = folder_.path("admin.token");
  test::FakeDatabase database_;
  Access::Table latest_;
};

TEST_F(BootstrapTest, TheFirstStartMakesTheAdministrator) {
  ASSERT_TRUE(start().ok());
  const auto token = tls::parse_token(content());
  ASSERT_TRUE(token);
  EXPECT_EQ(table().tokens().at(token->id).user, "admin");
  EXPECT_TRUE(table().has_admin(false));
  std::string wanted;
  for (const std::string& what :
       {std::string("grant role=\"admin\" read=[\"\",\"\") write=[\"\",\"\") admin=true metrics=true"),
        std::string("change_user of_user=\"admin\" add_roles=\"admin\""),
        "create_token of_user=\"admin\" new_token=" + token->id + " expires_us=0"}) {
    for (const char* result : {"begins", "OK"}) {
      wanted += "kilokvd audit user=bootstrap peer=local change=" + what + " batch=1 result=" + result + "\n";
    }
  }
  EXPECT_EQ(audit_.take(), wanted);
  const Hash128 before = table().hash();
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(table().hash(), before) << "the second start changes nothing";
  EXPECT_EQ(audit_.take(), "");
}

TEST_F(BootstrapTest, ARemovedTokenDoesNotComeBack) {
  ASSERT_TRUE(start().ok());
  const std::string old = tls::parse_token(content())->id;
  // The last administrator logs in by certificate now, and the next start asks for no certificates.
  change({.kind = Kind::put_user, .role = {}, .user = {"admin", {"admin"}, {"alice"}}, .token = {}});
  remove_token(old);
  const Hash128 before = table().hash();
  for (const char* file : {"admin.token", "other.token"}) {
    const Status status = bootstrap_admin(&database_, {.file = folder_.path(file)});
    EXPECT_EQ(status.code(), StatusCode::failed_precondition);
    EXPECT_TRUE(has(status.message(), "--tls-client-ca") && has(status.message(), "--bootstrap-again on"));
    EXPECT_EQ(table().hash(), before);
  }
  EXPECT_TRUE(has(refusal(true), "is there already")) << "the old token is not taken with --bootstrap-again either";
  EXPECT_EQ(table().hash(), before);

  std::filesystem::remove(file_);
  ASSERT_TRUE(start(true).ok());
  const std::string fresh = tls::parse_token(content())->id;
  EXPECT_NE(fresh, old);
  EXPECT_EQ(table().tokens().at(fresh).user, "admin-2") << "the user admin is not replaced";
  EXPECT_EQ(table().users().at("admin").certificates, std::vector<std::string>{"alice"});
  EXPECT_TRUE(table().has_admin(false));
  EXPECT_TRUE(has(refusal(true), "is there already")) << "a second start with the flag makes no third administrator";
  EXPECT_TRUE(start().ok());
}

TEST_F(BootstrapTest, AStartThatEndedInTheMiddleGoesOn) {
  const std::string text = new_token();
  write("admin.token", text + "\n");
  const std::vector<KeyRange> all = {KeyRange{}};
  const AccessChange role{.kind = Kind::put_role, .role = {"admin", all, all, true, true}, .user = {}, .token = {}};
  const AccessChange user{.kind = Kind::put_user, .role = {}, .user = {"admin", {"admin"}, {}}, .token = {}};
  for (const std::vector<AccessChange>& made : {std::vector{role}, std::vector{role, user}}) {
    test::FakeDatabase database;
    for (const AccessChange& one : made) {
      database.change_access(
          nullptr, [&](const AccessTable&) -> Result<AccessChange> { return one; }, [](const auto&) {});
    }
    ASSERT_TRUE(bootstrap_admin(&database, {.file = file_}).ok());
    EXPECT_TRUE(database.access().latest()->tokens().contains(tls::parse_token(text)->id));
  }
}

// A kill leaves the file, and some of the three changes. Each answer says the next step, and the steps end.
TEST_F(BootstrapTest, AStartWithAgainThatEndedInTheMiddleHasAWayOn) {
  const std::vector<KeyRange> all = {KeyRange{}};
  for (const bool has_other_admin : {true, false}) {
    for (int changes = 0; changes <= 3; ++changes) {
      std::filesystem::remove(file_);
      test::FakeDatabase database;
      const auto apply = [&](const AccessChange& one) {
        database.change_access(
            nullptr, [&](const AccessTable&) -> Result<AccessChange> { return one; }, [](const auto&) {});
      };
      ASSERT_TRUE(bootstrap_admin(&database, {.file = folder_.path("first.token")}).ok());
      const std::string lost = database.access().latest()->tokens().begin()->first;
      if (!has_other_admin) {
        apply({.kind = Kind::put_user, .role = {}, .user = {"admin", {"admin"}, {"alice"}}, .token = {}});
        apply({.kind = Kind::remove_token, .role = {}, .user = {}, .token = {.id = lost, .user = {}}});
      }
      const auto made = tls::make_token();
      write("admin.token", made->text + "\n");
      AccessChange token{.kind = Kind::put_token, .role = {}, .user = {}, .token = {}};
      token.token = {.id = made->parts.id, .user = "admin-2", .secret_hash = made->parts.secret_hash};
      const std::vector<AccessChange> steps = {
          {.kind = Kind::put_role, .role = {"admin-2", all, all, true, true}, .user = {}, .token = {}},
          {.kind = Kind::put_user, .role = {}, .user = {"admin-2", {"admin-2"}, {}}, .token = {}},
          token};
      for (int i = 0; i < changes; ++i) apply(steps[static_cast<std::size_t>(i)]);

      const BootstrapOptions again{.file = file_, .again = true};
      const std::string refusal = bootstrap_admin(&database, again).message();
      EXPECT_TRUE(has(refusal, "is there already"));
      if (changes == 3) {
        EXPECT_TRUE(has(refusal, "counts for the user admin-2. Start without --bootstrap-again")) << refusal;
        EXPECT_TRUE(bootstrap_admin(&database, {.file = file_}).ok());
        continue;
      }
      EXPECT_TRUE(has(refusal, "does not know the token")) << refusal;
      EXPECT_FALSE(has(refusal, "without --bootstrap-again")) << refusal;
      EXPECT_TRUE(has(refusal, "Remove the file, or give another name")) << refusal;
      EXPECT_EQ(bootstrap_admin(&database, {.file = file_}).ok(), has_other_admin);
      std::filesystem::remove(file_);
      ASSERT_TRUE(bootstrap_admin(&database, again).ok());
      EXPECT_TRUE(database.access().latest()->tokens().contains(tls::parse_token(content())->id));
      EXPECT_FALSE(database.access().latest()->tokens().contains(made->parts.id));
    }
    std::filesystem::remove(folder_.path("first.token"));
  }
}

TEST_F(BootstrapTest, AFirstStartWithAgainGoesOnWithItsFile) {
  const std::string text = new_token();
  write("admin.token", text + "\n");
  ASSERT_TRUE(start(true).ok());
  EXPECT_TRUE(table().tokens().contains(tls::parse_token(text)->id));
}

TEST_F(BootstrapTest, UsersThatOthersHaveMadeAreNotReplaced) {
  write("admin.token", new_token());
  change({.kind = Kind::put_role, .role = {"admin", {}, {}, false, false}, .user = {}, .token = {}});
  EXPECT_TRUE(has(refusal(), "there are users"));
}

TEST_F(BootstrapTest, TheFileIsOursAlone) {
  write("real", new_token());
  std::filesystem::create_symlink(folder_.path("real"), file_);
  EXPECT_TRUE(has(refusal(), "is a symbolic link"));
  std::filesystem::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), S_IRUSR | S_IWUSR), 0);
  EXPECT_TRUE(has(refusal(), "is not a usual file"));
  std::filesystem::remove(file_);
  write("admin.token", new_token());
  ::chmod(file_.c_str(), S_IRUSR | S_IWUSR | S_IRGRP);
  EXPECT_TRUE(has(refusal(), "chmod 600"));
  if (::geteuid() == 0) {  // only root can give a file away
    write("admin.token", new_token());
    ASSERT_EQ(::chown(file_.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(has(refusal(), "belongs to another user"));
  }
  EXPECT_TRUE(table().empty());
}

TEST_F(BootstrapTest, OnlyOurOwnDraftIsRemoved) {
  const std::string draft = file_ + ".new";
  for (const std::string& text : {std::string("notes\n"), std::string("kilokv-token")}) {
    write("admin.token.new", text);
    EXPECT_TRUE(has(refusal(), "is in the way"));
    EXPECT_TRUE(std::filesystem::exists(draft));
  }
  std::filesystem::remove(draft);
  std::filesystem::create_symlink(folder_.path("none"), draft);
  EXPECT_TRUE(has(refusal(), "cannot open"));
  EXPECT_TRUE(std::filesystem::is_symlink(draft));
  std::filesystem::remove(draft);
  for (const std::string& text : {std::string(), std::string("kilo"), new_token() + "\n"}) {
    std::filesystem::remove(file_);
    write("admin.token.new", text);
    test::FakeDatabase other;
    EXPECT_TRUE(bootstrap_admin(&other, {.file = file_}).ok());
    EXPECT_FALSE(std::filesystem::exists(draft));
    EXPECT_NE(content() + "\n", text);
  }
}

}  // namespace
}  // namespace kilokv::server
