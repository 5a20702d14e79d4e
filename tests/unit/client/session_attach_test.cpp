// Attaching to a session: the list comes in parts, what was open stays open until the program says otherwise, and an
// earlier holder ends.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

using State = KnownRequest::State;

const std::string kId = "5f3a9c010000000000000000000000ff";

class AttachTest : public SessionTest {
 protected:
  void SetUp() override {
    auto client = Client::connect(server_.client_options());
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }
  AttachedSession attach(const AttachOptions& options = {}) {
    auto attached = client_->attach_session(kId, options);
    EXPECT_TRUE(attached) << attached.error().message;
    return attached ? std::move(*attached) : AttachedSession();
  }
  static v1::KnownRequest known(std::uint64_t number, std::uint32_t transactions, v1::KnownRequest::State state) {
    v1::KnownRequest request;
    request.set_number(number);
    request.set_transactions(transactions);
    request.set_state(state);
    return request;
  }
  static void add_result(std::uint32_t index, v1::Outcome outcome, v1::KnownRequest* request) {
    v1::TransactionResult* result = request->add_results();
    result->set_index(index);
    result->set_outcome(outcome);
    request->set_decided(request->decided() + 1);
  }
  // The numbers 5 (decided), 7 (partly decided) and 9 (parked), after the acknowledged ones up to 3.
  void list_three() {
    server_.on_attach = [](const v1::AttachSessionRequest&, v1::AttachSessionResponse* response, auto*) {
      response->set_acknowledged_through(3);
      v1::KnownRequest decided = known(5, 1, v1::KnownRequest::STATE_DECIDED);
      add_result(0, v1::OUTCOME_GUARD_FAILED, &decided);
      v1::KnownRequest partly = known(7, 3, v1::KnownRequest::STATE_PARTLY_DECIDED);
      add_result(2, v1::OUTCOME_COMMITTED, &partly);
      partly.set_parked(1);
      partly.set_queued(1);
      v1::KnownRequest parked = known(9, 2, v1::KnownRequest::STATE_PARKED);
      parked.set_parked(2);
      for (const v1::KnownRequest& request : {decided, partly, parked}) *response->add_requests() = request;
      return grpc::Status();
    };
  }
  // The last message that the server has seen acknowledges this number.
  std::uint64_t acknowledged() { return server_.seen().back().acknowledged_through(); }
};

TEST_F(AttachTest, TellsTheStateOfEachNumber) {
  list_three();
  const AttachedSession attached = attach();
  EXPECT_EQ(attached.session->id(), kId);
  EXPECT_EQ(attached.session->holder(), 1u);
  EXPECT_EQ(attached.acknowledged_through, 3u);
  ASSERT_EQ(attached.requests.size(), 3u);
  const std::vector<std::pair<std::uint64_t, State>> states = {
      {1, State::acknowledged},   {3, State::acknowledged}, {4, State::not_known}, {5, State::decided},
      {7, State::partly_decided}, {8, State::not_known},    {9, State::parked},    {10, State::not_known}};
  for (const auto& [number, state] : states) EXPECT_EQ(attached.state_of(number), state) << number;
  const KnownRequest& partly = attached.requests.at(1);
  EXPECT_EQ(partly.transactions, 3u);
  EXPECT_EQ(partly.decided, 1u);
  EXPECT_EQ(partly.parked, 1u);
  EXPECT_EQ(partly.queued, 1u);
  EXPECT_EQ(partly.results.outcome(0), Outcome::unknown);
  EXPECT_EQ(partly.results.outcome(2), Outcome::committed);
  EXPECT_EQ(attached.requests.at(0).results.outcome(0), Outcome::guard_failed);
  EXPECT_STREQ(to_string(State::partly_decided), "partly_decided");
}

TEST_F(AttachTest, ALongListComesInParts) {
  std::vector<v1::AttachSessionRequest> asked;
  server_.on_attach = [&](const v1::AttachSessionRequest& request, v1::AttachSessionResponse* response, auto*) {
    asked.push_back(request);
    v1::KnownRequest part = known(6, 3, v1::KnownRequest::STATE_PARTLY_DECIDED);
    switch (asked.size()) {
      case 1:
        *response->add_requests() = known(5, 1, v1::KnownRequest::STATE_QUEUED);
        add_result(1, v1::OUTCOME_COMMITTED, &part);
        break;
      case 2: add_result(0, v1::OUTCOME_COMMITTED, &part); break;
      default:
        part = known(6, 3, v1::KnownRequest::STATE_DECIDED);
        add_result(2, v1::OUTCOME_COMMITTED, &part);
        part.set_decided(3);
    }
    *response->add_requests() = part;
    response->set_more(asked.size() < 3);
    response->set_next_number(6);
    response->set_next_result(asked.size());
    return grpc::Status();
  };
  const AttachedSession attached = attach();
  ASSERT_EQ(attached.requests.size(), 2u);
  EXPECT_EQ(attached.state_of(6), State::decided) << "as of the last part";
  EXPECT_EQ(attached.requests.at(1).decided, 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(attached.requests.at(1).results.outcome(i), Outcome::committed);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].holder(), 0u);
  EXPECT_EQ(asked[0].attempt().size(), 8u);
  EXPECT_EQ(asked[1].holder(), 1u);
  EXPECT_EQ(asked[1].from_number(), 6u);
  EXPECT_EQ(asked[2].from_result(), 2u);
}

