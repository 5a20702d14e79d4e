// Every call of the protocol, with every right and with none, as rows and as columns, against the real kilokvd: what is
// allowed and what is refused.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/access.hpp"
#include "kilokv/v1/kilokv.grpc.pb.h"
#include "tests/integration/client_fixture.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::client {
namespace {

enum class Need : std::uint8_t { nothing, read, write, both, admin, metrics, nobody_has };

struct Rights {
  bool read = false, write = false, admin = false, metrics = false;

  bool enough(Need need) const {
    switch (need) {
      case Need::nothing: return true;
      case Need::read: return read;
      case Need::write: return write;
      case Need::both: return read && write;
      case Need::admin: return admin;
      case Need::metrics: return metrics;
      case Need::nobody_has: return false;
    }
    return false;
  }
};

// Somebody who calls: everything that a call needs.
class Caller {
 public:
  Caller(std::string user, Rights rights_of_user, const ClientOptions& options)
      : name(std::move(user)), rights(rights_of_user), token_(options.token) {
    auto connected = Client::connect(options);
    EXPECT_TRUE(connected) << connected.error().message;
    client = std::move(*connected);
    auto opened = client->open_session();
    EXPECT_TRUE(opened) << opened.error().message;
    session = std::move(*opened);
    admin = std::move(*AccessAdmin::connect(options));
    stub = v1::KiloKV::NewStub(grpc::CreateChannel(options.endpoint, grpc::InsecureChannelCredentials()));
  }

  // A call without the library. Returns the code of gRPC, which has the same numbers as ErrorCode.
  template <class Request, class Response>
  Error raw(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response* response) const {
    grpc::ClientContext context;
    log_in(&context);
    const grpc::Status status = (stub.get()->*method)(&context, request, response);
    Error error;
    if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) error.code = ErrorCode::permission_denied;
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) error.code = ErrorCode::unauthenticated;
    error.message = status.error_message();
    return error;
  }
  void log_in(grpc::ClientContext* context) const {
    if (!token_.empty()) context->AddMetadata("authorization", "Bearer " + token_);
  }
  std::string open_raw_session() const {
    v1::OpenSessionResponse response;
    raw(&v1::KiloKV::Stub::OpenSession, v1::OpenSessionRequest(), &response);
    return response.session();
  }

  const std::string name;
  const Rights rights;
  std::unique_ptr<Client> client;
  std::unique_ptr<Session> session;
  std::unique_ptr<AccessAdmin> admin;
  std::unique_ptr<v1::KiloKV::Stub> stub;

 private:
  const std::string token_;
};

template <class T>
Error error_of(const Expected<T>& result) {
  return result ? Error() : result.error();
}

struct Call {
  std::string what;
  Need need;
  std::function<Error(Caller*)> make;
};

struct Transaction {
  const char* what;
  Need need;
  std::function<void(Batch*)> fill;
};

const std::vector<Transaction>& transactions() {
  static const std::vector<Transaction> all = {
      {"GET", Need::read, [](Batch* b) { b->get(b->key("k/1")); }},
      {"RANGE_GET", Need::read, [](Batch* b) { b->range_get("k/", "k0", 10); }},
      {"PUT", Need::write, [](Batch* b) { b->put(b->key("k/1"), std::int64_t{1}); }},
      {"ADD", Need::write, [](Batch* b) { b->add(b->key("k/1"), std::int64_t{1}); }},
      {"DELETE", Need::write, [](Batch* b) { b->del(b->key("k/2")); }},
      {"DELETE_RANGE", Need::write, [](Batch* b) { b->delete_range("k/7", "k/8", 10); }},
      {"a guard", Need::read,
       [](Batch* b) {
         b->guard_absent(b->key("k/none"));
         b->get(b->key("k/1"));
       }},
      {"a guard and a PUT", Need::both,
       [](Batch* b) {
         b->guard_absent(b->key("k/none"));
         b->put(b->key("k/1"), std::int64_t{1});
       }},
      {"a guard of a range and a PUT", Need::both,
       [](Batch* b) {
         b->guard_range_unchanged("k/", "k/0", 1);
         b->put(b->key("k/1"), std::int64_t{1});
       }},
      {"a PUT in the else list", Need::both,
       [](Batch* b) {
         b->guard_absent(b->key("k/none"));
         b->get(b->key("k/1"));
         b->otherwise();
         b->put(b->key("k/1"), std::int64_t{1});
       }},
      {"GET of a key outside", Need::nobody_has, [](Batch* b) { b->get(b->key("other")); }},
      {"PUT of a key outside", Need::nobody_has, [](Batch* b) { b->put(b->key("other"), std::int64_t{1}); }},
      {"RANGE_GET beyond", Need::nobody_has, [](Batch* b) { b->range_get("k/", "k1", 10); }},
      {"DELETE_RANGE without an end", Need::nobody_has, [](Batch* b) { b->delete_range("k/", "", 10); }},
  };
  return all;
}

