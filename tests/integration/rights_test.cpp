// Every call of the protocol, with every right and with none, as rows and as columns, against the real kilokvd: what is
// allowed and what is refused. That the table has all methods, changes and lists comes from the protocol's descriptor.
#include <google/protobuf/descriptor.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kilokv/access.hpp"
#include "kilokv/backup.hpp"
#include "kilokv/v1/kilokv.grpc.pb.h"
#include "kilokv/watch.hpp"
#include "tests/integration/client_fixture.hpp"
#include "tests/integration/server_fixture.hpp"
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

ErrorCode code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK: return ErrorCode::none;
    case grpc::StatusCode::CANCELLED: return ErrorCode::cancelled;
    case grpc::StatusCode::INVALID_ARGUMENT: return ErrorCode::invalid_argument;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorCode::deadline_exceeded;
    case grpc::StatusCode::NOT_FOUND: return ErrorCode::not_found;
    case grpc::StatusCode::PERMISSION_DENIED: return ErrorCode::permission_denied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return ErrorCode::resource_exhausted;
    case grpc::StatusCode::FAILED_PRECONDITION: return ErrorCode::failed_precondition;
    case grpc::StatusCode::ABORTED: return ErrorCode::aborted;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorCode::unimplemented;
    case grpc::StatusCode::INTERNAL: return ErrorCode::internal;
    case grpc::StatusCode::UNAVAILABLE: return ErrorCode::unavailable;
    case grpc::StatusCode::DATA_LOSS: return ErrorCode::data_loss;
    case grpc::StatusCode::UNAUTHENTICATED: return ErrorCode::unauthenticated;
    default: return ErrorCode::unknown;
  }
}

Error error_of(const grpc::Status& status, const grpc::ClientContext& context) {
  Error error;
  error.code = code_of(status.error_code());
  error.message = status.error_message();
  if (!status.ok()) {
    error.reason = v1::ErrorReason_Name(detail_of(context).reason()).substr(sizeof "ERROR_REASON_" - 1);
  }
  return error;
}

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

  // A call without the library.
  template <class Request, class Response>
  Error raw(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response* response) const {
    grpc::ClientContext context;
    log_in(&context);
    return error_of((stub.get()->*method)(&context, request, response), context);
  }
  void log_in(grpc::ClientContext* context) const {
    set_deadline(context);
    if (!token_.empty()) context->AddMetadata("authorization", "Bearer " + token_);
  }
  std::string open_raw_session() const {
    v1::OpenSessionResponse response;
    const Error error = raw(&v1::KiloKV::Stub::OpenSession, v1::OpenSessionRequest(), &response);
    return error ? std::string(16, 'x') : response.session();
  }

  const std::string name;
  const Rights rights;
  std::string other_session;  // of another user: 16 bytes
  std::string new_token;      // the id of the token that a row of the table has made
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
  std::string what;  // begins with the name of the method; for a change or a list, its kind follows
  Need need;
  std::function<Error(Caller*)> make;
  ErrorCode also = ErrorCode::none;  // with the right, the call may end with this as well
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
      {"RANGE_GET_REVERSE", Need::read, [](Batch* b) { b->range_get_reverse("k/", "k0", 10); }},
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
      {"RANGE_GET_REVERSE beyond", Need::nobody_has, [](Batch* b) { b->range_get_reverse("k/", "k1", 10); }},
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
template <class Request, class Response>
auto on_other_session(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
  return [method](Caller* caller) {
    Request request;
    Response response;
    request.set_session(caller->other_session);
    return caller->raw(method, request, &response);
  };
}

// A list that asks for the usual number of entries.
template <class Request, class Response>
auto raw_list(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
  return [method](Caller* caller) {
    Response response;
    return caller->raw(method, Request(), &response);
  };
}

Error upload(Caller* caller, const std::string& session) {
  v1::UploadReadSetRequest request;
  v1::UploadReadSetResponse response;
  request.mutable_id()->set_session(session);
  request.mutable_id()->set_number(1);
  request.add_keys("k/none");
  request.add_versions(0);
  return caller->raw(&v1::KiloKV::Stub::UploadReadSet, request, &response);
}

