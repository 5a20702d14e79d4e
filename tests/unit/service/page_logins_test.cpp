// Who may see the pages over HTTP: the same logins as for calls, and the metrics right.
#include <string>

#include "tests/unit/service/service_fixture.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;

ServiceOptions with_logins() {
  ServiceOptions options;
  options.login = true;
  return options;
}

class PageLoginsTest : public ServiceTest {
 protected:
  PageLoginsTest() : ServiceTest(with_logins()), token_(*tls::make_token()), header_("Bearer " + token_.text) {
    set_right(true);
    AccessChange user = change(Kind::put_user);
    user.user = {.name = "monitor", .roles = {"watch"}, .certificates = {"watcher.example"}};
    make(user);
    add_token(0);
  }

  static AccessChange change(Kind kind) { return {.kind = kind, .role = {}, .user = {}, .token = {}}; }
  void make(const AccessChange& wanted) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return wanted; },
        [](const Result<BatchNumber>& batch) { EXPECT_TRUE(batch.ok()); });
  }
  void set_right(bool metrics) {
    AccessChange role = change(Kind::put_role);
    role.role = {.name = "watch", .read = {KeyRange{}}, .write = {}, .admin = false, .metrics = metrics};
    make(role);
  }
  void add_token(TimeUs expires_us) {
    AccessChange token = change(Kind::put_token);
    token.token.id = token_.parts.id;
    token.token.user = "monitor";
    token.token.secret_hash = token_.parts.secret_hash;
    token.token.expires_us = expires_us;
    make(token);
  }
  Status check(const PageCaller& caller) { return service_.logins().check_page(caller, "/metrics"); }
  Status with_header(const std::string& header) { return check({.peer = "ipv4:127.0.0.1:1", .authorization = header}); }

  const tls::NewToken token_;
  const std::string header_;
};

TEST_F(PageLoginsTest, NobodysRightsAreKnownWhileTheServerRecovers) {
  EXPECT_EQ(with_header(header_).code(), StatusCode::unavailable);
  EXPECT_EQ(with_header(header_).message(), "recovering");
}

TEST_F(PageLoginsTest, ATokenAndTheMetricsRightAreNeeded) {
  service_.serve(&database_);
  EXPECT_TRUE(with_header(header_).ok());
  EXPECT_EQ(check({.peer = "ipv4:127.0.0.1:1"}).reason(), ErrorReason::login_missing);
  EXPECT_EQ(with_header("Basic " + token_.text).reason(), ErrorReason::login_wrong);
  EXPECT_EQ(with_header("Bearer " + tls::make_token()->text).reason(), ErrorReason::login_wrong);
  EXPECT_EQ(with_header("Bearer x").reason(), ErrorReason::login_wrong);
  EXPECT_EQ(service_.logins().refused(), 4u) << "each is counted";
  set_right(false);
  const Status denied = with_header(header_);
  EXPECT_EQ(denied.code(), StatusCode::permission_denied);
  EXPECT_NE(denied.message().find("/metrics: user \"monitor\" has no metrics right"), std::string::npos)
      << denied.message();
}

TEST_F(PageLoginsTest, ATokenThatHasExpiredDoesNotCount) {
  service_.serve(&database_);
  add_token(unix_us_now() + TimeUs{3600} * 1000000);
  EXPECT_TRUE(with_header(header_).ok());
  database_.set_last_stamp(unix_us_now() + TimeUs{7200} * 1000000);
  EXPECT_EQ(with_header(header_).code(), StatusCode::unauthenticated);
}

TEST_F(PageLoginsTest, TheNamesOfACertificateCountAsForCalls) {
  service_.serve(&database_);
  EXPECT_TRUE(check({.alternative_names = {"other.example", "watcher.example"}}).ok());
  EXPECT_TRUE(check({.common_names = {"watcher.example"}}).ok());
  EXPECT_EQ(check({.alternative_names = {"other.example"}, .common_names = {"watcher.example"}}).reason(),
            ErrorReason::login_wrong)
      << "the common name counts only if there is no other";
  const std::string wrong = "Bearer " + tls::make_token()->text;
  EXPECT_EQ(check({.authorization = wrong, .alternative_names = {"watcher.example"}}).reason(),
            ErrorReason::login_wrong)
      << "a token goes first";
}

TEST_F(PageLoginsTest, ThePagesCanBeReadUntilTheEnd) {
  service_.serve(&database_);
  service_.set_serving(true);
  EXPECT_TRUE(service_.readiness().ok());
  service_.set_serving(false);
  EXPECT_EQ(service_.readiness().reason(), ErrorReason::draining);
  service_.close();
  EXPECT_EQ(service_.readiness().reason(), ErrorReason::draining);
  EXPECT_TRUE(with_header(header_).ok());
  const ServerReport report = service_.report();
  EXPECT_TRUE(report.has_database);
  EXPECT_FALSE(report.is_ready);
  EXPECT_EQ(report.database.state, DatabaseStatus::State::draining);
  EXPECT_EQ(report.database.durable_batch, 17u) << "the numbers do not go back";
}

TEST_F(PageLoginsTest, WhereClientsNeedACertificateTheseTwoPagesNeedOne) {
  service_.logins().check_page_certificates_with([](const PageCaller& caller) {
    return caller.certificate == "good" ? std::string() : std::string("a certificate is needed");
  });
  service_.serve(&database_);
  EXPECT_EQ(with_header(header_).reason(), ErrorReason::login_missing);
  EXPECT_EQ(check({.authorization = header_, .certificate = "bad"}).reason(), ErrorReason::login_wrong);
  EXPECT_TRUE(check({.authorization = header_, .certificate = "good"}).ok());
}

using PagesWithoutLoginsTest = ServiceTest;

TEST_F(PagesWithoutLoginsTest, EverybodyMaySeeThem) {
  EXPECT_TRUE(service_.logins().check_page({}, "/metrics").ok()) << "also while the server recovers";
  EXPECT_EQ(service_.readiness().reason(), ErrorReason::recovering);
  EXPECT_FALSE(service_.report().has_database);
  EXPECT_EQ(service_.report().database.state, DatabaseStatus::State::recovering);
}

}  // namespace
}  // namespace kilokv::server
