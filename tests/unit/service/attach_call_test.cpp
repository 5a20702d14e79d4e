// The messages of AttachSession: what is asked, and lists that do not fit into one message.
#include "server/service/attach_call.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/sessions/recorded_results.hpp"

namespace kilokv::server {
namespace {

using State = v1::KnownRequest;

std::shared_ptr<const ResultSlice> slice(std::uint32_t first, std::uint32_t count, std::size_t value_bytes = 0,
                                         const std::string& key = "k") {
  std::vector<RecordedResult> results;
  for (std::uint32_t i = 0; i < count; ++i) {
    RecordedResult& recorded = results.emplace_back();
    recorded.result.index = first + i;
    recorded.result.outcome = engine::Outcome::committed;
    recorded.result.batch = 7;
    recorded.reads.push_back({.operation = 0,
                              .key = key,
                              .type = ValueType::bytes,
                              .integer = 0,
                              .bytes = std::string(value_bytes, 'v'),
                              .version = 3});
  }
  return std::make_shared<RecordedSlice>(std::move(results));
}

ListedRequest listed(std::uint64_t number, std::uint32_t transactions) {
  ListedRequest request;
  request.number = number;
  request.transactions = transactions;
  return request;
}

AttachTarget with_bytes(std::uint64_t bytes_max) {
  AttachTarget target;
  target.bytes_max = bytes_max;
  return target;
}

v1::AttachSessionResponse filled(const SessionList& list, const AttachTarget& target = with_bytes(1 << 20),
                                 const KeySet* readable = nullptr) {
  v1::AttachSessionResponse response;
  fill_list(list, target, readable, &response);
  EXPECT_LE(response.ByteSizeLong(), target.bytes_max);
  return response;
}

TEST(AttachTargetTest, TakesWhatTheMessageSays) {
  v1::AttachSessionRequest request;
  request.set_session("0123456789abcdef");
  request.set_holder(3);
  request.set_attempt("\1\0\0\0\0\0\0\2", 8);
  request.set_from_number(5);
  request.set_from_result(6);
  const Result<AttachTarget> target = attach_target(request, 1000);
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->session.bytes[15], 'f');
  EXPECT_EQ(target->holder, 3u);
  EXPECT_EQ(target->attempt, 0x0200000000000001u);
  EXPECT_EQ(target->from.number, 5u);
  EXPECT_EQ(target->from.results, 6u);
  EXPECT_EQ(target->bytes_max, 1000u);
}

TEST(AttachTargetTest, NamesTheFieldThatIsWrong) {
  v1::AttachSessionRequest request;
  EXPECT_EQ(attach_target(request, 1000).status().reason(), ErrorReason::missing_field);
  request.set_session("01234567");  // the begin that a list shows
  EXPECT_EQ(attach_target(request, 1000).status().reason(), ErrorReason::out_of_range);
  EXPECT_EQ(attach_target(request, 1000).status().violation()->field, "session");
  request.set_session("0123456789abcdef");
  EXPECT_EQ(attach_target(request, 1000)->attempt, 0u);
  request.set_attempt("1234567");
  EXPECT_EQ(attach_target(request, 1000).status().violation()->field, "attempt");
  EXPECT_EQ(attach_target(request, 1000).status().violation()->limit, "8 bytes, or empty");
}

TEST(AttachListTest, EachStateHasItsName) {
  struct Case {
    std::uint32_t decided, parked, queued;
    State::State state;
  };
  SessionList list{.holder = 2, .lease_us = 77, .acknowledged_through = 4};
  const std::vector<Case> cases = {{3, 0, 0, State::STATE_DECIDED},        {1, 2, 0, State::STATE_PARTLY_DECIDED},
                                   {1, 0, 2, State::STATE_PARTLY_DECIDED}, {2, 0, 0, State::STATE_PARTLY_DECIDED},
                                   {0, 3, 0, State::STATE_PARKED},         {0, 1, 2, State::STATE_PARKED},
                                   {0, 0, 3, State::STATE_QUEUED}};
  for (const Case& one : cases) {
    ListedRequest& request = list.requests.emplace_back(listed(list.requests.size() + 5, 3));
    request.decided = one.decided;
    request.parked = one.parked;
    request.queued = one.queued;
    if (one.decided > 0) request.results = {slice(0, one.decided)};
  }
  const v1::AttachSessionResponse response = filled(list);
  EXPECT_EQ(response.holder(), 2u);
  EXPECT_EQ(response.lease_us(), 77u);
  EXPECT_EQ(response.acknowledged_through(), 4u);
  EXPECT_FALSE(response.more());
  ASSERT_EQ(response.requests_size(), static_cast<int>(cases.size()));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const v1::KnownRequest& request = response.requests(static_cast<int>(i));
    EXPECT_EQ(request.number(), i + 5);
    EXPECT_EQ(request.state(), cases[i].state) << i;
    EXPECT_EQ(request.transactions(), 3u);
    EXPECT_EQ(request.decided(), cases[i].decided);
    EXPECT_EQ(request.parked(), cases[i].parked);
    EXPECT_EQ(request.queued(), cases[i].queued);
    EXPECT_EQ(request.results_size(), static_cast<int>(cases[i].decided));
  }
  EXPECT_EQ(response.requests(0).results(2).index(), 2u);
  EXPECT_EQ(response.requests(0).results(2).batch(), 7u);
}

