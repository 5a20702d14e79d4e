// Rights that are lost while a call waits for the executor.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/service/access_calls.hpp"
#include "server/service/log_level.hpp"
#include "tests/unit/service/log_lines.hpp"
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

class ServiceRightsTest : public ServiceTest {
 protected:
  ServiceRightsTest() : ServiceTest(with_logins()), token_(*tls::make_token()) {
    set_role("boss", true);
    AccessChange user = change(Kind::put_user);
    user.user = {.name = "root", .roles = {"boss"}, .certificates = {}};
    make(user);
    add_token();
    service_.serve(&database_);
  }

  static AccessChange change(Kind kind) { return {.kind = kind, .role = {}, .user = {}, .token = {}}; }
  void make(const AccessChange& wanted) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return wanted; },
        [](const Result<BatchNumber>& batch) { EXPECT_TRUE(batch.ok()); });
  }
  void set_role(const std::string& name, bool admin) {
    AccessChange role = change(Kind::put_role);
    role.role = {.name = name, .read = {}, .write = {}, .admin = admin};
    make(role);
  }
  void add_token(TimeUs expires_us = 0) {
    AccessChange token = change(Kind::put_token);
    token.token.id = token_.parts.id;
    token.token.user = "root";
    token.token.secret_hash = token_.parts.secret_hash;
    token.token.expires_us = expires_us;
    make(token);
  }
  void remove_token() {
    AccessChange removal = change(Kind::remove_token);
    removal.token.id = token_.parts.id;
    make(removal);
  }
  std::unique_ptr<grpc::ClientContext> as_root() const {
    auto call = context();
    call->AddMetadata("authorization", "Bearer " + token_.text);
    return call;
  }
  grpc::StatusCode list() {
    v1::ListParkedResponse response;
    const auto call = as_root();
    const grpc::StatusCode code = stub_->ListParked(call.get(), {}, &response).error_code();
    EXPECT_EQ(response.parked().empty(), code != grpc::StatusCode::OK);
    return code;
  }
  grpc::StatusCode cancel(const v1::CancelRequest& request) {
    v1::CancelResponse response;
    const auto call = as_root();
    return stub_->Cancel(call.get(), request, &response).error_code();
  }

  const tls::NewToken token_;
};

