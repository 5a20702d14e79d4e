// The requests of every method, through the real handlers (server/service). The first byte chooses the method and the
// login: a server without logins, or one with logins, on which the caller is an administrator, a user with few rights,
// or nobody. The rest is the message, or for the stream of sessions several messages, each after its length (two
// bytes). The database behind the handlers checks what they pass on, and answers at once, so that an input always has
// the same effect.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/service/service.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/service/fake_database.hpp"
#include "tls/token.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;

// How a call logs in. On a server without logins, everybody may do everything.
enum class As : std::uint8_t { without_logins, admin, few_rights, nobody };
constexpr std::size_t kWays = 4;

// The users of a server with logins, and their tokens.
class Users {
 public:
  explicit Users(Access* access) {
    add({.name = "admin", .read = {KeyRange{}}, .write = {KeyRange{}}, .admin = true, .metrics = true}, &admin_);
    add({.name = "few", .read = {KeyRange{"a", "b"}}, .write = {}, .admin = false, .metrics = false}, &few_);
    access->recovered(std::move(table_));
  }
  // Empty: the call has none.
  std::string token_of(As as) const {
    if (as == As::admin) return admin_;
    return as == As::few_rights ? few_ : std::string();
  }

 private:
  void add(const Role& role, std::string* token_text) {
    const std::optional<tls::NewToken> token = tls::make_token();
    KILOKV_CHECK(token.has_value());
    AccessChange change{.kind = AccessChange::Kind::put_role, .role = role, .user = {}, .token = {}};
    change.user = {.name = role.name, .roles = {role.name}, .certificates = {}};
    change.token.id = token->parts.id;
    change.token.user = role.name;
    change.token.secret_hash = token->parts.secret_hash;
    for (const auto kind :
         {AccessChange::Kind::put_role, AccessChange::Kind::put_user, AccessChange::Kind::put_token}) {
      change.kind = kind;
      table_.apply(change);
    }
    *token_text = token->text;
  }

  AccessTable table_;
  std::string admin_, few_;
};

// A backup of a few frames, which are not those of a real one.
class FewFrames final : public BackupSource {
 public:
  const BackupId& id() const override { return id_; }
  BatchNumber boundary() const override { return 1; }
  std::uint64_t estimated_bytes() const override { return kFrames * kFrameBytes; }
  bool is_lost() const override { return false; }
  Status seek(const BackupPoint& point) override {
    if (point.frame >= kFrames)
      return Status::invalid({"after.frame", "a frame of it", std::to_string(point.frame), ""});
    next_ = point.frame + 1;
    return {};
  }
  Result<bool> next(std::string* frame) override {
    frame->assign(kFrameBytes, 'f');
    return next_++ < kFrames;
  }

 private:
  static constexpr std::uint64_t kFrames = 3, kFrameBytes = 100;
  const BackupId id_{1, 2, 3};
  std::uint64_t next_ = 0;
};

// Also checks that no call comes here whose login may not make it. Rights to keys are checked behind this interface.
class CheckingDatabase final : public Database {
 public:
  CheckingDatabase() : users_(&access_) {}
  // Who makes the next call. Requires: no call runs.
  void expect(As as) { as_ = as; }
  std::string token_of(As as) const { return users_.token_of(as); }

  const engine::KeyHashSecret& key_secret() const override { return kSecret; }
  const DatabaseOptions& options() const override { return options_; }
  std::unique_ptr<Request> acquire_request() override { return std::make_unique<Request>(); }

