// What a client may ask of the real kilokvd before it is refused, and that an answer always fits where clients of gRPC
// expect it to: in 4 MiB, the limit that they have unless told otherwise. The stubs here have it.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/integration/server_fixture.hpp"

namespace kilokv {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

class LimitsTest : public testing::Test {
 protected:
  explicit LimitsTest(std::vector<std::string> flags = {}) : server_(std::move(flags)) {}
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.log();
    stub_ = server_.stub();
  }
  void TearDown() override { EXPECT_EQ(server_.stop(SIGTERM), 0) << server_.log(); }

  // Writes `value` under count keys, key + "0" and so on.
  void put(const std::string& key, int count, const std::string& value) {
    for (int i = 0; i < count; ++i) {
      v1::ExecuteRequest request;
      v1::Operation* operation = request.mutable_transaction()->add_then();
      operation->set_kind(v1::OPERATION_KIND_PUT);
      operation->set_key(key + std::to_string(i));
      operation->mutable_operand()->set_bytes(value);
      v1::ExecuteResponse response;
      ASSERT_TRUE(call(&v1::KiloKV::Stub::Execute, request, &response).ok());
    }
  }
  static v1::Transaction gets(const std::string& key, int count) {
    v1::Transaction transaction;
    for (int i = 0; i < count; ++i) {
      v1::Operation* operation = transaction.add_then();
      operation->set_kind(v1::OPERATION_KIND_GET);
      operation->set_key(key + std::to_string(i));
    }
    return transaction;
  }
  static v1::GetRequest get_request(const std::string& key, int count) {
    v1::GetRequest request;
    for (int i = 0; i < count; ++i) request.add_keys(key + std::to_string(i));
    return request;
  }
  std::string open_session() {
    v1::OpenSessionResponse opened;
    EXPECT_TRUE(call(&v1::KiloKV::Stub::OpenSession, {}, &opened).ok());
    return opened.session();
  }
  static v1::Transaction waits_for(const std::string& key) {
    v1::Transaction transaction = add("waited", 1);
    v1::Guard* guard = transaction.add_guards();
    guard->set_kind(v1::GUARD_KIND_EXISTS);
    guard->set_on_false(v1::ON_FALSE_WAIT);
    guard->set_key(key);
    transaction.set_wait_timeout_us(600'000'000);
    return transaction;
  }

  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    set_deadline(&context);
    const grpc::Status status = (stub_.get()->*method)(&context, request, response);
    detail_ = detail_of(context);
    return status;
  }

  Server server_;
  std::unique_ptr<v1::KiloKV::Stub> stub_;
  v1::ErrorDetail detail_;  // of the last call
};

