// AttachSession through the real handlers, and the holder in all other calls of a session.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/service/encode.hpp"
#include "tests/unit/service/audit_lines.hpp"
#include "tests/unit/service/service_fixture.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using Kind = AccessChange::Kind;

class ServiceAttachTest : public ServiceTest {
 protected:
  explicit ServiceAttachTest(const ServiceOptions& options = {}) : ServiceTest(options) { service_.serve(&database_); }

  static v1::AttachSessionRequest attach_request() {
    v1::AttachSessionRequest request;
    request.set_session("\x5f\x3a\x9c\x01-the-secret-", 16);
    return request;
  }
  grpc::Status attach(const v1::AttachSessionRequest& request, v1::AttachSessionResponse* response,
                      grpc::ClientContext* call) {
    return stub_->AttachSession(call, request, response);
  }
  v1::AttachSessionResponse attach(const v1::AttachSessionRequest& request = attach_request()) {
    v1::AttachSessionResponse response;
    const grpc::Status status = attach(request, &response, context().get());
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static SessionList one_decided(std::uint32_t transactions) {
    SessionList list{.holder = 2, .lease_us = 1000};
    ListedRequest& request = list.requests.emplace_back();
    request.number = 5;
    request.transactions = request.decided = transactions;
    request.results = {std::make_shared<test::CommittedSlice>(transactions)};
    return list;
  }
};

TEST_F(ServiceAttachTest, TheListIsTheAnswer) {
  database_.answer_attaches([](const AttachTarget&) { return one_decided(3); });
  const v1::AttachSessionResponse response = attach();
  EXPECT_EQ(response.holder(), 2u);
  ASSERT_EQ(response.requests_size(), 1);
  EXPECT_EQ(response.requests(0).number(), 5u);
  EXPECT_EQ(response.requests(0).results_size(), 3);
  EXPECT_EQ(database_.attach_target().holder, 0u);
}

// It takes longer than the answer worker should.
TEST_F(ServiceAttachTest, ALongListIsMadeInTheTurnsOfDecoding) {
  database_.answer_attaches([](const AttachTarget&) {
    SessionList list = one_decided(10'000);
    list.bytes = std::uint64_t{1} << 20;
    return list;
  });
  EXPECT_EQ(attach().requests(0).results_size(), 10'000);
}

TEST_F(ServiceAttachTest, ARefusalHasItsReason) {
  database_.refuse_attaches(
      Status(StatusCode::failed_precondition, ErrorReason::session_fenced, "another client has attached").as_not_run());
  v1::AttachSessionResponse response;
  const auto call = context();
  EXPECT_EQ(attach(attach_request(), &response, call.get()).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_SESSION_FENCED);
  EXPECT_TRUE(detail_of(*call).not_run());
}

// A line of the log shows the begin of the id, and nobody can attach with that.
TEST_F(ServiceAttachTest, EachAttachHasALine) {
  test::AuditLines lines;
  attach();
  const std::string begun = lines.take();
  EXPECT_NE(begun.find("kilokvd audit user=- peer=ipv4:127.0.0.1:"), std::string::npos) << begun;
  EXPECT_NE(begun.find(" change=attach_session session=5f3a9c01 holder=2 batch=1 result=begins\n"), std::string::npos)
      << begun;
  EXPECT_EQ(begun.find("secret"), std::string::npos);
  v1::AttachSessionRequest list = attach_request();
  list.set_holder(2);
  attach(list);
  EXPECT_EQ(lines.take(), "") << "a list attaches nothing";
}

TEST_F(ServiceAttachTest, ManyAttachesDoNotFillTheLog) {
  test::AuditLines lines;
  std::size_t count = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) attach();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  const std::string text = lines.take();
  for (std::size_t at = text.find("attach_session"); at != std::string::npos;
       at = text.find("attach_session", at + 1)) {
    ++count;
  }
  EXPECT_GE(count, 100u);
  EXPECT_LE(count, 100u * (static_cast<std::size_t>(seconds.count()) + 2)) << "a hundred in each second";
}

TEST(FewLinesTest, TheNextSecondTellsHowManyWereLeftOut) {
  FewLines lines(2);
  const auto begin = std::chrono::steady_clock::now();
  const auto at = [&](int ms) { return lines.next(begin + std::chrono::milliseconds(ms)); };
  EXPECT_EQ(at(0), 0u);
  EXPECT_EQ(at(500), 0u);
  EXPECT_EQ(at(600), std::nullopt);
  EXPECT_EQ(at(999), std::nullopt);
  EXPECT_EQ(at(1000), 2u);
  EXPECT_EQ(at(1001), 0u);
  EXPECT_EQ(at(1999), std::nullopt);
  EXPECT_EQ(at(5000), 1u);
}

TEST_F(ServiceAttachTest, RefusedAttachesHaveALineNowAndThen) {
  test::AuditLines lines;
  v1::AttachSessionResponse response;
  database_.refuse_attaches(Status(StatusCode::failed_precondition, ErrorReason::session_unknown, "unknown\nsession"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(attach(attach_request(), &response, context().get()).ok());
  }
  const std::string text = lines.take();
  EXPECT_NE(text.find("kilokvd audit refused attaches to sessions refused=1 last_user=- last_peer=ipv4:"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" last_session=5f3a9c01 reason=\"unknown"), std::string::npos) << text;
  EXPECT_EQ(text.find("unknown\nsession"), std::string::npos) << "the text of an error is one line";
}

TEST_F(ServiceAttachTest, ASessionThatIsListedShowsTheBeginOfItsId) {
  ParkedTransaction parked;
  parked.session.emplace();
  for (std::size_t i = 0; i < 16; ++i) parked.session->bytes[i] = static_cast<unsigned char>('a' + i);
  v1::ListParkedResponse response;
  ParkedPage page;
  page.parked = {parked};
  fill_list(page, 1 << 20, &response);
  EXPECT_EQ(response.parked(0).session(), "abcd");
  EXPECT_EQ(shown(*parked.session), "61626364");
}

// Each call of a session says which holder makes it.
TEST_F(ServiceAttachTest, EveryCallOfASessionCarriesItsHolder) {
  const std::string session(16, 's');
  {
    v1::KeepSessionAliveRequest request;
    v1::KeepSessionAliveResponse response;
    request.set_session(session);
    request.set_holder(3);
    EXPECT_FALSE(stub_->KeepSessionAlive(context().get(), request, &response).ok());
    EXPECT_EQ(database_.called_as(), 3u);
  }
  {
    v1::CloseSessionRequest request;
    v1::CloseSessionResponse response;
    request.set_session(session);
    request.set_holder(4);
    EXPECT_TRUE(stub_->CloseSession(context().get(), request, &response).ok());
    EXPECT_EQ(database_.called_as(), 4u);
  }
  {
    v1::CancelRequest request;
    v1::CancelResponse response;
    request.mutable_transactions()->set_session(session);
    request.mutable_transactions()->set_number(1);
    request.mutable_transactions()->set_holder(5);
    EXPECT_TRUE(stub_->Cancel(context().get(), request, &response).ok());
    EXPECT_EQ(database_.called_as(), 5u);
  }
  {
    v1::ExecuteRequest request = execute_request();
    request.mutable_id()->set_session(session);
    request.mutable_id()->set_number(1);
    request.mutable_id()->set_holder(6);
    v1::ExecuteResponse response;
    std::thread caller([&] { EXPECT_TRUE(stub_->Execute(context().get(), request, &response).ok()); });
    const std::unique_ptr<Request> submitted = database_.take();
    EXPECT_EQ(submitted->identity.holder, 6u);
    test::FakeDatabase::commit(submitted.get());
    caller.join();
  }
}

TEST_F(ServiceAttachTest, AStreamIsBoundToTheHolderOfItsFirstMessage) {
  const auto call = context();
  const auto stream = stub_->Session(call.get());
  v1::SessionRequest first = session_request(1);
  first.set_session(std::string(16, 's'));
  first.set_holder(3);
  ASSERT_TRUE(stream->Write(first));
  ASSERT_TRUE(stream->Write(session_request(2)));  // 0: as before
  v1::SessionRequest same = session_request(3), other = session_request(4);
  same.set_holder(3);
  other.set_holder(2);
  ASSERT_TRUE(stream->Write(same));
  ASSERT_TRUE(stream->Write(other));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 4u) << "the others are not answered yet";
  EXPECT_EQ(response.error().detail().reason(), v1::ERROR_REASON_NOT_ALLOWED);
  EXPECT_EQ(response.error().detail().field(), "holder");
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const std::unique_ptr<Request> request = database_.take();
    EXPECT_EQ(request->identity.number, number);
    EXPECT_EQ(request->identity.holder, 3u);
    test::FakeDatabase::commit(request.get());
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

class ServiceAttachShortTest : public ServiceAttachTest {
 protected:
  static ServiceOptions short_messages() {
    ServiceOptions options;
    options.message_bytes_max = 2000;
    return options;
  }
  ServiceAttachShortTest() : ServiceAttachTest(short_messages()) {}
};

// Only the head of a message that is too long is read.
TEST_F(ServiceAttachShortTest, AFirstMessageThatIsTooLongAlsoBindsTheStream) {
  const auto call = context();
  const auto stream = stub_->Session(call.get());
  v1::SessionRequest first = session_request(1);
  first.set_session(std::string(16, 's'));
  first.set_holder(3);
  first.mutable_rows()->mutable_transactions(0)->mutable_then(0)->set_key(std::string(2000, 'k'));
  ASSERT_TRUE(stream->Write(first));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().reason(), v1::ERROR_REASON_MESSAGE_TOO_LARGE);
  ASSERT_TRUE(stream->Write(session_request(2)));
  const std::unique_ptr<Request> request = database_.take();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->identity.holder, 3u);
  test::FakeDatabase::commit(request.get());
  EXPECT_TRUE(stream->Read(&response));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceAttachTest, AHolderNeedsASession) {
  const auto call = context();
  const auto stream = stub_->Session(call.get());
  v1::SessionRequest first = session_request(1);
  first.set_holder(3);
  ASSERT_TRUE(stream->Write(first));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().reason(), v1::ERROR_REASON_NOT_ALLOWED);
  call->TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  v1::ExecuteRequest request = execute_request();
  request.mutable_id()->set_holder(3);
  v1::ExecuteResponse answer;
  const auto unary = context();
  EXPECT_EQ(stub_->Execute(unary.get(), request, &answer).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*unary).reason(), v1::ERROR_REASON_NOT_ALLOWED);
  EXPECT_EQ(detail_of(*unary).field(), "id.holder");
}