TEST_F(ServiceRightsTest, AListNeedsTheAdminRightWhenItIsMade) {
  EXPECT_EQ(list(), grpc::StatusCode::OK);
  database_.before_next_command([this] { set_role("boss", false); });
  EXPECT_EQ(list(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(database_.has_work_before_command()) << "it was taken away meanwhile, not before";
}

TEST_F(ServiceRightsTest, ACancelNeedsTheRightWhenItIsCarriedOut) {
  v1::CancelRequest by_id, of_others, own;
  by_id.set_parked_id(7);
  of_others.mutable_parked()->set_client("user:alice");
  own.mutable_parked()->set_client("user:root");
  for (const v1::CancelRequest& request : {by_id, of_others, own}) {
    EXPECT_EQ(cancel(request), grpc::StatusCode::OK);
  }
  for (const v1::CancelRequest& request : {by_id, of_others}) {
    database_.before_next_command([this] { set_role("boss", false); });
    EXPECT_EQ(cancel(request), grpc::StatusCode::PERMISSION_DENIED) << request.ShortDebugString();
    EXPECT_FALSE(database_.has_work_before_command());
    set_role("boss", true);
  }
  database_.before_next_command([this] { set_role("boss", false); });
  EXPECT_EQ(cancel(own), grpc::StatusCode::OK) << "that needs no right";
  database_.before_next_command([this] { remove_token(); });
  EXPECT_EQ(cancel(own), grpc::StatusCode::PERMISSION_DENIED) << "but a login";
}

// What was written after a revoke, a watch does not send. What was written before, it may.
TEST_F(ServiceRightsTest, AWatchEndsWithTheRightToRead) {
  const auto may_read = [this](std::vector<KeyRange> ranges) {
    AccessChange role = change(Kind::put_role);
    role.role = {.name = "boss", .read = std::move(ranges), .write = {}, .admin = true};
    make(role);
  };
  v1::WatchRequest request;
  request.mutable_after()->set_version(0);
  request.mutable_range()->set_from("a");
  request.mutable_range()->set_to("b");
  v1::WatchResponse answer;
  const auto code_of = [&] {
    const auto call = as_root();
    const auto watch = stub_->Watch(call.get(), request);
    while (watch->Read(&answer)) continue;
    return watch->Finish().error_code();
  };
  EXPECT_EQ(code_of(), grpc::StatusCode::PERMISSION_DENIED);
  may_read({{"a", "aa"}});
  EXPECT_EQ(code_of(), grpc::StatusCode::PERMISSION_DENIED) << "of a part of the range";
  may_read({{"a", "c"}});
  database_.log.append({{"a", 1, 1, "before"}}, 1);
  const auto call = as_root();
  const auto watch = stub_->Watch(call.get(), request);
  ASSERT_TRUE(watch->Read(&answer));
  ASSERT_EQ(answer.writes_size(), 1);
  may_read({{"b", "c"}});
  database_.log.append({{"a", 2, 1, "after"}}, 1);
  while (watch->Read(&answer)) EXPECT_EQ(answer.writes_size(), 0);
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ServiceRightsTest, TheLevelOfTheLogNeedsTheAdminRight) {
  const test::LogLines lines;
  const auto set = [this](const std::string& level) {
    v1::SetLogLevelRequest request;
    request.set_level(level);
    v1::SetLogLevelResponse response;
    const auto call = as_root();
    return stub_->SetLogLevel(call.get(), request, &response).error_code();
  };
  EXPECT_EQ(set("warning"), grpc::StatusCode::OK);
  set_role("boss", false);
  EXPECT_EQ(set("trace"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(set(""), grpc::StatusCode::PERMISSION_DENIED) << "to see it needs the right, too";
  EXPECT_EQ(log_level(), "warning");
}

TEST_F(ServiceRightsTest, ATokenThatABatchHasSeenExpireStaysExpired) {
  const TimeUs expires_us = unix_us_now() + TimeUs{3600} * 1000000;
  add_token(expires_us);
  EXPECT_EQ(list(), grpc::StatusCode::OK);
  database_.set_last_stamp(expires_us);
  EXPECT_EQ(list(), grpc::StatusCode::UNAUTHENTICATED) << "the clock of the machine went back";
}

// The results may be those of a request that another token of the user began, so the request does not end with this
// one.
TEST_F(ServiceRightsTest, ACallWhoseLoginIsGoneGetsNoResults) {
  for (const bool is_batch : {false, true}) {
    grpc::Status ended;
    std::thread caller([&] {
      const auto call = as_root();
      if (is_batch) {
        v1::ExecuteBatchResponse response;
        v1::ExecuteBatchRequest batch;
        *batch.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
        const auto reader = stub_->ExecuteBatch(call.get(), batch);
        EXPECT_FALSE(reader->Read(&response));
        ended = reader->Finish();
      } else {
        v1::ExecuteResponse response;
        ended = stub_->Execute(call.get(), execute_request(), &response);
      }
    });
    const std::unique_ptr<Request> request = database_.take();
    remove_token();
    test::FakeDatabase::commit(request.get());
    caller.join();
    EXPECT_EQ(ended.error_code(), grpc::StatusCode::PERMISSION_DENIED) << is_batch;
    add_token();
  }
}

class RevokeTest : public testing::Test {
 protected:
  static v1::RoleRights rights(const std::vector<KeyRange>& read, const std::vector<KeyRange>& write) {
    v1::RoleRights out;
    out.set_role("r");
    const auto add = [](const std::vector<KeyRange>& ranges, auto* list) {
      for (const KeyRange& range : ranges) {
        auto* const one = list->Add();
        one->set_from(range.from);
        one->set_to(range.to);
      }
    };
    add(read, out.mutable_read());
    add(write, out.mutable_write());
    return out;
  }
  Status make(const v1::ChangeAccessRequest& request) {
    const Result<RequestedChange> requested = change_of(request, 1);
    EXPECT_TRUE(requested.ok());
    const Result<AccessChange> change = requested->edit(table_);
    if (!change.ok()) return change.status();
    table_.apply(*change);
    return {};
  }
  Status grant(const std::vector<KeyRange>& read, const std::vector<KeyRange>& write = {}) {
    v1::ChangeAccessRequest request;
    *request.mutable_grant() = rights(read, write);
    return make(request);
  }
  Status revoke(const std::vector<KeyRange>& read, const std::vector<KeyRange>& write = {}) {
    v1::ChangeAccessRequest request;
    *request.mutable_revoke() = rights(read, write);
    return make(request);
  }

  AccessTable table_;
};

TEST_F(RevokeTest, KeysThatAnotherRangeWouldKeepAreRefused) {
  const KeyRange all{"", ""}, account = keys_with_prefix("account/"), order = keys_with_prefix("order/");
  ASSERT_TRUE(grant({all, account, order}, {account, order}).ok());
  const Status refused = revoke({account});
  EXPECT_EQ(refused.code(), StatusCode::failed_precondition);
  EXPECT_EQ(refused.reason(), ErrorReason::access_overlaps);
  EXPECT_NE(refused.message().find("[,)"), std::string::npos) << refused.message();
  ASSERT_NE(refused.violation(), nullptr);
  EXPECT_EQ(refused.violation()->field, "revoke.read");
  EXPECT_EQ(table_.roles().at("r").read.size(), 3u);
  EXPECT_EQ(revoke({all}).reason(), ErrorReason::access_overlaps) << "in the other direction, too";
  EXPECT_TRUE(revoke({all, account, order}, {account}).ok());
  EXPECT_TRUE(table_.roles().at("r").read.empty());
  EXPECT_EQ(table_.roles().at("r").write, std::vector<KeyRange>{order});
  ASSERT_TRUE(grant({}, {{"order/5", "zebra"}}).ok());
  EXPECT_EQ(revoke({}, {order}).violation()->field, "revoke.write");
  EXPECT_EQ(revoke({account}).code(), StatusCode::not_found);
}

}  // namespace
}  // namespace kilokv::server
