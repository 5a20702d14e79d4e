// The calls of the service.
#include <thread>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

TEST_F(ServiceTest, IsUnavailableWhileRecoveringAndAfterClose) {
  v1::ExecuteResponse response;
  grpc::Status status = stub_->Execute(context().get(), execute_request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "recovering");
  v1::StatusResponse state;
  ASSERT_TRUE(stub_->Status(context().get(), {}, &state).ok());
  EXPECT_EQ(state.server().state(), v1::ServerSection::STATE_RECOVERING);
  EXPECT_EQ(state.server().server_version(), "1.2.3");
  EXPECT_EQ(state.server().strategy(), "lock");
  EXPECT_EQ(state.server().threads(), 3u);
  EXPECT_EQ(state.checks().shadow_rate(), 0.25);
  ASSERT_EQ(state.settings_size(), 2);
  EXPECT_EQ(state.settings(0).name(), "order");
  EXPECT_EQ(state.settings(0).text(), "any");
  EXPECT_EQ(state.settings(1).text(), "16");
  EXPECT_EQ(state.device().device(), "");

  service_.serve(&database_);
  ASSERT_TRUE(stub_->Status(context().get(), {}, &state).ok());
  EXPECT_EQ(state.server().state(), v1::ServerSection::STATE_READY);
  EXPECT_EQ(state.position().durable_batch(), 17u);
  EXPECT_EQ(state.device().device(), "cpu");
  EXPECT_EQ(state.device().device_model(), "a model");
  EXPECT_EQ(state.device().device_reason(), "a reason");
  EXPECT_EQ(state.device().batches_serial(), 1u);
  EXPECT_EQ(state.device().batches_parallel(), 2u);
  EXPECT_EQ(state.device().batches_on_device(), 3u);
  EXPECT_EQ(state.checks().shadow_batches(), 4u);
  EXPECT_EQ(state.checks().shadow_skipped(), 5u);
  service_.close();
  status = stub_->Execute(context().get(), execute_request(), &response);
  EXPECT_EQ(status.error_message(), "draining");
}

TEST_F(ServiceTest, ExecuteAnswersWhenTheDatabaseDoes) {
  service_.serve(&database_);
  std::thread answerer([this] { test::FakeDatabase::commit(database_.take().get()); });
  v1::ExecuteResponse response;
  const grpc::Status status = stub_->Execute(context().get(), execute_request(), &response);
  answerer.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.result().outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_EQ(response.result().version(), 100u);
}

TEST_F(ServiceTest, ErrorsCarryTheirDetail) {
  service_.serve(&database_);
  v1::ExecuteRequest request = execute_request();
  request.mutable_transaction()->mutable_then(0)->set_key(std::string(2048, 'x'));
  auto refused = context();
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(refused.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*refused).setting(), "--key-bytes-max");
  EXPECT_EQ(detail_of(*refused).field(), "transactions[0].then[0].key");
  EXPECT_TRUE(detail_of(*refused).not_run());

  std::thread answerer([this] {
    database_.take()->sink->fail(
        Status::exhausted(ErrorReason::queue_full, {"queue", "5", "6", "--queue-transactions-max"}, 1234));
  });
  auto exhausted = context();
  EXPECT_EQ(stub_->Execute(exhausted.get(), execute_request(), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  answerer.join();
  EXPECT_EQ(detail_of(*exhausted).retry_after_us(), 1234u);
  EXPECT_EQ(detail_of(*exhausted).reason(), v1::ERROR_REASON_QUEUE_FULL);
  EXPECT_FALSE(detail_of(*exhausted).not_run()) << "the database did not say so";
}

TEST_F(ServiceTest, RefusesMalformedIdentities) {
  service_.serve(&database_);
  v1::ExecuteResponse response;
  v1::ExecuteRequest request = execute_request();
  request.mutable_id()->set_session("short");
  auto bad_session = context();
  EXPECT_EQ(stub_->Execute(bad_session.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*bad_session).field(), "id.session");
  request.mutable_id()->set_session(std::string(16, 's'));
  auto no_number = context();
  EXPECT_EQ(stub_->Execute(no_number.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_number).field(), "id.number");
}

TEST_F(ServiceTest, TakesReadSetsAndWhatIsCommittedBesideThem) {
  service_.serve(&database_);
  v1::UploadReadSetRequest chunk;
  chunk.mutable_id()->set_session(std::string(16, 's'));
  chunk.mutable_id()->set_number(3);
  chunk.add_keys("a"), chunk.add_keys("b");
  chunk.add_versions(1), chunk.add_versions(0);
  v1::UploadReadSetResponse uploaded;
  ASSERT_TRUE(stub_->UploadReadSet(context().get(), chunk, &uploaded).ok());
  EXPECT_EQ(uploaded.keys(), 2u);
  chunk.set_offset(1);
  EXPECT_EQ(stub_->UploadReadSet(context().get(), chunk, &uploaded).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  chunk.add_versions(0);
  auto unequal = context();
  EXPECT_EQ(stub_->UploadReadSet(unequal.get(), chunk, &uploaded).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*unequal).field(), "versions");

  std::thread answerer([this] {
    const auto request = database_.take();
    EXPECT_EQ(request->uploaded_keys, 2u);
    EXPECT_EQ(request->identity.number, 3u);
    EXPECT_EQ(request->transactions.size(), 1u);
    EXPECT_EQ(request->transactions.guard_kind.size() + request->transactions.op_kind.size(), 0u);
    test::FakeDatabase::commit(request.get());
  });
  v1::ExecuteRequest request;
  *request.mutable_id() = chunk.id();
  request.set_uploaded_keys(2);
  v1::ExecuteResponse response;
  EXPECT_TRUE(stub_->Execute(context().get(), request, &response).ok()) << "the read set alone";
  answerer.join();
  request.mutable_transaction()->set_wait_timeout_us(1);
  auto waits = context();
  EXPECT_EQ(stub_->Execute(waits.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*waits).field(), "transactions[0].wait_timeout_us");
}

// An unknown part beside uploaded keys is a part of what the client wants to commit. So it is refused, too.
TEST_F(ServiceTest, UnknownPartsBesideUploadedKeysAreRefused) {
  service_.serve(&database_);
  v1::ExecuteRequest request;
  request.mutable_id()->set_session(std::string(16, 's'));
  request.mutable_id()->set_number(3);
  request.set_uploaded_keys(2);
  v1::Transaction* transaction = request.mutable_transaction();
  for (const bool empty : {true, false}) {
    if (!empty) *transaction = test::transfer("a", "b", 1);
    transaction->GetReflection()->MutableUnknownFields(transaction)->AddLengthDelimited(77)->assign("writes");
    auto call = context();
    call->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ExecuteResponse response;
    EXPECT_EQ(stub_->Execute(call.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_UNKNOWN_FIELD);
    EXPECT_EQ(detail_of(*call).field(), "transactions[0]");
    EXPECT_TRUE(detail_of(*call).not_run());
  }
  transaction->Clear();
  transaction->set_precedence(256);
  auto call = context();
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(call.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*call).field(), "transactions[0].precedence");
  EXPECT_EQ(database_.submitted(), 0u);
}

TEST_F(ServiceTest, BatchIsAnsweredInItsOwnForm) {
  service_.serve(&database_);
  v1::TransactionRows rows;
  for (int i = 0; i < 3; ++i) *rows.add_transactions() = test::transfer("a", "b", 1);
  engine::TransactionColumns columns;
  ASSERT_TRUE(decode(rows, test::kContext, &columns).ok());
  for (const bool as_columns : {false, true}) {
    v1::ExecuteBatchRequest request;
    if (as_columns) {
      *request.mutable_columns() = test::to_message(columns);
    } else {
      *request.mutable_rows() = rows;
    }
    auto call = context();
    auto reader = stub_->ExecuteBatch(call.get(), request);
    test::FakeDatabase::commit(database_.take().get());
    v1::ExecuteBatchResponse response;
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.has_columns(), as_columns);
    EXPECT_EQ(as_columns ? response.columns().rank_size() : response.rows().results_size(), 3);
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_TRUE(reader->Finish().ok());
  }
}