TEST_F(LimitsTest, AGetThatIsTooMuchForOneAnswerSaysSo) {
  put("k", 6, std::string(kMebibyte, 'x'));
  v1::GetResponse response;
  const grpc::Status status = call(&v1::KiloKV::Stub::Get, get_request("k", 6), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(detail_.field(), "keys");
  EXPECT_EQ(detail_.setting(), "--message-bytes-max");
  ASSERT_TRUE(call(&v1::KiloKV::Stub::Get, get_request("k", 3), &response).ok());
  EXPECT_EQ(response.reads_size(), 3);
}

TEST_F(LimitsTest, ATransactionThatReadsTooMuchKeepsTheFirstReads) {
  put("k", 6, std::string(kMebibyte, 'x'));
  v1::ExecuteRequest request;
  *request.mutable_transaction() = gets("k", 6);
  *request.mutable_transaction()->add_then() = add("counter", 1).then(0);
  v1::ExecuteResponse response;
  const grpc::Status status = call(&v1::KiloKV::Stub::Execute, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.result().outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_GT(response.result().version(), 0u);
  EXPECT_TRUE(response.result().reads_dropped());
  ASSERT_EQ(response.result().reads_size(), 3);
  EXPECT_EQ(response.result().reads(2).key(), "k2");
}

// One transaction that reads too much, between others that do not.
TEST_F(LimitsTest, AnswersOfManyTransactionsAreSplitBetweenThem) {
  put("k", 6, std::string(kMebibyte, 'x'));
  v1::ExecuteBatchRequest request;
  for (const int count : {1, 1, 3, 6, 1}) *request.mutable_rows()->add_transactions() = gets("k", count);
  grpc::ClientContext context;
  set_deadline(&context);
  const auto reader = stub_->ExecuteBatch(&context, request);
  v1::ExecuteBatchResponse response;
  std::vector<int> reads;
  std::vector<bool> dropped;
  while (reader->Read(&response)) {
    EXPECT_LE(response.ByteSizeLong(), 4 * kMebibyte);
    for (const v1::TransactionResult& result : response.rows().results()) {
      reads.push_back(result.reads_size());
      dropped.push_back(result.reads_dropped());
    }
  }
  const grpc::Status status = reader->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reads, (std::vector<int>{1, 1, 3, 3, 1}));
  EXPECT_EQ(dropped, (std::vector<bool>{false, false, false, true, false}));
}

TEST_F(LimitsTest, APageFitsInAMessage) {
  put("k", 9, std::string(kMebibyte - 100, 'x'));
  v1::ScanRequest request;
  request.set_keep_boundary(true);
  v1::ScanResponse page;
  int pairs = 0;
  do {
    const grpc::Status status = call(&v1::KiloKV::Stub::Scan, request, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LE(page.ByteSizeLong(), 4 * kMebibyte);
    pairs += page.pairs_size();
    request.set_boundary(page.boundary());
    request.set_reader(page.reader());
    request.mutable_range()->set_from(page.next_from());
  } while (page.more());
  EXPECT_EQ(pairs, 9);
}

TEST_F(LimitsTest, AStrangerCannotCloseTheBoundaryOfAnother) {
  put("k", 4, "old");
  v1::ScanRequest mine;
  mine.set_limit(2);
  mine.set_keep_boundary(true);
  v1::ScanResponse page;
  ASSERT_TRUE(call(&v1::KiloKV::Stub::Scan, mine, &page).ok());
  mine.set_boundary(page.boundary());
  mine.set_reader(page.reader());
  mine.mutable_range()->set_from(page.next_from());
  put("k", 4, "new");

  v1::ScanRequest theirs;
  theirs.set_boundary(page.boundary());
  v1::ScanResponse ignored;
  std::string other = page.reader();
  other.at(0) = static_cast<char>(other.at(0) ^ 2);
  for (const std::string& reader : {std::string(), std::string(8, '\1'), other}) {
    theirs.set_reader(reader);
    ASSERT_TRUE(call(&v1::KiloKV::Stub::Scan, theirs, &ignored).ok());
  }
  const grpc::Status status = call(&v1::KiloKV::Stub::Scan, mine, &page);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(page.pairs_size(), 2);
  EXPECT_EQ(page.pairs(0).value().bytes(), "old");
  EXPECT_FALSE(page.more());
  EXPECT_EQ(call(&v1::KiloKV::Stub::Scan, mine, &page).error_code(), grpc::StatusCode::ABORTED);
}

// A client that retries a long WAIT every few milliseconds, and gives each try up.
TEST_F(LimitsTest, ARequestThatWaitsMayBeRetriedForEver) {
  v1::ExecuteRequest request;
  request.mutable_id()->set_session(open_session());
  request.mutable_id()->set_number(1);
  *request.mutable_transaction() = waits_for("deposit");
  v1::ExecuteResponse response;
  for (int i = 0; i < 1000; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(3));
    const grpc::Status status = stub_->Execute(&context, request, &response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message() << " at " << i;
  }
  v1::ExecuteRequest deposit;
  *deposit.mutable_transaction() = add("deposit", 1);
  ASSERT_TRUE(call(&v1::KiloKV::Stub::Execute, deposit, &response).ok());
  const grpc::Status status = call(&v1::KiloKV::Stub::Execute, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.result().outcome(), v1::OUTCOME_COMMITTED);
  v1::GetRequest get;
  get.add_keys("waited");
  v1::GetResponse got;
  ASSERT_TRUE(call(&v1::KiloKV::Stub::Get, get, &got).ok());
  EXPECT_EQ(got.reads(0).value().integer(), 1);  // applied once
}

TEST_F(LimitsTest, CallsThatWaitForOneRequestAreLimited) {
  v1::ExecuteBatchRequest request;
  request.mutable_id()->set_session(open_session());
  request.mutable_id()->set_number(1);
  *request.mutable_rows()->add_transactions() = waits_for("deposit");
  *request.mutable_rows()->add_transactions() = add("other", 1);
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ExecuteBatchResponse>> reader;
  };
  std::vector<std::unique_ptr<Call>> calls;
  v1::ExecuteBatchResponse response;
  const auto send = [&] {
    calls.push_back(std::make_unique<Call>());
    set_deadline(&calls.back()->context);
    calls.back()->reader = stub_->ExecuteBatch(&calls.back()->context, request);
    return calls.back()->reader->Read(&response);  // the one that does not wait
  };
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(send());
  EXPECT_FALSE(send());
  EXPECT_EQ(calls.back()->reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(calls.back()->context).field(), "number");
  EXPECT_EQ(detail_of(calls.back()->context).reason(), v1::ERROR_REASON_CALLS_FULL);
  calls.pop_back();
  v1::ExecuteRequest deposit;
  *deposit.mutable_transaction() = add("deposit", 1);
  v1::ExecuteResponse deposited;
  ASSERT_TRUE(call(&v1::KiloKV::Stub::Execute, deposit, &deposited).ok());
  for (const auto& one : calls) {
    EXPECT_TRUE(one->reader->Read(&response));
    EXPECT_TRUE(one->reader->Finish().ok());
  }
}

class FewStoredResultsTest : public LimitsTest {
 protected:
  FewStoredResultsTest() : LimitsTest({"--session-bytes-total-max", "4KiB"}) {}
};

TEST_F(FewStoredResultsTest, AreRefusedAcrossSessionsUntilOneGivesThemUp) {
  const std::string first = open_session(), second = open_session();
  v1::ExecuteRequest request;
  *request.mutable_transaction() = add("k", 1);
  request.mutable_id()->set_session(first);
  v1::ExecuteResponse response;
  grpc::Status status;
  std::uint64_t number = 0;
  while (status.ok() && number < 100) {
    request.mutable_id()->set_number(++number);
    status = call(&v1::KiloKV::Stub::Execute, request, &response);
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(number, 10u);
  request.mutable_id()->set_session(second);
  EXPECT_EQ(call(&v1::KiloKV::Stub::Execute, request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_.setting(), "--session-bytes-total-max");
  EXPECT_EQ(detail_.field(), "sessions");
  EXPECT_EQ(detail_.reason(), v1::ERROR_REASON_SESSION_FULL);
  EXPECT_GT(detail_.retry_after_us(), 0u);
  v1::CloseSessionRequest close;
  close.set_session(first);
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(call(&v1::KiloKV::Stub::CloseSession, close, &closed).ok());
  // The server frees what a closed session stored soon after its answer, and asks for a retry until then.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = call(&v1::KiloKV::Stub::Execute, request, &response);
  } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

class FewKeysTest : public LimitsTest {
 protected:
  FewKeysTest() : LimitsTest({"--table-records-max", "2"}) {}
};

TEST_F(FewKeysTest, AFullTableRefusesWithoutARetryDelay) {
  put("k", 2, "x");
  v1::ExecuteRequest request;
  *request.mutable_transaction() = add("more", 1);
  v1::ExecuteResponse response;
  const grpc::Status status = call(&v1::KiloKV::Stub::Execute, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(detail_.reason(), v1::ERROR_REASON_TABLE_FULL);
  EXPECT_EQ(detail_.setting(), "--table-records-max");
  EXPECT_EQ(detail_.retry_after_us(), 0u);
  EXPECT_TRUE(detail_.not_run());
}

class FewParkedTest : public LimitsTest {
 protected:
  FewParkedTest() : LimitsTest({"--parked-max", "1"}) {}
};

TEST_F(FewParkedTest, TheParkingLotNamesItself) {
  v1::ExecuteRequest request;
  request.mutable_id()->set_session(open_session());
  request.mutable_id()->set_number(1);
  *request.mutable_transaction() = waits_for("deposit");
  v1::ExecuteResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  EXPECT_EQ(stub_->Execute(&context, request, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  request.mutable_id()->set_number(2);
  const grpc::Status status = call(&v1::KiloKV::Stub::Execute, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(detail_.reason(), v1::ERROR_REASON_PARKED_FULL);
  EXPECT_EQ(detail_.setting(), "--parked-max");
  EXPECT_GT(detail_.retry_after_us(), 0u);
  EXPECT_TRUE(detail_.not_run());
}

class LittleMemoryTest : public LimitsTest {
 protected:
  LittleMemoryTest() : LimitsTest({"--grpc-memory-max", "8MiB"}) {}
};

// Many large messages at once: some may be refused; none takes the server with it. gRPC ends connections when its
// memory is used up. Their address may have to pause then, as for a flood, and comes back by itself.
TEST_F(LittleMemoryTest, TheServerOutlivesMoreThanItsMemory) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this] {
      const auto stub =
          v1::KiloKV::NewStub(grpc::CreateChannel(server_.endpoint(), grpc::InsecureChannelCredentials()));
      v1::ExecuteBatchRequest request;
      for (int n = 0; n < 3; ++n) {
        v1::Operation* put = request.mutable_rows()->add_transactions()->add_then();
        put->set_kind(v1::OPERATION_KIND_PUT);
        put->set_key("large" + std::to_string(n));
        put->mutable_operand()->set_bytes(std::string(kMebibyte, 'x'));
      }
      for (int n = 0; n < 3; ++n) {
        grpc::ClientContext context;
        set_deadline(&context);
        const auto reader = stub->ExecuteBatch(&context, request);
        v1::ExecuteBatchResponse response;
        while (reader->Read(&response)) {
        }
        static_cast<void>(reader->Finish());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  stub_ = server_.stub();
  v1::ExecuteRequest request;
  *request.mutable_transaction() = add("k", 1);
  v1::ExecuteResponse response;
  grpc::ClientContext context;
  set_deadline(&context);
  context.set_wait_for_ready(true);
  const grpc::Status status = stub_->Execute(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace kilokv
