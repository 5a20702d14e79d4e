// A whole core with users: root, who may do everything, and alice, who may use the keys from "a" to "c".
// Thread safety: none; one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {

class AccessFixture : public CoreFixture {
 protected:
  using Kind = AccessChange::Kind;

  void SetUp() override {
    CoreFixture::SetUp();
    SetUpRights();
  }
  void SetUpRights() {
    change(role("boss", {{"", ""}}, true));
    change(user("root", {"boss"}));
    change(token("t0", "root"));
    change(role("teller", {{"a", "c"}}));
    change(user("alice", {"teller"}));
    change(token("t1", "alice"));
  }

  static AccessChange role(const std::string& name, const std::vector<KeyRange>& keys, bool admin = false) {
    return {.kind = Kind::put_role,
            .role = {.name = name, .read = keys, .write = keys, .admin = admin},
            .user = {},
            .token = {}};
  }
  static AccessChange user(const std::string& name, std::vector<std::string> roles) {
    return {.kind = Kind::put_user,
            .role = {},
            .user = {.name = name, .roles = std::move(roles), .certificates = {}},
            .token = {}};
  }
  static AccessChange token(const std::string& id, const std::string& of) {
    return {.kind = Kind::put_token, .role = {}, .user = {}, .token = {.id = id, .user = of}};
  }
  static AccessChange removal(Kind kind, const std::string& name) {
    AccessChange change{.kind = kind, .role = {}, .user = {}, .token = {}};
    change.role.name = change.user.name = change.token.id = name;
    return change;
  }

  // The answer is there when the change is durable.
  std::shared_ptr<std::optional<Status>> post_change(const AccessChange& wanted) {
    auto answer = std::make_shared<std::optional<Status>>();
    database->change_access(
        nullptr, [wanted](const AccessTable&) -> Result<AccessChange> { return wanted; },
        [answer](const Result<BatchNumber>& batch) { *answer = batch.status(); });
    return answer;
  }
  Status begin_change(const AccessChange& wanted) {
    const auto answer = post_change(wanted);
    settle();
    return *answer ? **answer : Status(StatusCode::internal, "no answer");
  }
  void change(const AccessChange& wanted) {
    const Status status = begin_change(wanted);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::shared_ptr<RecordingSink> submit_as(const std::string& name, const std::string& token_id, const Build& build,
                                           std::optional<SessionId> session = {}, std::uint64_t number = 0,
                                           std::uint64_t acknowledged_through = 0, std::uint64_t uploaded_keys = 0) {
    auto request = database->acquire_request();
    request->identity = {session, number, acknowledged_through, {}};
    request->uploaded_keys = uploaded_keys;
    return send(std::move(request), login_of(name, token_id), build);
  }
  std::shared_ptr<RecordingSink> submit_with(const std::shared_ptr<const Login>& login, const Build& build) {
    return send(database->acquire_request(), login, build);
  }
  std::shared_ptr<RecordingSink> send(std::unique_ptr<Request> request, const std::shared_ptr<const Login>& login,
                                      const Build& build) {
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    build(builder);
    auto sink = std::make_shared<RecordingSink>();
    request->sink = sink;
    request->client = client_of(login->user);
    request->login = login;
    database->submit(std::move(request));
    return sink;
  }
  static std::shared_ptr<const Login> login_of(const std::string& name, const std::string& token_id) {
    return std::make_shared<const Login>(Login{.user = name, .token = token_id, .certificate = {}});
  }
  std::shared_ptr<Client> client_of(const std::string& name) {
    std::shared_ptr<Client>& client = clients_[name];
    if (client == nullptr) client = std::make_shared<Client>(std::string(Client::kUserPrefix) + name);
    return client;
  }
  Status upload_as(const std::string& name, const SessionId& session, std::uint64_t number,
                   std::uint64_t acknowledged_through, const std::string& key = "a9") {
    ReadSetChunk chunk;
    chunk.identity = {session, number, acknowledged_through, {}};
    const Version versions[] = {0};
    chunk.keys = {key};
    chunk.versions = versions;
    chunk.client = client_of(name);
    return database->upload(chunk).status();
  }
  std::shared_ptr<RecordingSink> submit_and_settle(const Build& build) {
    auto sink = alice(build);
    settle();
    return sink;
  }
  std::shared_ptr<RecordingSink> alice(const Build& build) { return submit_as("alice", "t1", build); }

  static Build adding(const std::string& key) {
    return [key](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::add, b.key(key), engine::Operand::integer, 1);
      b.end();
    };
  }
  static Build waiting_for(const std::string& key) {
    return [key](engine::ColumnsBuilder& b) {
      b.begin(0, 60000000);
      b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key(key), 10);
      b.op(engine::OpKind::add, b.key(key), engine::Operand::integer, -10);
      b.end();
    };
  }
  static bool denied(const std::shared_ptr<RecordingSink>& sink) {
    return sink->failure && sink->failure->code() == StatusCode::permission_denied;
  }

  std::map<std::string, std::shared_ptr<Client>> clients_;
};

}  // namespace kilokv::server