Error upload_and_execute(Caller* caller) {
  const std::string session = caller->open_raw_session();
  if (Error error = upload(caller, session)) return error;
  v1::ExecuteRequest execute;
  v1::ExecuteResponse executed;
  execute.mutable_id()->set_session(session);
  execute.mutable_id()->set_number(1);
  execute.set_uploaded_keys(1);
  *execute.mutable_transaction() = kilokv::add("k/1", 1);
  return caller->raw(&v1::KiloKV::Stub::Execute, execute, &executed);
}

// A transaction that needs no right: nothing can refuse it but the session.
v1::Transaction needs_nothing() {
  v1::Transaction transaction;
  v1::Operation* get = transaction.add_then();
  get->set_kind(v1::OPERATION_KIND_GET);
  get->set_key("all");
  return transaction;
}

Error execute_in_other_session(Caller* caller) {
  v1::ExecuteRequest request;
  v1::ExecuteResponse response;
  request.mutable_id()->set_session(caller->other_session);
  request.mutable_id()->set_number(1);
  *request.mutable_transaction() = needs_nothing();
  return caller->raw(&v1::KiloKV::Stub::Execute, request, &response);
}

Error execute_batch_in_other_session(Caller* caller) {
  v1::ExecuteBatchRequest request;
  v1::ExecuteBatchResponse response;
  request.mutable_id()->set_session(caller->other_session);
  request.mutable_id()->set_number(1);
  *request.mutable_rows()->add_transactions() = needs_nothing();
  grpc::ClientContext context;
  caller->log_in(&context);
  const auto stream = caller->stub->ExecuteBatch(&context, request);
  while (stream->Read(&response)) continue;
  return error_of(stream->Finish(), context);
}

Error stream_in_other_session(Caller* caller) {
  grpc::ClientContext context;
  caller->log_in(&context);
  const auto stream = caller->stub->Session(&context);
  v1::SessionRequest request;
  v1::SessionResponse response;
  request.set_session(caller->other_session);
  request.set_number(1);
  *request.mutable_rows()->add_transactions() = needs_nothing();
  Error in_stream;
  if (stream->Write(request) && stream->Read(&response) && response.has_error()) {
    in_stream.code = code_of(static_cast<grpc::StatusCode>(response.error().code()));
    in_stream.message = response.error().message();
    in_stream.reason = v1::ErrorReason_Name(response.error().detail().reason()).substr(sizeof "ERROR_REASON_" - 1);
  }
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  return in_stream ? in_stream : error_of(status, context);
}

Error cancel_in_other_session(Caller* caller) {
  v1::CancelRequest request;
  v1::CancelResponse response;
  request.mutable_transactions()->set_session(caller->other_session);
  request.mutable_transactions()->set_number(1);
  return caller->raw(&v1::KiloKV::Stub::Cancel, request, &response);
}

void add_reads(std::vector<Call>* calls) {
  const auto scan = [](const char* from, const char* to) {
    return [=](Caller* caller) { return error_of(caller->client->scan(from, to, [](const Pair&) { return true; })); };
  };
  const auto watch = [](const std::string& from, const std::string& to) {
    return [=](Caller* caller) {  // the first answer comes at once
      const auto stream = Watch::connect(caller->client->options());
      return stream ? (*stream)->read({.from = from, .to = to}, [](const WatchedPart&) { return false; })
                    : stream.error();
    };
  };
  const auto get = [](const std::vector<std::string>& keys) {
    return [=](Caller* caller) { return error_of(caller->client->get(keys)); };
  };
  calls->insert(calls->end(), {{"Get", Need::read, get({"k/1"})},
                               {"Get of keys inside and outside", Need::nobody_has, get({"k/1", "other"})},
                               {"Scan", Need::read, scan("k/", "k0")},
                               {"Scan of a part", Need::read, scan("k/1", "k/2")},
                               {"Scan beyond", Need::nobody_has, scan("k/", "k1")},
                               {"Scan from before", Need::nobody_has, scan("k", "k0")},
                               {"Scan without an end", Need::nobody_has, scan("k/", "")},
                               {"Scan of everything", Need::nobody_has, scan("", "")},
                               {"Watch", Need::read, watch("k/", "k0")},
                               {"Watch of a part", Need::read, watch("k/1", "k/2")},
                               {"Watch beyond", Need::nobody_has, watch("k/", "k1")},
                               {"Watch of everything", Need::nobody_has, watch("", "")}});
}