// Execute, ExecuteBatch and Session, with rows and with columns.
void add_transactions(std::vector<Call>* calls) {
  for (const Transaction& transaction : transactions()) {
    const auto batch_of = [&transaction](int count) {
      Batch batch;
      for (int i = 0; i < count; ++i) {
        batch.begin();
        // The last one of a batch decides.
        if (i + 1 == count) {
          transaction.fill(&batch);
        } else {
          batch.get(batch.key("all"));
        }
        batch.end();
      }
      return batch;
    };
    const std::string what = transaction.what;
    calls->push_back({"Execute of " + what, transaction.need,
                      [=](Caller* caller) { return error_of(caller->client->execute(batch_of(1))); }});
    for (const Encoding encoding : {Encoding::rows, Encoding::columns}) {
      const std::string form = encoding == Encoding::rows ? ", rows" : ", columns";
      const CallOptions options{.timeout_us = {}, .encoding = encoding};
      calls->push_back({"ExecuteBatch of " + what + form, transaction.need,
                        [=](Caller* caller) { return error_of(caller->client->execute(batch_of(2), options)); }});
      calls->push_back({"Session with " + what + form, transaction.need,
                        [=](Caller* caller) { return error_of(caller->session->execute(batch_of(2), options)); }});
    }
  }
}

// A call on a session that the caller has opened for it.
template <class Request, class Response>
auto on_own_session(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
  return [method](Caller* caller) {
    Request request;
    Response response;
    request.set_session(caller->open_raw_session());
    return caller->raw(method, request, &response);
  };
}

void add_reads_and_sessions(std::vector<Call>* calls) {
  const auto scan = [](const char* from, const char* to) {
    return [=](Caller* caller) { return error_of(caller->client->scan(from, to, [](const Pair&) { return true; })); };
  };
  calls->insert(calls->end(), {{"Get", Need::read, [](Caller* c) { return error_of(c->client->get({"k/1"})); }},
                               {"Get of keys inside and outside", Need::nobody_has,
                                [](Caller* c) {
                                  return error_of(c->client->get({"k/1", "other"}));
                                }},
                               {"Scan", Need::read, scan("k/", "k0")},
                               {"Scan beyond", Need::nobody_has, scan("k/", "k1")},
                               {"Scan of everything", Need::nobody_has, scan("", "")},
                               {"OpenSession", Need::nothing,
                                [](Caller* c) {
                                  v1::OpenSessionResponse response;
                                  return c->raw(&v1::KiloKV::Stub::OpenSession, v1::OpenSessionRequest(), &response);
                                }},
                               {"KeepSessionAlive", Need::nothing,
                                on_own_session<v1::KeepSessionAliveRequest>(&v1::KiloKV::Stub::KeepSessionAlive)},
                               {"CloseSession", Need::nothing,
                                on_own_session<v1::CloseSessionRequest>(&v1::KiloKV::Stub::CloseSession)},
                               {"UploadReadSet, and Execute beside it", Need::both, [](Caller* c) {
                                  v1::UploadReadSetRequest upload;
                                  v1::UploadReadSetResponse uploaded;
                                  upload.mutable_id()->set_session(c->open_raw_session());
                                  upload.mutable_id()->set_number(1);
                                  upload.add_keys("k/none");
                                  upload.add_versions(0);
                                  if (Error error = c->raw(&v1::KiloKV::Stub::UploadReadSet, upload, &uploaded))
                                    return error;
                                  v1::ExecuteRequest execute;
                                  v1::ExecuteResponse executed;
                                  *execute.mutable_id() = upload.id();
                                  execute.set_uploaded_keys(1);
                                  v1::Operation* put = execute.mutable_transaction()->add_then();
                                  put->set_kind(v1::OPERATION_KIND_PUT);
                                  put->set_key("k/1");
                                  put->mutable_operand()->set_integer(1);
                                  return c->raw(&v1::KiloKV::Stub::Execute, execute, &executed);
                                }}});
}