  Result<std::uint64_t> upload(const ReadSetChunk& chunk) override {
    check_caller();
    KILOKV_CHECK(chunk.identity.session && chunk.identity.number >= 1);
    KILOKV_CHECK(!chunk.keys.empty() && chunk.keys.size() == chunk.versions.size());
    for (std::size_t i = 0; i < chunk.keys.size(); ++i) {
      KILOKV_CHECK(!chunk.keys[i].empty() && chunk.keys[i].size() <= engine::kKeyBytesMax);
      KILOKV_CHECK(chunk.versions[i] <= kVersionMax);
    }
    return chunk.keys.size();
  }
  SubmittedRequest submit(std::unique_ptr<Request> request) override {
    check_caller();
    KILOKV_CHECK((request->login == nullptr) == (as_ == As::without_logins));
    KILOKV_CHECK(!request->identity.session || request->identity.number >= 1);
    if (request->uploaded_keys > 0) {
      KILOKV_CHECK(request->transactions.size() == 1 && request->identity.session);
    } else {
      KILOKV_CHECK(engine::validate(request->transactions, limits()).ok());
    }
    request->sink->results(test::CommittedSlice(static_cast<std::uint32_t>(request->transactions.size())), true);
    return {};
  }
  void abandon(const SubmittedRequest&) override {}
  void open_session(std::shared_ptr<Client>, std::shared_ptr<const Login>, DurationUs lease_us,
                    std::function<void(Result<SessionId>, DurationUs)> done) override {
    check_caller();
    KILOKV_CHECK(lease_us >= options_.session_lease_us_min && lease_us <= options_.session_lease_us_max);
    done(SessionId{}, lease_us);
  }
  Status keep_alive(const std::shared_ptr<Client>&, const HeldSession&) override { return {}; }
  Status check_session(const std::shared_ptr<Client>&, const HeldSession&) const override { return {}; }
  const Access& access() const override { return access_; }
  Access::Table durable_access() override { return access_.latest(); }
  TimeUs time_of_day() const override { return unix_us_now(); }
  void change_access(std::shared_ptr<Client>, AccessEdit edit, std::function<void(Result<BatchNumber>)> done,
                     AccessChangeBegins begins = {}) override {
    KILOKV_CHECK(as_ == As::admin);
    const Result<AccessChange> change = edit(*access_.latest());
    if (!change.ok()) return done(change.status());
    // It is not made, so that the next call finds the same users.
    const Result<AccessTable> table = access_.latest()->after({&*change, 1}, true);
    if (!table.ok()) return done(table.status());
    KILOKV_CHECK(table->has_admin(true));
    if (begins) begins(1, "");
    done(BatchNumber{1});
  }
  void close_session(std::shared_ptr<Client>, std::shared_ptr<const Login>, const HeldSession&,
                     std::function<void(Status)> done) override {
    done({});
  }
  // Lists three requests. The second one has the results that the position leaves.
  void attach_session(std::shared_ptr<Client>, std::shared_ptr<const Login> login, const AttachTarget& target,
                      std::function<void(Result<SessionList>)> done, AttachBegins begins = {}) override {
    check_caller();
    KILOKV_CHECK((login == nullptr) == (as_ == As::without_logins));
    KILOKV_CHECK(target.bytes_max > 0);
    if (begins && target.holder == 0) begins(1, 1);
    SessionList list{.holder = std::max<std::uint64_t>(target.holder, 1), .lease_us = 1000};
    for (std::uint64_t number = 1; number <= 3; ++number) {
      if (number < target.from.number) continue;
      ListedRequest& listed = list.requests.emplace_back();
      listed.number = number;
      listed.transactions = 4;
      listed.in_flight = true;
      listed.decided = number == 2 ? 3 : 0;
      listed.parked = number == 1 ? 4 : 1;
      const std::uint64_t shown = number == target.from.number ? target.from.results : 0;
      if (shown >= listed.decided) continue;
      listed.shown = static_cast<std::uint32_t>(shown);
      listed.results.push_back(std::make_shared<test::CommittedSlice>(listed.decided));
    }
    done(std::move(list));
  }
  Status add_results(const AttachTarget&, SessionList*) const override { return {}; }
  void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) override {
    check_caller();
    KILOKV_CHECK((request.login == nullptr) == (as_ == As::without_logins));
    KILOKV_CHECK(request.from.size() <= engine::kKeyBytesMax && request.to.size() <= engine::kKeyBytesMax);
    KILOKV_CHECK(request.to.empty() || request.from < request.to);
    KILOKV_CHECK(request.limit <= options_.scan_pairs_max);
    ScanPage page;
    page.pairs.push_back(
        {.key = request.from, .type = ValueType::bytes, .integer = 0, .bytes = request.to, .version = 3});
    done(std::move(page));
  }
  void list_parked(std::shared_ptr<Client>, std::uint64_t after_id, std::uint32_t limit,
                   std::function<void(Result<ParkedPage>)> done) override {
    KILOKV_CHECK(as_ == As::without_logins || as_ == As::admin);
    KILOKV_CHECK(limit >= 1 && limit <= 10000);
    ParkedPage page{std::vector<ParkedTransaction>(std::min(limit, 3u)), limit > 3};
    for (ParkedTransaction& one : page.parked) one.id = ++after_id;
    done(std::move(page));
  }
  void cancel(std::shared_ptr<Client> client, CancelTarget target,
              std::function<void(Result<std::uint64_t>)> done) override {
    check_caller();
    const bool own = target.session || (target.filter && target.filter->client == client->name);
    KILOKV_CHECK(own || as_ != As::few_rights);
    KILOKV_CHECK(target.indices.size() <= limits().request_transactions_max);
    if (target.filter) {
      KILOKV_CHECK(target.filter->older_than_us >= 0);
      KILOKV_CHECK(!target.filter->client.empty() || !target.filter->key_prefix.empty() ||
                   target.filter->older_than_us > 0);
    }
    done(std::uint64_t{1});
  }
  void probe(std::function<void()> done) override { done(); }
  Result<std::unique_ptr<BackupSource>> open_backup() override {
    KILOKV_CHECK(as_ == As::without_logins || as_ == As::admin);
    return std::unique_ptr<BackupSource>(std::make_unique<FewFrames>());
  }
  DatabaseStatus status() const override {
    KILOKV_CHECK(as_ == As::without_logins || as_ == As::admin);
    return {};
  }
  const CoreMetrics& metrics() const override { return metrics_; }
  std::vector<SessionInfo> list_sessions(std::size_t /*limit*/) const override { return {}; }
  HotKeys hot_keys(KeyUse /*use*/, std::size_t /*limit*/) const override { return {}; }
  std::vector<SlowTransaction> slow_transactions() const override { return {}; }
  void drain(std::function<void()> answered, std::function<void()> done) override {
    answered();
    done();
  }

 private:
  // Nobody who has to log in, and has not, gets this far.
  void check_caller() const { KILOKV_CHECK(as_ != As::nobody); }

  const DatabaseOptions options_{};
  const CoreMetrics metrics_{};
  Access access_;
  const Users users_;
  As as_ = As::without_logins;
};