void add_sessions(std::vector<Call>* calls) {
  using Stub = v1::KiloKV::Stub;
  calls->insert(
      calls->end(),
      {{"OpenSession", Need::nothing,
        [](Caller* c) {
          v1::OpenSessionResponse response;
          return c->raw(&Stub::OpenSession, v1::OpenSessionRequest(), &response);
        }},
       {"KeepSessionAlive", Need::nothing, on_own_session<v1::KeepSessionAliveRequest>(&Stub::KeepSessionAlive)},
       {"CloseSession", Need::nothing, on_own_session<v1::CloseSessionRequest>(&Stub::CloseSession)},
       {"AttachSession", Need::nothing, on_own_session<v1::AttachSessionRequest>(&Stub::AttachSession)},
       {"AttachSession to another user's", Need::nobody_has,
        on_other_session<v1::AttachSessionRequest>(&Stub::AttachSession)},
       {"UploadReadSet", Need::nothing, [](Caller* c) { return upload(c, c->open_raw_session()); }},
       {"UploadReadSet, and Execute beside it", Need::both, upload_and_execute},
       {"KeepSessionAlive of another user's", Need::nobody_has,
        on_other_session<v1::KeepSessionAliveRequest>(&Stub::KeepSessionAlive)},
       {"CloseSession of another user's", Need::nobody_has,
        on_other_session<v1::CloseSessionRequest>(&Stub::CloseSession)},
       {"UploadReadSet into another user's session", Need::nobody_has,
        [](Caller* c) { return upload(c, c->other_session); }},
       {"Execute in another user's session", Need::nobody_has, execute_in_other_session},
       {"ExecuteBatch in another user's session", Need::nobody_has, execute_batch_in_other_session},
       {"Session of another user", Need::nobody_has, stream_in_other_session},
       {"Cancel in another user's session", Need::nobody_has, cancel_in_other_session},
       {"Cancel in one's own session", Need::nothing,
        [](Caller* c) { return error_of(c->client->cancel(c->session->id(), 1, {})); }, ErrorCode::not_found}});
}

void add_server_calls(std::vector<Call>* calls) {
  const auto cancel = [](const std::string& client, const std::string& prefix, std::uint64_t older_than_us) {
    return [=](Caller* caller) {
      const ParkedFilter filter{.client = client == "self" ? "user:" + caller->name : client,
                                .key_prefix = prefix,
                                .older_than_us = older_than_us};
      return error_of(caller->client->cancel_parked(filter));
    };
  };
  calls->insert(
      calls->end(),
      {{"Status", Need::metrics, [](Caller* c) { return error_of(c->client->status()); }},
       {"ListHotKeys", Need::metrics, raw_list(&v1::KiloKV::Stub::ListHotKeys)},
       {"ListSlow", Need::metrics, raw_list(&v1::KiloKV::Stub::ListSlow)},
       {"ListSessions", Need::metrics, raw_list(&v1::KiloKV::Stub::ListSessions)},
       {"ListConnections", Need::metrics, raw_list(&v1::KiloKV::Stub::ListConnections)},
       {"Backup", Need::admin,
        [](Caller* c) {
          const auto stream = BackupStream::connect(c->client->options());
          return stream ? (*stream)->read({}, [](const BackupPiece&) { return true; }) : stream.error();
        }},
       {"ListParked", Need::admin, [](Caller* c) { return error_of(c->client->list_parked()); }},
       {"Cancel of a parked transaction", Need::admin,
        [](Caller* c) { return error_of(c->client->cancel_parked(std::uint64_t{1})); }, ErrorCode::not_found},
       {"Cancel of all with a prefix", Need::admin, cancel("", "k/", 0), ErrorCode::not_found},
       {"Cancel of all old ones", Need::admin, cancel("", "", 1), ErrorCode::not_found},
       {"Cancel of what others have parked", Need::admin, cancel("user:somebody", "", 0), ErrorCode::not_found},
       {"Cancel of what is one's own", Need::nothing, cancel("self", "", 0), ErrorCode::not_found},
       {"Cancel of what is one's own, with a prefix", Need::nothing, cancel("self", "k/", 1), ErrorCode::not_found}});
}

