// Makes a stored data directory for the upgrade test, with the kilokvd in $KILOKV_BIN_DIR:
//   make_fixture FOLDER
// FOLDER is new. It gets data/, the directory as a killed server has left it, with a torn end of the log, and
// expected/, what the same kilokvd answers about it. It is packed into tests/upgrade/fixtures (docs/compatibility.md).
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/upgrade/work.hpp"

namespace kilokv::upgrade {
namespace {

void need(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.error_message());
}

class Maker {
 public:
  explicit Maker(const std::filesystem::path& folder) : folder_(folder) {
    std::filesystem::create_directories(folder_ / "expected");
  }

  void make() {
    {
      test::TestServer server({"--login", "on", "--bootstrap-file", bootstrap_.path("admin.token"),
                               "--checkpoint-interval", "1s", "--tombstone-retention", "24h"});
      make_users(&server);
      const Caller caller(server.endpoint(), token_);
      work(caller, 1, kBeforeCheckpoint);
      wait_for_checkpoint(caller);
      server.stop(SIGTERM);
      std::filesystem::copy(server.data_directory(), folder_ / "checkpointed",
                            std::filesystem::copy_options::recursive);
    }
    work_until_torn();
    std::filesystem::remove_all(folder_ / "checkpointed");
    expect();
  }

 private:
  void keep(const std::string& name, const google::protobuf::Message& message) const {
    std::string text;
    google::protobuf::TextFormat::PrintToString(message, &text);
    keep(name, text);
  }
  void keep(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / "expected" / name, std::ios::binary) << text;
  }

  void make_users(test::TestServer* server) {
    const std::string endpoint = server->endpoint();
    while (!std::filesystem::exists(bootstrap_.path("admin.token"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the server writes it; nothing wakes a reader of it
    }
    std::string admin = read_file(bootstrap_.path("admin.token"));
    admin.resize(admin.find_last_not_of('\n') + 1);
    const Caller caller(endpoint, admin);
    const auto change = [&caller](const v1::ChangeAccessRequest& request) {
      v1::ChangeAccessResponse response;
      need(caller.call(&v1::KiloKV::Stub::ChangeAccess, request, &response), "ChangeAccess");
      return response.token();
    };
    v1::ChangeAccessRequest request;
    request.mutable_grant()->set_role("works");
    request.mutable_grant()->add_read();
    request.mutable_grant()->add_write();
    request.mutable_grant()->set_admin(true);
    request.mutable_grant()->set_metrics(true);
    change(request);
    request.mutable_grant()->Clear();
    request.mutable_grant()->set_role("reads");
    request.mutable_grant()->add_read()->set_from("account");
    change(request);
    request.mutable_user()->set_user("teller");
    request.mutable_user()->add_add_roles("works");
    request.mutable_user()->add_add_roles("reads");
    request.mutable_user()->add_add_certificates("teller.example");
    request.mutable_user()->set_weight(3);
    change(request);
    request.mutable_create_token()->set_user("teller");
    token_ = change(request);
    keep("token", token_);

    v1::OpenSessionRequest open;
    open.set_lease_us(std::uint64_t{24} * 3600 * 1000000);
    v1::OpenSessionResponse opened;
    need(Caller(endpoint, token_).call(&v1::KiloKV::Stub::OpenSession, open, &opened), "OpenSession");
    session_ = opened.session();
    keep("session", session_);
  }

  // Keeps each answer.
  void work(const Caller& caller, std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t number = from; number <= to; ++number) {
      v1::ExecuteRequest sent = request(session_, number);
      if (number > kAcknowledged) sent.mutable_id()->set_acknowledged_through(kAcknowledged);
      v1::ExecuteResponse response;
      need(caller.call(&v1::KiloKV::Stub::Execute, sent, &response), "request " + std::to_string(number));
      keep("answer-" + std::to_string(number), response);
    }
  }

  void wait_for_checkpoint(const Caller& caller) const {
    v1::StatusResponse status;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the server does not tell of checkpoints
      need(caller.call(&v1::KiloKV::Stub::Status, {}, &status), "Status");
    } while (status.position().checkpoint_batch() < status.position().durable_batch());
  }

  // What is after the checkpoint: the rest of the requests, one of which is half decided, and half of a write.
  void work_until_torn() const {
    ::setenv("KILOKV_FAIL_POINTS",
             ("storage.append.write=kill:" + std::to_string(kRequests - kBeforeCheckpoint + 2)).c_str(), 1);
    test::TestServer server({"--login", "on", "--checkpoint-interval", "1h", "--tombstone-retention", "24h"},
                            folder_ / "checkpointed");
    ::unsetenv("KILOKV_FAIL_POINTS");
    const Caller caller(server.endpoint(), token_);
    work(caller, kBeforeCheckpoint + 1, kRequests);

    grpc::ClientContext context;
    caller.prepare(&context);
    const auto stream = caller.stub().ExecuteBatch(&context, half_request(session_));
    v1::ExecuteBatchResponse first;
    if (!stream->Read(&first)) throw std::runtime_error("the half that does not wait has no answer");
    keep("answer-half", first);

    v1::ExecuteRequest torn;
    *torn.mutable_transaction() = transaction(0);
    v1::ExecuteResponse response;
    if (caller.call(&v1::KiloKV::Stub::Execute, torn, &response).ok())
      throw std::runtime_error("the last write is not torn");
    context.TryCancel();
    server.kill();
    for (const auto& file : std::filesystem::directory_iterator(server.data_directory())) {
      // RocksDB's own log names folders of this machine, and nothing reads it.
      if (file.path().filename().string().rfind("LOG", 0) == 0) continue;
      std::filesystem::create_directories(folder_ / "data");
      std::filesystem::copy_file(file.path(), folder_ / "data" / file.path().filename());
    }
  }

  // What the version that made the directory says about it.
  void expect() const {
    test::TestServer server({"--login", "on", "--checkpoint-interval", "1h", "--tombstone-retention", "24h"},
                            folder_ / "data");
    const Caller caller(server.endpoint(), token_);
    v1::StatusResponse status;
    do {
      need(caller.call(&v1::KiloKV::Stub::Status, {}, &status), "Status");
    } while (status.position().durable_batch() == 0);
    keep("position", status.position());
    keep("sessions", std::to_string(status.sessions().sessions()));
    v1::ScanResponse page;
    need(caller.call(&v1::KiloKV::Stub::Scan, {}, &page), "Scan");
    keep("scan", page);
    for (const int kind : {0, 1, 2}) {
      v1::ListAccessRequest request;
      request.set_kind(static_cast<v1::ListAccessRequest::Kind>(kind));
      v1::ListAccessResponse response;
      need(caller.call(&v1::KiloKV::Stub::ListAccess, request, &response), "ListAccess");
      keep("access-" + std::to_string(kind), response);
    }
    v1::GetRequest gone;
    for (std::uint64_t i = 0; i < 7; ++i) gone.add_keys(key("gone", i));
    v1::GetResponse response;
    need(caller.call(&v1::KiloKV::Stub::Get, gone, &response), "Get");
    keep("gone", response);
  }

  const std::filesystem::path folder_;
  const test::TestFolder bootstrap_;
  std::string token_, session_;
};

}  // namespace
}  // namespace kilokv::upgrade

int main(int count, char** words) {
  if (count != 2 || std::filesystem::exists(words[1])) {
    std::fprintf(stderr, "usage: make_fixture FOLDER, a new one\n");
    return 2;
  }
  try {
    kilokv::upgrade::Maker(words[1]).make();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_fixture: %s\n", error.what());
    return 1;
  }
  return 0;
}