// Asks for one part after the other, as a client does. The core gives all slices from the position on.
class Parts {
 public:
  Parts(std::vector<ListedRequest> requests, std::uint64_t bytes_max)
      : requests_(std::move(requests)), target_(with_bytes(bytes_max)) {}

  // All results, by request number and index; and how many messages there were.
  std::map<std::uint64_t, std::vector<std::uint32_t>> all() {
    std::map<std::uint64_t, std::vector<std::uint32_t>> seen;
    for (messages = 1; messages < 1000; ++messages) {
      const v1::AttachSessionResponse response = filled(from_position(), target_);
      for (const v1::KnownRequest& request : response.requests()) {
        std::vector<std::uint32_t>& indices = seen[request.number()];
        for (const v1::TransactionResult& result : request.results()) {
          indices.push_back(result.index());
          EXPECT_FALSE(result.reads_dropped());
        }
      }
      if (!response.more()) return seen;
      const SessionListPosition next{response.next_number(), response.next_result()};
      EXPECT_TRUE(next.number > target_.from.number ||
                  (next.number == target_.from.number && next.results > target_.from.results))
          << "it goes on";
      target_.from = next;
    }
    ADD_FAILURE() << "there is no end";
    return seen;
  }
  int messages = 0;

 private:
  SessionList from_position() const {
    SessionList list;
    for (const ListedRequest& request : requests_) {
      if (request.number < target_.from.number) continue;
      ListedRequest& shown = list.requests.emplace_back(request);
      if (request.number != target_.from.number) continue;
      std::uint64_t left = target_.from.results;
      while (!shown.results.empty() && shown.results.front()->size() <= left) {
        left -= shown.results.front()->size();
        shown.results.erase(shown.results.begin());
      }
      shown.shown = static_cast<std::uint32_t>(left);
    }
    return list;
  }

  std::vector<ListedRequest> requests_;
  AttachTarget target_;
};

TEST(AttachListTest, ALongListComesInSeveralMessages) {
  std::vector<ListedRequest> requests;
  for (std::uint64_t number = 1; number <= 40; ++number) {
    ListedRequest& request = requests.emplace_back(listed(number, 10));
    request.decided = number % 4 == 0 ? 0 : 10;
    request.queued = 10 - request.decided;
    if (request.decided > 0) request.results = {slice(0, 4, 100), slice(4, 1, 700), slice(5, 5, 10)};
  }
  int messages_before = 0;
  for (const std::uint64_t bytes_max : {100'000, 5'000, 2'000, 1'200}) {
    Parts parts(requests, bytes_max);
    const auto seen = parts.all();
    ASSERT_EQ(seen.size(), 40u) << bytes_max;
    for (const auto& [number, indices] : seen) {
      std::vector<std::uint32_t> expected(number % 4 == 0 ? 0 : 10);
      for (std::uint32_t i = 0; i < expected.size(); ++i) expected[i] = i;
      EXPECT_EQ(indices, expected) << "number " << number << " with " << bytes_max;
    }
    EXPECT_GT(parts.messages, messages_before);
    messages_before = parts.messages;
  }
}

// Requests without results also take room.
TEST(AttachListTest, ManyRequestsWithoutResultsComeInSeveralMessages) {
  std::vector<ListedRequest> requests;
  for (std::uint64_t number = 1; number <= 500; ++number) {
    ListedRequest& request = requests.emplace_back(listed(~std::uint64_t{0} - 1000 + number, ~std::uint32_t{0}));
    request.parked = request.queued = ~std::uint32_t{0} / 2;
  }
  Parts parts(requests, 1024);
  EXPECT_EQ(parts.all().size(), 500u);
  EXPECT_GT(parts.messages, 10);
}

