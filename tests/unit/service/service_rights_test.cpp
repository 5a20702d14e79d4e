// Rights that are lost while a call waits for the executor.
#include <string>
#include <vector>

#include "server/service/access_calls.hpp"
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
    AccessChange token = change(Kind::put_token);
    token.token.id = token_.parts.id;
    token.token.user = "root";
    token.token.secret_hash = token_.parts.secret_hash;
    make(token);
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

}  // namespace
}  // namespace kilokv::server