// In an order in which each finds what it changes.
void add_access_calls(std::vector<Call>* calls) {
  const auto role = [] { return RoleRights{.role = "new", .read = {keys_with_prefix("k/")}, .write = {}}; };
  const auto user = [] {
    UserChange change;
    change.user = "new";
    return change;
  };
  calls->insert(
      calls->end(),
      {{"ChangeAccess: grant", Need::admin, [=](Caller* c) { return c->admin->grant(role()); }},
       {"ChangeAccess: revoke", Need::admin, [=](Caller* c) { return c->admin->revoke(role()); }},
       {"ChangeAccess: user", Need::admin, [=](Caller* c) { return c->admin->change_user(user()); }},
       {"ChangeAccess: create_token", Need::admin,
        [](Caller* c) {
          const auto token = c->admin->create_token("new", 1000000);
          if (token) c->new_token = token->id;
          return error_of(token);
        }},
       {"ListAccess: KIND_USERS", Need::admin, [](Caller* c) { return error_of(c->admin->list_users()); }},
       {"ListAccess: KIND_ROLES", Need::admin, [](Caller* c) { return error_of(c->admin->list_roles()); }},
       {"ListAccess: KIND_TOKENS", Need::admin, [](Caller* c) { return error_of(c->admin->list_tokens()); }},
       {"SetLogLevel", Need::admin, [](Caller* c) { return error_of(c->client->log_level()); }},
       {"SetLogLevel to a level", Need::admin, [](Caller* c) { return error_of(c->client->set_log_level("debug")); }},
       {"ChangeAccess: remove_token", Need::admin,
        [](Caller* c) { return c->admin->remove_token(c->new_token.empty() ? "0123456789abcdef" : c->new_token); }},
       {"ChangeAccess: remove_user", Need::admin, [](Caller* c) { return c->admin->remove_user("new"); }},
       {"ChangeAccess: remove_role", Need::admin, [](Caller* c) { return c->admin->remove_role("new"); }}});
}

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  add_transactions(&calls);
  add_reads(&calls);
  add_sessions(&calls);
  add_server_calls(&calls);
  add_access_calls(&calls);
  return calls;
}

const google::protobuf::ServiceDescriptor& service() {
  return *v1::ExecuteRequest::descriptor()->file()->FindServiceByName("KiloKV");
}

class RightsTest : public ::testing::Test {
 protected:
  RightsTest() : token_file_(folder_.path("admin.token")), server_({"--login", "on", "--bootstrap-file", token_file_}) {
    options_.endpoint = server_.endpoint();
    std::ifstream(token_file_) >> options_.token;
    root_ = std::move(*AccessAdmin::connect(options_));
  }

  const test::TestFolder& folder() const { return folder_; }

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
    const auto token = root_->create_token(name, 0);
    options.token = token->token;
    auto made = std::make_unique<Caller>(name, rights, options);
    made->new_token = token->id;
    return made;
  }
  // Its user is no other test's. It is open as long as the server runs.
  std::string session_of_stranger() {
    if (stranger_ == nullptr) {
      stranger_ = caller("stranger", {.read = true, .write = true});
      strange_session_ = stranger_->open_raw_session();
    }
    return strange_session_;
  }

  const test::TestFolder folder_;
  const std::string token_file_;
  Server server_;
  ClientOptions options_;
  std::unique_ptr<AccessAdmin> root_;

 private:
  std::unique_ptr<Caller> stranger_;
  std::string strange_session_;
};

TEST(RightsTable, HasEveryMethodChangeAndList) {
  std::set<std::string> methods, kinds, all_methods, all_kinds;
  for (const Call& call : all_calls()) {
    methods.insert(call.what.substr(0, call.what.find_first_of(" ,:")));
    if (call.what.find(": ") != std::string::npos) kinds.insert(call.what);
  }
  for (int i = 0; i < service().method_count(); ++i) all_methods.insert(service().method(i)->name());
  EXPECT_EQ(methods, all_methods);
  const auto* changes = v1::ChangeAccessRequest::descriptor()->oneof_decl(0);
  for (int i = 0; i < changes->field_count(); ++i) all_kinds.insert("ChangeAccess: " + changes->field(i)->name());
  const auto* lists = v1::ListAccessRequest::Kind_descriptor();
  for (int i = 0; i < lists->value_count(); ++i) all_kinds.insert("ListAccess: " + lists->value(i)->name());
  EXPECT_EQ(kinds, all_kinds);
}