// The server has made a holder, and its answer was lost.
TEST_F(AttachTest, AnAttachIsSentAgainUnderTheSameName) {
  std::vector<std::string> attempts;
  server_.on_attach = [&](const v1::AttachSessionRequest& request, v1::AttachSessionResponse*, auto*) {
    attempts.push_back(request.attempt());
    return attempts.size() == 1 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost") : grpc::Status();
  };
  attach();
  attach();
  ASSERT_EQ(attempts.size(), 3u);
  EXPECT_EQ(attempts[0], attempts[1]);
  EXPECT_NE(attempts[0], attempts[2]) << "another attach";
}

TEST_F(AttachTest, AListThatContradictsItselfIsAnError) {
  const std::vector<std::function<void(v1::AttachSessionResponse*)>> wrong = {
      [](auto* response) { response->set_more(true); },  // it does not go on
      [](auto* response) {
        response->set_more(true);
        response->set_next_number(4);
        response->set_holder(0);
      },
      [](auto* response) {
        *response->add_requests() = known(6, 1, v1::KnownRequest::STATE_QUEUED);
        *response->add_requests() = known(5, 1, v1::KnownRequest::STATE_QUEUED);
      },
      [](auto* response) {
        *response->add_requests() = known(6, 1, v1::KnownRequest::STATE_QUEUED);
        *response->add_requests() = known(6, 2, v1::KnownRequest::STATE_QUEUED);
      },
      [](auto* response) { *response->add_requests() = known(6, ~0u, v1::KnownRequest::STATE_QUEUED); },
      [](auto* response) {
        v1::KnownRequest request = known(6, 1, v1::KnownRequest::STATE_DECIDED);
        add_result(1, v1::OUTCOME_COMMITTED, &request);
        *response->add_requests() = request;
      }};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    server_.on_attach = [&](const v1::AttachSessionRequest&, v1::AttachSessionResponse* response, auto*) {
      wrong[i](response);
      return grpc::Status();
    };
    const auto attached = client_->attach_session(kId);
    ASSERT_FALSE(attached) << i;
    EXPECT_EQ(attached.error().code, ErrorCode::internal) << i << ": " << attached.error().message;
  }
}

TEST_F(AttachTest, EveryCallCarriesTheHolder) {
  list_three();
  AttachedSession attached = attach();
  ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_EQ(server_.seen().back().holder(), 1u);
  EXPECT_EQ(server_.seen().back().number(), 10u) << "after all that the server knows";
  attached.session.reset();
  EXPECT_EQ(server_.holders(), std::vector<std::uint64_t>{1}) << "of the close";
}

TEST_F(AttachTest, NewRequestsComeAfterTheNumbersThatWereUsed) {
  list_three();
  AttachOptions options;
  options.numbers_used = 20;
  AttachedSession attached = attach(options);
  ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_EQ(server_.seen().back().number(), 21u);
}

TEST_F(AttachTest, WhatWasOpenIsNotAcknowledgedByItself) {
  list_three();
  AttachedSession attached = attach();
  Session& session = *attached.session;
  ASSERT_TRUE(session.execute(adds(1)));
  ASSERT_TRUE(session.execute(adds(1)));
  EXPECT_EQ(acknowledged(), 3u) << "as the server said";
  session.acknowledge_through(7);
  ASSERT_TRUE(session.execute(adds(1)));
  EXPECT_EQ(acknowledged(), 7u);
  session.acknowledge_through(1'000'000);
  ASSERT_TRUE(session.execute(adds(1)));
  EXPECT_GE(acknowledged(), 11u) << "with what was answered since";
  session.acknowledge_through(2);
  ASSERT_TRUE(session.execute(adds(1)));
  EXPECT_GE(acknowledged(), 11u) << "it never goes back";
}

TEST_F(AttachTest, AfterManyRequestsItIsAcknowledged) {
  list_three();
  AttachedSession attached = attach();
  for (int i = 0; i < 1'023; ++i) ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_EQ(acknowledged(), 3u);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_GE(acknowledged(), 9u);
}

TEST_F(AttachTest, WhatWasOpenCanBeResumed) {
  list_three();
  AttachedSession attached = attach();
  Session& session = *attached.session;
  EXPECT_FALSE(session.resume(3, adds(1))) << "it is acknowledged";
  EXPECT_FALSE(session.resume(10, adds(1))) << "it is new";
  const auto known = session.resume(9, adds(2));
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->request, 9u);
  EXPECT_EQ(server_.seen().back().number(), 9u);
  const auto unknown = session.resume(4, adds(1));  // it runs for the first time
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_EQ(server_.times_applied(4), 1u);
  EXPECT_FALSE(session.resume(4, adds(1))) << "it has ended";
}

