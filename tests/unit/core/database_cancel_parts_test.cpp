// What ends many parked transactions goes in parts, so that others do not wait for all of it: cancels, and the end of a
// drain.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/clients/client.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;
constexpr std::uint32_t kParked = 20000;
constexpr std::size_t kPart = 1024;  // of cancelled transactions in one batch, and of what a step ends
constexpr std::uint64_t kSeeds = 5;

class CancelPartsTest : public CoreFixture {
 protected:
  using Sink = std::shared_ptr<RecordingSink>;

  // Transactions that wait until the account has 10.
  static Build waits(std::uint32_t count, const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      for (std::uint32_t i = 0; i < count; ++i) withdraw(key, 10, 3600 * kSecond)(b);
    };
  }
  Sink send(const std::shared_ptr<Client>& client, const Build& build, std::optional<SessionId> session = {},
            std::uint64_t number = 0) {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    build(builder);
    auto sink = std::make_shared<RecordingSink>();
    request->identity = {session, number, 0, {}};
    request->sink = sink;
    request->client = client;
    database->submit(std::move(request));
    return sink;
  }
  // Parks kParked transactions as request 1 of the session.
  Sink park(const SessionId& session, const std::string& key = "a", const std::shared_ptr<Client>& client = nullptr) {
    const std::uint64_t before = database->status().parked;
    Sink sink = send(client, waits(kParked, key), session, 1);
    settle();
    EXPECT_EQ(database->status().parked, before + kParked);
    return sink;
  }
  void cancel(CancelTarget target) {
    count.reset();
    database->cancel({}, std::move(target), [this](Result<std::uint64_t> got) {
      ASSERT_TRUE(got.ok()) << got.status().message();
      count = *got;
    });
  }
  // Runs until some transactions have left.
  void run_first_step() {
    const std::uint64_t before = database->status().parked;
    while (database->status().parked == before && sim.scheduler.run_one()) continue;
    EXPECT_LT(database->status().parked, before);
  }
  static std::uint64_t cancelled(const RecordingSink& sink) {
    return static_cast<std::uint64_t>(std::count_if(sink.answers.begin(), sink.answers.end(),
                                                    [](const auto& answer) { return answer.second.result.cancelled; }));
  }
  // No batch has cancelled more than a part. `sinks`: of all requests of which some were cancelled.
  static void expect_parts(const std::vector<Sink>& sinks) {
    std::map<BatchNumber, std::size_t> parts;
    std::uint64_t sum = 0;
    for (const Sink& sink : sinks) {
      sum += cancelled(*sink);
      for (const auto& [index, answer] : sink->answers) {
        if (answer.result.cancelled) ++parts[answer.result.batch];
      }
    }
    EXPECT_GE(parts.size(), sum / kPart);
    for (const auto& [batch, part] : parts) EXPECT_LE(part, kPart) << "batch " << batch;
  }
  void expect_nothing_left() {
    const DatabaseStatus status = database->status();
    EXPECT_EQ(status.parked, 0u);
    EXPECT_EQ(status.parked_bytes, 0u);
    EXPECT_EQ(status.queued_transactions, 0u);
    EXPECT_EQ(status.queued_bytes, 0u);
    EXPECT_EQ(log.reserved(), 0u);
    EXPECT_FALSE(fatal);
  }

  std::optional<std::uint64_t> count;  // what the last cancel() was answered with
};

TEST_F(CancelPartsTest, ACancelOfManyDelaysNobody) {
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim.scheduler.reseed(seed);
    const SessionId session = open_session();
    const Sink request = park(session, "a", greedy);
    std::optional<std::uint64_t> reported;
    database->cancel(greedy, {session, 1, {}, 0}, [&](Result<std::uint64_t> got) {
      EXPECT_TRUE(request->done) << "the number comes after all answers";
      reported = *got;
    });
    run_first_step();
    EXPECT_GE(database->status().parked, kParked - kPart) << "a step is short";
    const Sink other = send(light, add("other", 1));
    while (!other->done && sim.scheduler.run_one()) continue;
    ASSERT_TRUE(other->done);
    EXPECT_LT(request->answers.size(), kParked / 2) << "it did not wait for the end of the cancel";
    EXPECT_FALSE(reported);
    settle();
    EXPECT_EQ(reported, kParked);
    EXPECT_EQ(cancelled(*request), kParked);
    expect_parts({request});
    expect_nothing_left();
    EXPECT_EQ(greedy->waiting.load() + greedy->parked_bytes.load() + greedy->queued_bytes.load(), 0u);
  }
}

TEST_F(CancelPartsTest, OnlyNamedIndicesAreCancelled) {
  const SessionId session = open_session();
  const Sink request = park(session);
  CancelTarget target{session, 1, {}, 0};
  for (std::uint32_t i = kParked; i > 0; i -= 2) target.indices.push_back(i - 1);
  cancel(target);
  run_first_step();
  EXPECT_EQ(database->status().queued_bytes, 2 * sizeof(std::uint32_t) * target.indices.size())
      << "what it names counts until it is answered";
  settle();
  EXPECT_EQ(count, kParked / 2);
  EXPECT_EQ(database->status().parked, kParked / 2);
  ASSERT_EQ(request->answers.size(), kParked / 2);
  for (const auto& [index, answer] : request->answers) ASSERT_EQ(index % 2, 1u);
  expect_parts({request});
  run(add("a", 10 * (kParked / 2)));
  EXPECT_TRUE(request->done) << "the others were still waiting";
  EXPECT_EQ(cancelled(*request), kParked / 2);
  EXPECT_EQ(integer("a"), 0);
  expect_nothing_left();
}