TEST_F(RightsTest, EveryCallNeedsItsRight) {
  std::vector<std::unique_ptr<Caller>> callers;
  callers.push_back(caller("nobody", {}));
  callers.push_back(caller("reader", {.read = true}));
  callers.push_back(caller("writer", {.write = true}));
  callers.push_back(caller("teller", {.read = true, .write = true}));
  callers.push_back(caller("boss", {.admin = true}));
  callers.push_back(caller("watcher", {.metrics = true}));
  for (const auto& caller : callers) caller->other_session = session_of_stranger();
  for (const Call& call : all_calls()) {
    for (const auto& caller : callers) {
      const Error error = call.make(caller.get());
      const std::string who = call.what + " by " + caller->name + ": " + error.message;
      if (!caller->rights.enough(call.need)) {
        EXPECT_EQ(error.code, ErrorCode::permission_denied) << who;
        EXPECT_EQ(error.reason, "RIGHT_MISSING") << who;
      } else if (error.code != call.also) {
        EXPECT_EQ(error.code, ErrorCode::none) << who;
      }
    }
  }
}

// Whoever has lost the login has no call at all. The caller has had every right, and an open stream.
TEST_F(RightsTest, NobodyCallsAfterTheLoginIsTakenAway) {
  const auto caller = this->caller("caller", {.read = true, .write = true, .admin = true, .metrics = true});
  caller->other_session = session_of_stranger();
  ASSERT_FALSE(upload_and_execute(caller.get()));
  ASSERT_FALSE(root_->remove_token(caller->new_token));
  for (const Call& call : all_calls()) {
    Error error = call.make(caller.get());
    // A stream that was open says why it ends. Then its connection is cut, which a call at that moment notices.
    for (int i = 0; i < 100 && error.code == ErrorCode::unavailable; ++i) error = call.make(caller.get());
    const bool refused = error.code == ErrorCode::unauthenticated || error.code == ErrorCode::permission_denied;
    EXPECT_TRUE(refused) << call.what << ": " << to_string(error.code) << ' ' << error.message;
  }
  EXPECT_EQ(error_of(caller->client->get({"all"})).reason, "LOGIN_WRONG");
}

// The library does not connect, so these calls go without it: an empty message for each method.
TEST_F(RightsTest, NobodyCallsWithoutALogin) {
  ClientOptions options = options_;
  options.token.clear();
  const auto refused = Client::connect(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unauthenticated);
  EXPECT_EQ(refused.error().reason, "LOGIN_MISSING");
  grpc::GenericStub stub(grpc::CreateChannel(options.endpoint, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < service().method_count(); ++i) {
    const std::string method = service().method(i)->name();
    grpc::ClientContext context;
    set_deadline(&context);
    const grpc::Slice empty;
    const grpc::ByteBuffer request(&empty, 1);
    grpc::ByteBuffer answer;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, "/" + service().full_name() + "/" + method, {}, &request, &answer,
                   [&ended](const grpc::Status& status) { ended.set_value(status); });
    const Error error = error_of(ended.get_future().get(), context);
    EXPECT_EQ(error.code, ErrorCode::unauthenticated) << method << ": " << error.message;
    EXPECT_EQ(error.reason, "LOGIN_MISSING") << method;
  }
}

struct Place {
  const char* what;
  bool inside;
  bool writes;
  std::function<void(Batch*)> fill;
};