TEST(AttachListTest, AResultThatIsTooLongLosesItsReads) {
  SessionList list;
  ListedRequest& request = list.requests.emplace_back(listed(1, 2));
  request.decided = 2;
  request.results = {slice(0, 1, 5'000), slice(1, 1, 10)};
  const v1::AttachSessionResponse response = filled(list, with_bytes(2'000));
  ASSERT_EQ(response.requests(0).results_size(), 2);
  EXPECT_TRUE(response.requests(0).results(0).reads_dropped());
  EXPECT_EQ(response.requests(0).results(0).reads_size(), 0);
  EXPECT_FALSE(response.requests(0).results(1).reads_dropped());
}

// Core leaves slices out when the message is about full. The rest comes later.
TEST(AttachListTest, ResultsThatAreMissingMakeTheListGoOn) {
  SessionList list;
  ListedRequest& request = list.requests.emplace_back(listed(9, 5));
  request.decided = 5;
  request.results = {slice(0, 3)};
  const v1::AttachSessionResponse response = filled(list);
  EXPECT_TRUE(response.more());
  EXPECT_EQ(response.next_number(), 9u);
  EXPECT_EQ(response.next_result(), 3u);
  AttachTarget rest = with_bytes(1 << 20);
  rest.from = {9, 3};
  list.requests.front().results = {slice(2, 3)};
  list.requests.front().shown = 1;
  const v1::AttachSessionResponse last = filled(list, rest);
  EXPECT_FALSE(last.more());
  ASSERT_EQ(last.requests(0).results_size(), 2);
  EXPECT_EQ(last.requests(0).results(0).index(), 3u);
  list.goes_on_at(12);
  const v1::AttachSessionResponse further = filled(list, rest);
  EXPECT_TRUE(further.more());
  EXPECT_EQ(further.next_number(), 12u);
  EXPECT_EQ(further.next_result(), 0u);
}

// The requests of a part may all have ended meanwhile.
TEST(AttachListTest, APartWithoutRequestsGoesOn) {
  SessionList list{.holder = 2};
  list.goes_on_at(7);
  const v1::AttachSessionResponse response = filled(list);
  EXPECT_EQ(response.requests_size(), 0);
  EXPECT_TRUE(response.more());
  EXPECT_EQ(response.next_number(), 7u);
}

// A result is shown without its keys if one of them must not be read: all or nothing, so that nobody takes a part for
// the whole.
TEST(AttachListTest, KeysThatMayNotBeReadAreNotShown) {
  SessionList list;
  ListedRequest& request = list.requests.emplace_back(listed(1, 4));
  request.decided = 4;
  std::vector<RecordedResult> results(2);
  results[0].result.index = 2;
  results[0].result.outcome = engine::Outcome::guard_failed;
  results[0].result.failed_in = engine::FailedIn::guards;
  results[0].guard =
      RecordedValue{.operation = 0, .key = "z", .type = ValueType::integer, .integer = 5, .bytes = {}, .version = {}};
  results[1].result.index = 3;
  results[1].result.outcome = engine::Outcome::committed;
  results[1].reads = {
      {.operation = 0, .key = "b", .type = ValueType::integer, .integer = 6, .bytes = {}, .version = {}},
      {.operation = 1, .key = "y", .type = ValueType::integer, .integer = 7, .bytes = {}, .version = {}}};
  request.results = {slice(0, 1, 3, "b"), slice(1, 1, 3, "x"), std::make_shared<RecordedSlice>(results)};
  const KeySet readable(std::vector<KeyRange>{{"a", "c"}});
  const v1::AttachSessionResponse response = filled(list, with_bytes(1 << 20), &readable);
  const v1::KnownRequest& shown = response.requests(0);
  ASSERT_EQ(shown.results_size(), 4);
  EXPECT_EQ(shown.results(0).reads_size(), 1);
  EXPECT_FALSE(shown.results(0).reads_dropped());
  for (const int hidden : {1, 2, 3}) {
    EXPECT_EQ(shown.results(hidden).reads_size(), 0) << hidden;
    EXPECT_FALSE(shown.results(hidden).has_guard_value()) << hidden;
    EXPECT_TRUE(shown.results(hidden).reads_dropped()) << hidden;
  }
  EXPECT_EQ(shown.results(2).outcome(), v1::OUTCOME_GUARD_FAILED) << "the outcome is its own";
  EXPECT_EQ(filled(list).requests(0).results(3).reads_size(), 2);
}

}  // namespace
}  // namespace kilokv::server