TEST_F(CancelPartsTest, WhatRunsBetweenTwoPartsIsNotCounted) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim.scheduler.reseed(seed);
    const std::string key = "a" + std::to_string(seed);
    const SessionId session = open_session();
    const Sink request = park(session, key);
    cancel({session, 1, {}, 0});
    run_first_step();
    submit(add(key, 5000));
    settle();
    ASSERT_TRUE(request->done);
    std::uint64_t committed = 0;
    for (const auto& [index, answer] : request->answers) {
      if (answer.result.outcome == Outcome::committed) ++committed;
    }
    EXPECT_GT(committed, 0u) << "batches go on between the parts";
    EXPECT_EQ(cancelled(*request) + committed, kParked);
    EXPECT_EQ(count, cancelled(*request));
    EXPECT_EQ(integer(key), 5000 - 10 * static_cast<std::int64_t>(committed));
    expect_parts({request});
    expect_nothing_left();
  }
}

TEST_F(CancelPartsTest, ACrashBetweenTwoPartsKeepsThoseThatAreAnswered) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim.scheduler.reseed(seed);
    const SessionId session = open_session();
    const Sink request = park(session);
    cancel({session, 1, {}, 0});
    while (request->answers.empty() && sim.scheduler.run_one()) continue;
    EXPECT_FALSE(count);
    reopen();
    const Sink retry = submit(waits(kParked, "a"), session, 1);
    const std::uint64_t stored = cancelled(*retry);
    EXPECT_GE(stored, request->answers.size());
    EXPECT_LT(stored, kParked / 2);
    settle();
    EXPECT_EQ(retry->answers.size(), stored);
    EXPECT_EQ(database->status().parked, kParked - stored);
    cancel({session, 1, {}, 0});
    settle();
    EXPECT_EQ(count, kParked - stored) << "the cancel counts what it has cancelled itself";
    EXPECT_TRUE(retry->done);
    EXPECT_EQ(cancelled(*retry), kParked);
    expect_parts({retry});
    expect_nothing_left();
  }
}

// A cancel goes no further than the next batch, and the executor sleeps until this batch can form.
TEST_F(CancelPartsTest, OnePartWaitsWhileABatchIsInFlight) {
  for (const bool by_filter : {false, true}) {
    SCOPED_TRACE(by_filter);
    const SessionId session = open_session();
    const Sink request = park(session);
    sim.scheduler.hold("log");
    const Sink other = submit(add("other", 1));
    settle();
    CancelTarget target{session, 1, {}, 0};
    if (by_filter) {
      target = {};
      target.filter = ParkedFilter{};
    }
    cancel(target);
    sim.scheduler.run_until_idle(10'000);
    EXPECT_EQ(database->status().parked, kParked - kPart);
    EXPECT_FALSE(other->done);
    sim.scheduler.hold("");
    settle();
    EXPECT_TRUE(other->done);
    EXPECT_EQ(count, kParked);
    expect_parts({request});
    expect_nothing_left();
  }
}

TEST_F(CancelPartsTest, ASmallCancelDoesNotWaitForALargeOne) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim.scheduler.reseed(seed);
    const SessionId session = open_session(), other_session = open_session();
    const Sink large = park(session);
    const Sink small = submit(waits(1, "a"), other_session, 1);
    settle();
    cancel({session, 1, {}, 0});
    std::optional<std::size_t> answered;  // of the large one, when the small one has ended
    database->cancel({}, {other_session, 1, {}, 0}, [&](Result<std::uint64_t> got) {
      EXPECT_EQ(*got, 1u);
      EXPECT_TRUE(small->done);
      answered = large->answers.size();
    });
    settle();
    ASSERT_TRUE(answered);
    EXPECT_LT(*answered, kParked / 2);
    EXPECT_EQ(count, kParked);
    expect_parts({large, small});
    expect_nothing_left();
  }
}

TEST_F(CancelPartsTest, ADrainLetsACancelEnd) {
  const SessionId session = open_session();
  const Sink request = park(session);
  cancel({session, 1, {}, 0});
  bool drained = false;
  database->drain([&] { EXPECT_EQ(count, kParked); }, [&] { drained = true; });
  settle();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(request->done);
  EXPECT_FALSE(request->failure);
  expect_parts({request});
  expect_nothing_left();
}

TEST_F(CancelPartsTest, ADrainFailsWhatIsParkedAPartAtATime) {
  const SessionId session = open_session();
  const Sink many = park(session);
  std::vector<Sink> single;
  for (std::uint32_t i = 0; i < kParked; ++i) single.push_back(submit(waits(1, "b")));
  settle();
  std::uint64_t left = database->status().parked, left_at_first = 0;
  ASSERT_EQ(left, 2 * kParked);
  bool answered = false, drained = false;
  database->drain(
      [&] {
        answered = true;
        EXPECT_TRUE(many->failure);
        EXPECT_TRUE(
            std::all_of(single.begin(), single.end(), [](const Sink& sink) { return sink->failure.has_value(); }));
      },
      [&] { drained = answered; });
  while (sim.scheduler.run_one()) {
    const std::uint64_t now = database->status().parked;
    EXPECT_LE(left - now, 2 * kPart) << "a step is short";
    left = now;
    if (left_at_first == 0 && single.front()->failure) left_at_first = now;
  }
  EXPECT_GT(left_at_first, kParked / 4) << "the first are answered before the last are looked at";
  EXPECT_TRUE(drained);
  single.push_back(many);
  for (const Sink& sink : single) {
    ASSERT_TRUE(sink->failure);
    ASSERT_EQ(sink->failure->reason(), ErrorReason::draining);
    ASSERT_TRUE(sink->failure->not_run());
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace kilokv::server