// Rights to the keys from r/1 to before r/3, in two ranges that touch, and to those from z on.
TEST_F(RightsTest, ARightMayBeARange) {
  const std::vector<KeyRange> ranges = {{"r/1", "r/2"}, {"r/2", "r/3"}, {"z", ""}};
  const std::vector<Place> places = {
      {"the first key", true, false, [](Batch* b) { b->get(b->key("r/1")); }},
      {"the last key", true, false, [](Batch* b) { b->get(b->key("r/2\xff")); }},
      {"the end", false, false, [](Batch* b) { b->get(b->key("r/3")); }},
      {"the key before", false, false, [](Batch* b) { b->get(b->key("r/0\xff")); }},
      {"without an end", true, false, [](Batch* b) { b->get(b->key("zzz")); }},
      {"a range over both", true, false, [](Batch* b) { b->range_get("r/1", "r/3", 10); }},
      {"a range that begins before", false, false, [](Batch* b) { b->range_get("r/", "r/2", 10); }},
      {"a range that ends later", false, false, [](Batch* b) { b->range_get("r/2", "r/3a", 10); }},
      {"a range over the gap", false, false, [](Batch* b) { b->range_get("r/1", "", 10); }},
      {"a range without an end", true, false, [](Batch* b) { b->range_get("z", "", 10); }},
      {"a guard at the end", false, false,
       [](Batch* b) {
         b->guard_absent(b->key("r/3"));
         b->get(b->key("r/1"));
       }},
      {"a guard against a key at the end", false, false,
       [](Batch* b) {
         b->guard_keys(b->key("r/1"), Compare::equal, b->key("r/3"));
         b->get(b->key("r/1"));
       }},
      {"a guard of a range that ends later", false, false,
       [](Batch* b) {
         b->guard_range_unchanged("r/1", "r/4", 1);
         b->get(b->key("r/1"));
       }},
      {"PUT inside", true, true, [](Batch* b) { b->put(b->key("r/1"), std::int64_t{1}); }},
      {"PUT at the end", false, true, [](Batch* b) { b->put(b->key("r/3"), std::int64_t{1}); }},
      {"ADD at the end", false, true, [](Batch* b) { b->add(b->key("r/3"), std::int64_t{1}); }},
      {"DELETE before", false, true, [](Batch* b) { b->del(b->key("r/0")); }},
      {"DELETE_RANGE over both", true, true, [](Batch* b) { b->delete_range("r/1", "r/3", 10); }},
      {"DELETE_RANGE that ends later", false, true, [](Batch* b) { b->delete_range("r/1", "r/4", 10); }},
      {"DELETE_RANGE of everything", false, true, [](Batch* b) { b->delete_range("", "", 10); }},
  };
  const auto reads = caller("reads", {}), writes = caller("writes", {});
  ASSERT_FALSE(root_->grant({.role = "reads", .read = ranges, .write = {}}));
  ASSERT_FALSE(root_->grant({.role = "writes", .read = {}, .write = ranges}));
  for (const Place& place : places) {
    for (const Encoding encoding : {Encoding::rows, Encoding::columns}) {
      for (const auto& caller : {reads.get(), writes.get()}) {
        Batch batch;
        batch.begin();
        place.fill(&batch);
        batch.end();
        const Error error = error_of(caller->client->execute(batch, {.timeout_us = {}, .encoding = encoding}));
        const bool allowed = place.inside && place.writes == (caller == writes.get());
        EXPECT_EQ(error.code, allowed ? ErrorCode::none : ErrorCode::permission_denied)
            << place.what << " by " << caller->name << ": " << error.message;
      }
    }
  }
  const auto scan = [&](const char* from, const char* to) {
    return error_of(reads->client->scan(from, to, [](const Pair&) { return true; })).code;
  };
  EXPECT_EQ(scan("r/1", "r/3"), ErrorCode::none);
  EXPECT_EQ(scan("z", ""), ErrorCode::none);
  EXPECT_EQ(scan("r/0", "r/3"), ErrorCode::permission_denied);
  EXPECT_EQ(scan("r/1", "r/3a"), ErrorCode::permission_denied);
  EXPECT_EQ(scan("r/1", ""), ErrorCode::permission_denied);
  // What is revoked must be a range of the role. The rest stays.
  EXPECT_EQ(root_->revoke({.role = "reads", .read = {{"r/1", "r/3"}}, .write = {}}).code, ErrorCode::not_found);
  ASSERT_FALSE(root_->revoke({.role = "reads", .read = {{"r/1", "r/2"}}, .write = {}}));
  EXPECT_EQ(scan("r/1", "r/2"), ErrorCode::permission_denied);
  EXPECT_EQ(scan("r/2", "r/3"), ErrorCode::none);
}