// One that was resumed and has no answer yet keeps its number, and with it all after it.
TEST_F(AttachTest, AResumedRequestInFlightIsNotAcknowledged) {
  list_three();
  std::promise<void> arrived;
  std::promise<void> go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    if (request.number() == 7) {
      arrived.set_value();
      may_go_on.wait();
    }
    return server_.answer(request, write);
  };
  AttachedSession attached = attach();
  std::thread resumed([&] { EXPECT_TRUE(attached.session->resume(7, adds(3))); });
  arrived.get_future().wait();
  attached.session->acknowledge_through(9);
  go_on.set_value();
  resumed.join();
  // It is acknowledged soon after its answer, and not with it.
  ASSERT_TRUE(attached.session->execute(adds(1)));
  for (int i = 0; i < 1'000 && acknowledged() < 7; ++i) ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_EQ(acknowledged(), 7u) << "up to the one in flight, and now that one, too";
  attached.session->acknowledge_through(9);
  for (int i = 0; i < 1'000 && acknowledged() < 10; ++i) ASSERT_TRUE(attached.session->execute(adds(1)));
  EXPECT_GE(acknowledged(), 10u);
}

TEST_F(AttachTest, ReadSetsOfEarlierHoldersAreSentAsTheyWere) {
  list_three();
  AttachedSession attached = attach();
  std::atomic<int> uploads = 0;
  server_.on_upload = [&](const v1::UploadReadSetRequest& request) {
    EXPECT_EQ(request.id().holder(), 1u);
    EXPECT_EQ(request.id().number(), 7u);
    ++uploads;
  };
  server_.on_execute = [](const v1::ExecuteRequest& request, v1::ExecuteResponse* response, auto*) {
    EXPECT_EQ(request.id().holder(), 1u);
    response->mutable_result()->set_outcome(v1::OUTCOME_COMMITTED);
    return grpc::Status();
  };
  ASSERT_TRUE(attached.session->resume(7, many_reads()));
  EXPECT_GT(uploads, 0);
  const int before = uploads;
  ASSERT_TRUE(attached.session->resume(9, one_read()));
  EXPECT_EQ(uploads, before);
}

TEST_F(AttachTest, TheHolderAsksAgain) {
  list_three();
  const AttachedSession attached = attach();
  std::vector<v1::AttachSessionRequest> asked;
  const auto before = server_.on_attach;
  server_.on_attach = [&](const v1::AttachSessionRequest& request, auto* response, auto* context) {
    asked.push_back(request);
    return before(request, response, context);
  };
  const auto list = attached.session->known_requests();
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->size(), 3u);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].holder(), 1u) << "it attaches nothing";
  EXPECT_TRUE(asked[0].attempt().empty());
}

TEST_F(AttachTest, WhoHasOpenedASessionCannotAsk) {
  open();
  const auto list = session_->known_requests();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(session_->holder(), 0u);
}

TEST_F(AttachTest, ASessionThatIsKeptOpenIsNotClosed) {
  open();
  session_->keep_open();
  session_.reset();
  EXPECT_TRUE(server_.holders().empty());
  open();
  session_.reset();
  EXPECT_EQ(server_.holders().size(), 1u);
}

TEST_F(AttachTest, AWrongIdIsRefusedAtOnce) {
  EXPECT_EQ(client_->attach_session("xyz").error().code, ErrorCode::invalid_argument);
}

// Another client has attached. What is in flight may still be answered, and nothing more is sent.
TEST_F(AttachTest, AFencedSessionEnds) {
  open();
  std::atomic<int> sent = 0;
  server_.on_request = [&](const v1::SessionRequest& request, const auto& write) -> std::optional<grpc::Status> {
    ++sent;
    v1::SessionResponse response = refusal(request.number(), grpc::StatusCode::FAILED_PRECONDITION, 0);
    response.mutable_error()->mutable_detail()->set_reason(v1::ERROR_REASON_SESSION_FENCED);
    write(response);
    return std::nullopt;
  };
  const Error first = session_->execute(adds(1)).error();
  EXPECT_EQ(first.code, ErrorCode::failed_precondition);
  EXPECT_EQ(first.reason, "SESSION_FENCED");
  EXPECT_TRUE(never_ran(first));
  const Error second = session_->execute(adds(1)).error();
  EXPECT_EQ(second.reason, "SESSION_FENCED");
  EXPECT_EQ(second.attempts, 0u);
  EXPECT_EQ(sent, 1);
}

}  // namespace
}  // namespace kilokv::client