class ServiceAttachRightsTest : public ServiceAttachTest {
 protected:
  static ServiceOptions with_logins() {
    ServiceOptions options;
    options.login = true;
    return options;
  }
  ServiceAttachRightsTest() : ServiceAttachTest(with_logins()), token_(*tls::make_token()) {
    set_rights({{"a", "c"}});
    AccessChange change = empty(Kind::put_user);
    change.user = {.name = "alice", .roles = {"teller"}, .certificates = {}};
    make(change);
    change = empty(Kind::put_token);
    change.token.id = token_.parts.id;
    change.token.user = "alice";
    change.token.secret_hash = token_.parts.secret_hash;
    make(change);
  }
  static AccessChange empty(Kind kind) { return {.kind = kind, .role = {}, .user = {}, .token = {}}; }
  void make(const AccessChange& wanted) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return wanted; },
        [](const Result<BatchNumber>& batch) { EXPECT_TRUE(batch.ok()); });
  }
  void set_rights(const std::vector<KeyRange>& read) {
    AccessChange change = empty(Kind::put_role);
    change.role = {.name = "teller", .read = read, .write = {}};
    make(change);
  }
  grpc::Status attach_as_alice(v1::AttachSessionResponse* response) {
    const auto call = context();
    call->AddMetadata("authorization", "Bearer " + token_.text);
    return attach(attach_request(), response, call.get());
  }

  const tls::NewToken token_;
};