// tests/fuzz/seeds.py has the same order.
constexpr std::array<const char*, 21> kMethods = {
    "Execute",      "UploadReadSet",   "OpenSession",   "KeepSessionAlive", "CloseSession", "Get",
    "Scan",         "ListParked",      "Cancel",        "Status",           "ExecuteBatch", "Session",
    "ChangeAccess", "ListAccess",      "AttachSession", "SetLogLevel",      "ListHotKeys",  "ListSlow",
    "ListSessions", "ListConnections", "Backup"};
constexpr std::size_t kSession = 11, kMessagesMax = 8;

// A call that sends all messages, and reads the answers meanwhile.
class Call final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `token`: empty: without a login.
  Call(grpc::GenericStub* stub, const char* method, const std::string& token, std::vector<std::string_view> messages)
      : messages_(std::move(messages)) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stub->PrepareBidiStreamingCall(&context_, std::string("/kilokv.v1.KiloKV/") + method, {}, this);
    StartRead(&answer_);
    write_next();
    StartCall();
  }
  grpc::Status wait() { return ended_.get_future().get(); }

 private:
  void write_next() {
    if (next_ == messages_.size()) return StartWritesDone();
    const grpc::Slice slice(messages_[next_].data(), messages_[next_].size());
    ++next_;
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) write_next();
  }
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override { ended_.set_value(status); }

  grpc::ClientContext context_;
  const std::vector<std::string_view> messages_;
  std::size_t next_ = 0;
  grpc::ByteBuffer message_, answer_;
  std::promise<grpc::Status> ended_;
};

// The server, in this process, without a port. gRPC's channel inside of a process does not free calls that end before
// their client has ended its side, so there is a socket of the system.
class Service {
 public:
  explicit Service(bool login) : service_({.limits = limits(), .login = login}, {}) {
    service_.serve(&database_);
    const std::string name = "unix-abstract:kilokv-fuzz-" + std::to_string(::getpid()) + (login ? "-logins" : "");
    grpc::ServerBuilder builder;
    builder.AddListeningPort(name, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    server_ = builder.BuildAndStart();
    KILOKV_CHECK(server_ != nullptr);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(name, grpc::InsecureChannelCredentials()));
  }
  ~Service() { server_->Shutdown(); }

  void call(As as, const char* method, std::vector<std::string_view> messages) {
    database_.expect(as);
    Call call(stub_.get(), method, database_.token_of(as), std::move(messages));
    const grpc::Status status = call.wait();
    // These say that the server hangs or has failed; no request may do that.
    const bool failed = status.error_code() == grpc::DEADLINE_EXCEEDED || status.error_code() == grpc::INTERNAL ||
                        status.error_code() == grpc::UNKNOWN;
    if (failed) std::fprintf(stderr, "%s: %d %s\n", method, status.error_code(), status.error_message().c_str());
    KILOKV_CHECK(!failed);
    KILOKV_CHECK((status.error_code() == grpc::UNAUTHENTICATED) == (as == As::nobody));
  }

 private:
  CheckingDatabase database_;
  KiloKvService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

std::vector<std::string_view> split(std::string_view bytes) {
  std::vector<std::string_view> messages;
  while (bytes.size() >= 2 && messages.size() < kMessagesMax) {
    const std::size_t length = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(2);
    messages.push_back(bytes.substr(0, length));
    bytes.remove_prefix(messages.back().size());
  }
  return messages;
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  static fuzz::Service open(false), with_logins(true);
  std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t choice = fuzz::take_choice(&bytes);
  const std::size_t method = choice % fuzz::kMethods.size();
  const auto as = static_cast<fuzz::As>(choice / fuzz::kMethods.size() % fuzz::kWays);
  (as == fuzz::As::without_logins ? open : with_logins)
      .call(as, fuzz::kMethods[method],
            method == fuzz::kSession ? fuzz::split(bytes) : std::vector<std::string_view>{bytes});
  return 0;
}