TEST_F(ServiceTest, OverlongMessageIsRefusedByName) {
  service_.serve(&database_);
  v1::SessionRequest big = session_request(7);
  big.set_session(std::string(16, 's'));
  big.mutable_rows()->mutable_transactions(0)->mutable_then(0)->set_key(std::string(5 << 20, 'x'));
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(big));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 7u);
  EXPECT_TRUE(response.last());
  EXPECT_EQ(response.error().code(), static_cast<std::uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(response.error().detail().setting(), "--message-bytes-max");
  EXPECT_TRUE(response.error().detail().not_run());
  // The stream goes on.
  ASSERT_TRUE(stream->Write(session_request(8)));
  const auto request = database_.take();
  EXPECT_TRUE(request->identity.session.has_value()) << "the message that was refused named the session";
  test::FakeDatabase::commit(request.get());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 8u);
  EXPECT_FALSE(response.has_error());
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, TheOtherCalls) {
  service_.serve(&database_);
  v1::OpenSessionResponse opened;
  ASSERT_TRUE(stub_->OpenSession(context().get(), {}, &opened).ok());
  EXPECT_EQ(opened.session().size(), 16u);
  EXPECT_EQ(opened.lease_us(), 60000000u);
  v1::OpenSessionRequest short_lease;
  short_lease.set_lease_us(5);
  auto call = context();
  EXPECT_FALSE(stub_->OpenSession(call.get(), short_lease, &opened).ok());
  EXPECT_EQ(detail_of(*call).setting(), "--session-lease-min");

  v1::KeepSessionAliveRequest keep;
  keep.set_session(std::string(16, 's'));
  v1::KeepSessionAliveResponse kept;
  EXPECT_EQ(stub_->KeepSessionAlive(context().get(), keep, &kept).error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  v1::ScanRequest scan;
  scan.mutable_range()->set_from("f");
  v1::ScanResponse page;
  ASSERT_TRUE(stub_->Scan(context().get(), scan, &page).ok());
  EXPECT_EQ(page.pairs(0).value().bytes(), "v");
  EXPECT_EQ(page.reader(), "") << "the boundary is not kept";
  scan.set_keep_boundary(true);
  ASSERT_TRUE(stub_->Scan(context().get(), scan, &page).ok());
  EXPECT_EQ(page.reader().size(), 8u);
  scan.set_boundary(3);
  EXPECT_EQ(stub_->Scan(context().get(), scan, &page).error_code(), grpc::StatusCode::ABORTED);
  scan.mutable_range()->set_to("e");
  EXPECT_EQ(stub_->Scan(context().get(), scan, &page).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  v1::ListParkedRequest list;
  list.set_limit(3);
  v1::ListParkedResponse parked;
  ASSERT_TRUE(stub_->ListParked(context().get(), list, &parked).ok());
  EXPECT_EQ(parked.parked_size(), 3);
  EXPECT_TRUE(parked.more());

  v1::CancelResponse cancelled;
  EXPECT_EQ(stub_->Cancel(context().get(), {}, &cancelled).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::GetResponse got;
  auto no_keys = context();
  EXPECT_EQ(stub_->Get(no_keys.get(), {}, &got).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_keys).field(), "keys");
}

}  // namespace
}  // namespace kilokv::server