void add_server_calls(std::vector<Call>* calls) {
  calls->insert(
      calls->end(),
      {{"Status", Need::metrics, [](Caller* c) { return error_of(c->client->status()); }},
       {"ListParked", Need::admin, [](Caller* c) { return error_of(c->client->list_parked()); }},
       {"Cancel of a parked transaction", Need::admin,
        [](Caller* c) { return error_of(c->client->cancel_parked(std::uint64_t{1})); }},
       {"Cancel of all with a prefix", Need::admin,
        [](Caller* c) {
          return error_of(c->client->cancel_parked(ParkedFilter{.client = "", .key_prefix = "k/", .older_than_us = 0}));
        }},
       {"Cancel of what others have parked", Need::admin,
        [](Caller* c) {
          return error_of(
              c->client->cancel_parked(ParkedFilter{.client = "user:somebody", .key_prefix = "", .older_than_us = 0}));
        }},
       {"Cancel of what is one's own", Need::nothing,
        [](Caller* c) {
          return error_of(c->client->cancel_parked(
              ParkedFilter{.client = "user:" + c->name, .key_prefix = "", .older_than_us = 0}));
        }},
       {"Cancel in one's own session", Need::nothing,
        [](Caller* c) { return error_of(c->client->cancel(c->session->id(), 1, {})); }},
       {"ListAccess", Need::admin, [](Caller* c) { return error_of(c->admin->list_users()); }},
       {"ChangeAccess: grant", Need::admin,
        [](Caller* c) { return c->admin->grant({.role = "new", .read = {}, .write = {}}); }},
       {"ChangeAccess: user", Need::admin,
        [](Caller* c) {
          UserChange change;
          change.user = "new";
          return c->admin->change_user(change);
        }},
       {"ChangeAccess: create_token", Need::admin,
        [](Caller* c) { return error_of(c->admin->create_token("new", 1000000)); }},
       {"ChangeAccess: remove_user", Need::admin, [](Caller* c) { return c->admin->remove_user("new"); }}});
}

class RightsTest : public ::testing::Test {
 protected:
  RightsTest() : token_file_(folder_.path("admin.token")), server_({"--login", "on", "--bootstrap-file", token_file_}) {
    options_.endpoint = server_.endpoint();
    std::ifstream(token_file_) >> options_.token;
    root_ = std::move(*AccessAdmin::connect(options_));
  }

  std::unique_ptr<Caller> caller(const std::string& name, Rights rights) {
    RoleRights role{
        .role = name, .read = {{"all", "all0"}}, .write = {}, .admin = rights.admin, .metrics = rights.metrics};
    if (rights.read) role.read.push_back(keys_with_prefix("k/"));
    if (rights.write) role.write.push_back(keys_with_prefix("k/"));
    EXPECT_FALSE(root_->grant(role));
    UserChange user;
    user.user = name;
    user.add_roles = {name};
    EXPECT_FALSE(root_->change_user(user));
    ClientOptions options = options_;
    options.token = root_->create_token(name, 0)->token;
    return std::make_unique<Caller>(name, rights, options);
  }

  const test::TestFolder folder_;
  const std::string token_file_;
  Server server_;
  ClientOptions options_;
  std::unique_ptr<AccessAdmin> root_;
};

TEST_F(RightsTest, EveryCallNeedsItsRight) {
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(caller("nobody", {}));
  callers.push_back(caller("reader", {.read = true}));
  callers.push_back(caller("writer", {.write = true}));
  callers.push_back(caller("teller", {.read = true, .write = true}));
  callers.push_back(caller("boss", {.admin = true}));
  callers.push_back(caller("watcher", {.metrics = true}));
  std::vector<Call> calls;
  add_transactions(&calls);
  add_reads_and_sessions(&calls);
  add_server_calls(&calls);
  for (const Call& call : calls) {
    for (const auto& caller : callers) {
      const Error error = call.make(caller.get());
      const ErrorCode expected = caller->rights.enough(call.need) ? ErrorCode::none : ErrorCode::permission_denied;
      // What is named there may be gone, which the rights are not about.
      const ErrorCode code = error.code == ErrorCode::not_found ? ErrorCode::none : error.code;
      EXPECT_EQ(code, expected) << call.what << " by " << caller->name << ": " << error.message;
    }
  }
}

