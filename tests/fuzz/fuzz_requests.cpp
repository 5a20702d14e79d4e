// The requests of every method, through the real handlers (server/service). The first byte chooses the method. The rest
// is the message, or for the streams several messages, each after its length (two bytes). The database behind the
// handlers checks what they pass on, and answers at once, so that an input always has the same effect.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <vector>

#include "server/service/service.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/service/fake_database.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;

class CheckingDatabase final : public Database {
 public:
  const engine::KeyHashSecret& key_secret() const override { return kSecret; }
  const DatabaseOptions& options() const override { return options_; }
  std::unique_ptr<Request> acquire_request() override { return std::make_unique<Request>(); }

  Result<std::uint64_t> upload(const ReadSetChunk& chunk) override {
    KILOKV_CHECK(chunk.identity.session && chunk.identity.number >= 1);
    KILOKV_CHECK(!chunk.keys.empty() && chunk.keys.size() == chunk.versions.size());
    for (std::size_t i = 0; i < chunk.keys.size(); ++i) {
      KILOKV_CHECK(!chunk.keys[i].empty() && chunk.keys[i].size() <= engine::kKeyBytesMax);
      KILOKV_CHECK(chunk.versions[i] <= kVersionMax);
    }
    return chunk.keys.size();
  }
  SubmittedRequest submit(std::unique_ptr<Request> request) override {
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
  void open_session(std::shared_ptr<Client>, DurationUs lease_us,
                    std::function<void(Result<SessionId>, DurationUs)> done) override {
    KILOKV_CHECK(lease_us >= options_.session_lease_us_min && lease_us <= options_.session_lease_us_max);
    done(SessionId{}, lease_us);
  }
  Status keep_alive(const std::shared_ptr<Client>&, const SessionId&) override { return {}; }
  Status check_session(const std::shared_ptr<Client>&, const SessionId&) const override { return {}; }
  const Access& access() const override { return access_; }
  void change_access(std::shared_ptr<Client>, AccessEdit edit, std::function<void(Result<BatchNumber>)> done) override {
    const Result<AccessChange> change = edit(*access_.latest());
    if (!change.ok()) return done(change.status());
    done(BatchNumber{1});
  }
  void close_session(std::shared_ptr<Client>, const SessionId&, std::function<void(Status)> done) override { done({}); }
  void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) override {
    KILOKV_CHECK(request.from.size() <= engine::kKeyBytesMax && request.to.size() <= engine::kKeyBytesMax);
    KILOKV_CHECK(request.to.empty() || request.from < request.to);
    KILOKV_CHECK(request.limit <= options_.scan_pairs_max);
    ScanPage page;
    page.pairs.push_back(
        {.key = request.from, .type = ValueType::bytes, .integer = 0, .bytes = request.to, .version = 3});
    done(std::move(page));
  }
  void list_parked(std::shared_ptr<Client>, std::uint64_t after_id, std::uint32_t limit,
                   std::function<void(Result<std::vector<ParkedTransaction>>)> done) override {
    KILOKV_CHECK(limit >= 1 && limit <= 10001);
    std::vector<ParkedTransaction> parked(std::min(limit, 3u));
    for (ParkedTransaction& one : parked) one.id = ++after_id;
    done(std::move(parked));
  }
  void cancel(std::shared_ptr<Client>, CancelTarget target, std::function<void(Result<std::uint64_t>)> done) override {
    KILOKV_CHECK(target.indices.size() <= limits().request_transactions_max);
    if (target.filter) {
      KILOKV_CHECK(target.filter->older_than_us >= 0);
      KILOKV_CHECK(!target.filter->client.empty() || !target.filter->key_prefix.empty() ||
                   target.filter->older_than_us > 0);
    }
    done(std::uint64_t{1});
  }
  DatabaseStatus status() const override { return {}; }
  void drain(std::function<void()> answered, std::function<void()> done) override {
    answered();
    done();
  }

 private:
  const DatabaseOptions options_{};
  Access access_;
};

// The streams come last.
constexpr std::array<const char*, 12> kMethods = {"Execute",      "UploadReadSet", "OpenSession",  "KeepSessionAlive",
                                                  "CloseSession", "Get",           "Scan",         "ListParked",
                                                  "Cancel",       "Status",        "ExecuteBatch", "Session"};
constexpr std::size_t kSession = 11, kMessagesMax = 8;

// A call that sends all messages, and reads the answers meanwhile.
class Call final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(grpc::GenericStub* stub, const char* method, std::vector<std::string_view> messages)
      : messages_(std::move(messages)) {
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

// The server, in this process, without a port.
class Service {
 public:
  Service() : service_({.limits = limits()}, {}) {
    service_.serve(&database_);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    server_ = builder.BuildAndStart();
    KILOKV_CHECK(server_ != nullptr);
    stub_ = std::make_unique<grpc::GenericStub>(server_->InProcessChannel({}));
  }
  ~Service() { server_->Shutdown(); }

  void call(const char* method, std::vector<std::string_view> messages) {
    Call call(stub_.get(), method, std::move(messages));
    const grpc::Status status = call.wait();
    // These say that the server hangs or has failed; no request may do that.
    const bool failed = status.error_code() == grpc::DEADLINE_EXCEEDED || status.error_code() == grpc::INTERNAL ||
                        status.error_code() == grpc::UNKNOWN;
    if (failed) std::fprintf(stderr, "%s: %d %s\n", method, status.error_code(), status.error_message().c_str());
    KILOKV_CHECK(!failed);
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
  static fuzz::Service service;
  std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t method = fuzz::take_choice(&bytes) % fuzz::kMethods.size();
  service.call(fuzz::kMethods[method],
               method == fuzz::kSession ? fuzz::split(bytes) : std::vector<std::string_view>{bytes});
  return 0;
}