// A result of "b", as core stores it.
class OneRead final : public ResultSlice {
 public:
  std::uint32_t size() const override { return 1; }
  void visit(ResultVisitor* visitor) const override {
    TransactionResult result;
    result.outcome = engine::Outcome::committed;
    visitor->transaction(result);
    visitor->read(0, {.key = "b", .type = ValueType::integer, .integer = 42, .bytes = {}, .version = 3});
  }
};

TEST_F(ServiceAttachRightsTest, ALostRightHidesWhatWasReadBefore) {
  database_.answer_attaches([](const AttachTarget&) {
    SessionList list{.holder = 2, .lease_us = 1000};
    ListedRequest& request = list.requests.emplace_back();
    request.number = request.transactions = request.decided = 1;
    request.results = {std::make_shared<OneRead>()};
    return list;
  });
  v1::AttachSessionResponse response;
  ASSERT_TRUE(attach_as_alice(&response).ok());
  EXPECT_EQ(response.requests(0).results(0).reads(0).value().integer(), 42);
  database_.before_next_command([this] { set_rights({{"x", "y"}}); });  // while the attach waits
  ASSERT_TRUE(attach_as_alice(&response).ok());
  EXPECT_EQ(response.requests(0).results(0).reads_size(), 0);
  EXPECT_TRUE(response.requests(0).results(0).reads_dropped());
  EXPECT_EQ(response.requests(0).results(0).outcome(), v1::OUTCOME_COMMITTED);
}

TEST_F(ServiceAttachRightsTest, ALostLoginGetsNoList) {
  database_.before_next_command([this] {
    AccessChange removal = empty(Kind::remove_token);
    removal.token.id = token_.parts.id;
    make(removal);
  });
  v1::AttachSessionResponse response;
  EXPECT_EQ(attach_as_alice(&response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ServiceAttachRightsTest, TheLineNamesTheUser) {
  test::AuditLines lines;
  v1::AttachSessionResponse response;
  ASSERT_TRUE(attach_as_alice(&response).ok());
  EXPECT_NE(lines.take().find("kilokvd audit user=alice token=" + token_.parts.id + " peer="), std::string::npos);
}

}  // namespace
}  // namespace kilokv::server