// Keys are data: the admin right alone does not show them.
TEST_F(RightsTest, TheListOfParkedShowsOnlyKeysThatMayBeRead) {
  const auto teller = caller("teller", {.read = true, .write = true}), boss = caller("boss", {.admin = true});
  for (const char* key : {"k/8", "k/9"}) {
    Batch batch;
    batch.begin({.precedence = 0, .wait_timeout_us = 60'000'000});
    batch.guard_exists(batch.key(key), OnFalse::wait);
    batch.get(batch.key(key));
    batch.end();
    teller->session->execute_async(batch, [](const Progress&) {});
  }
  const auto keys_of_list = [&boss]() {
    std::set<std::string> keys;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (std::size_t size = 0; size < 2 && std::chrono::steady_clock::now() < deadline;) {
      const auto parked = boss->client->list_parked();
      EXPECT_TRUE(parked) << parked.error().message;
      if (!parked) break;
      size = parked->size();
      keys.clear();
      for (const ParkedTransaction& one : *parked) keys.insert(one.guard_key);
      // Nothing wakes somebody who waits for a transaction to be parked.
      if (size < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return keys;
  };
  EXPECT_EQ(keys_of_list(), std::set<std::string>{""});
  ASSERT_FALSE(root_->grant({.role = "boss", .read = {keys_with_prefix("k/9")}, .write = {}}));
  EXPECT_EQ(keys_of_list(), (std::set<std::string>{"", "k/9"}));
  ASSERT_FALSE(root_->grant({.role = "boss", .read = {keys_with_prefix("k/")}, .write = {}}));
  EXPECT_EQ(keys_of_list(), (std::set<std::string>{"k/8", "k/9"}));
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

// A batch has few of the transactions that two users have queued. Each gets its part, by weight, of every batch that
// has some of both.
TEST_F(RightsTest, UsersShareBatchesByWeight) {
  const std::string token_file = folder().path("other.token");
  Server small({"--login", "on", "--bootstrap-file", token_file, "--batch-max-transactions", "64"});
  ClientOptions options;
  options.endpoint = small.endpoint();
  std::ifstream(token_file) >> options.token;
  const auto root = std::move(*AccessAdmin::connect(options));
  ASSERT_FALSE(root->grant({.role = "adds", .read = {}, .write = {keys_with_prefix("")}}));
  struct Sender {
    std::unique_ptr<Client> client;
    std::map<std::uint64_t, int> batches;  // how many of its transactions are in each
  };
  const auto sender = [&](const std::string& name, std::uint32_t weight) {
    UserChange user;
    user.user = name;
    user.add_roles = {"adds"};
    user.weight = weight;
    EXPECT_FALSE(root->change_user(user));
    ClientOptions of_user = options;
    of_user.token = root->create_token(name, 0)->token;
    return Sender{std::move(*Client::connect(of_user)), {}};
  };
  Sender one = sender("one", 0), three = sender("three", 3);
  EXPECT_EQ(root->list_users()->at(1).weight, 1u);
  EXPECT_EQ(root->list_users()->at(2).weight, 3u);
  Batch batch;
  for (int i = 0; i < 8192; ++i) {
    batch.begin();
    batch.add(batch.key("k"), std::int64_t{1});
    batch.end();
  }
  const auto send = [&batch](Sender* who) {
    const auto results = who->client->execute(batch);
    ASSERT_TRUE(results) << results.error().message;
    for (std::size_t i = 0; i < batch.size(); ++i) ++who->batches[results->at(i).batch];
  };
  // The request of one may be decoded so late that the other has run.
  int shared = 0, of_one = 0, of_three = 0;
  for (int round = 0; round < 20 && shared <= 20 && !HasFailure(); ++round) {
    one.batches.clear();
    three.batches.clear();
    std::thread other([&] { send(&one); });
    send(&three);
    other.join();
    shared = of_one = of_three = 0;
    for (const auto& [number, count] : one.batches) {
      const auto found = three.batches.find(number);
      if (found == three.batches.end()) continue;
      ++shared;
      of_one += count;
      of_three += found->second;
    }
  }
  ASSERT_GT(shared, 20) << "in no round were they in the queue together for 20 batches";
  EXPECT_NEAR(static_cast<double>(of_three) / of_one, 3, 0.6) << of_one << " and " << of_three;
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