TEST_F(RightsTest, NobodyCallsWithoutALogin) {
  std::vector<Call> calls;
  add_transactions(&calls);
  add_reads_and_sessions(&calls);
  add_server_calls(&calls);
  ClientOptions options = options_;
  options.token.clear();
  const auto refused = Client::connect(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unauthenticated);
  EXPECT_EQ(refused.error().reason, "LOGIN_MISSING");
  // The library does not connect, so these calls go without it.
  auto stub = v1::KiloKV::NewStub(grpc::CreateChannel(options.endpoint, grpc::InsecureChannelCredentials()));
  const auto code_of = [](auto&& call) {
    grpc::ClientContext context;
    return call(&context).error_code();
  };
  v1::ExecuteResponse execute;
  v1::GetResponse get;
  v1::ScanResponse scan;
  v1::StatusResponse status;
  v1::OpenSessionResponse open;
  v1::KeepSessionAliveResponse keep;
  v1::CloseSessionResponse close;
  v1::UploadReadSetResponse upload;
  v1::ListParkedResponse parked;
  v1::CancelResponse cancel;
  v1::ChangeAccessResponse change;
  v1::ListAccessResponse list;
  constexpr auto kRefused = grpc::StatusCode::UNAUTHENTICATED;
  EXPECT_EQ(code_of([&](auto* c) { return stub->Execute(c, {}, &execute); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->Get(c, {}, &get); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->Scan(c, {}, &scan); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->Status(c, {}, &status); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->OpenSession(c, {}, &open); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->KeepSessionAlive(c, {}, &keep); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->CloseSession(c, {}, &close); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->UploadReadSet(c, {}, &upload); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->ListParked(c, {}, &parked); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->Cancel(c, {}, &cancel); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->ChangeAccess(c, {}, &change); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->ListAccess(c, {}, &list); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) { return stub->ExecuteBatch(c, {})->Finish(); }), kRefused);
  EXPECT_EQ(code_of([&](auto* c) {
              auto stream = stub->Session(c);
              stream->WritesDone();
              return stream->Finish();
            }),
            kRefused);
}

// Also if nothing is sent on it: it ends before the answer to the revoke.
TEST_F(RightsTest, AnIdleStreamEndsWithItsLogin) {
  const auto teller = caller("teller", {.read = true, .write = true}), other = caller("other", {.read = true});
  const auto open_stream = [](const Caller& of, grpc::ClientContext* context) {
    of.log_in(context);
    auto stream = of.stub->Session(context);
    v1::SessionRequest request;
    request.set_session(of.open_raw_session());
    request.set_number(1);
    v1::Operation* get = request.mutable_rows()->add_transactions()->add_then();
    get->set_kind(v1::OPERATION_KIND_GET);
    get->set_key("k/1");
    v1::SessionResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    return stream;
  };
  grpc::ClientContext context, context_of_other;
  const auto stream = open_stream(*teller, &context), stays = open_stream(*other, &context_of_other);
  ASSERT_FALSE(root_->remove_user("teller"));
  v1::SessionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_TRUE(stays->WritesDone());
  EXPECT_TRUE(stays->Finish().ok());
}

// Only the exact form of the header counts.
TEST_F(RightsTest, AStrangeHeaderGivesNoRights) {
  const auto reader = caller("reader", {.read = true});
  const std::string good = options_.token;
  for (const std::string& header : std::vector<std::string>{
           "bearer " + good, "Bearer", "Bearer  " + good, "Basic " + good, good, "Bearer " + good + " ",
           "Bearer " + good + ",Bearer " + good, "Bearer " + good.substr(0, good.size() - 1), std::string()}) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", header);
    v1::StatusResponse response;
    EXPECT_EQ(reader->stub->Status(&context, {}, &response).error_code(), grpc::StatusCode::UNAUTHENTICATED) << header;
  }
}

TEST_F(RightsTest, AServerWithoutLoginsHasNoUsers) {
  Server open;
  ClientOptions options;
  options.endpoint = open.endpoint();
  const auto admin = std::move(*AccessAdmin::connect(options));
  EXPECT_EQ(error_of(admin->list_users()).code, ErrorCode::unimplemented);
  EXPECT_EQ(admin->remove_user("admin").code, ErrorCode::unimplemented);
}

}  // namespace
}  // namespace kilokv::client
