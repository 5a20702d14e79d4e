// When a batch forms, what goes into it, and its stamp.
#include "server/core/pipeline/batcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/core/pipeline/transaction_cost.hpp"
#include "tests/support/memory_log.hpp"
#include "tests/support/sim_environment.hpp"

namespace kilokv::server {
namespace {

using engine::OpKind;

constexpr engine::KeyHashSecret kSecret{1, 2};
constexpr DurationUs kDelayUs = 1000;

class BatcherTest : public ::testing::Test {
 protected:
  BatcherTest() {
    options.batch_max_transactions = 10;
    options.batch_max_delay_us = kDelayUs;
    options.batch_in_flight_max = 4;
  }

  // A request of `count` transactions with `gets` GETs each, in the queue.
  std::shared_ptr<AdmittedRequest> queue_up(std::uint32_t count, int gets = 1) { return queue_up(nobody, count, gets); }
  std::shared_ptr<AdmittedRequest> queue_up(const std::shared_ptr<Client>& client, std::uint32_t count, int gets = 1) {
    auto request = std::make_shared<AdmittedRequest>();
    request->client = client;
    request->content = std::make_unique<Request>();
    engine::ColumnsBuilder b(&request->content->transactions, kSecret);
    for (std::uint32_t i = 0; i < count; ++i) {
      b.begin();
      for (int j = 0; j < gets; ++j) b.op(OpKind::get, b.key("a"));
      b.end();
    }
    request->to_run = request->unanswered = request->transactions = count;
    request->admitted_us = sim.clock.monotonic_us();
    queue.estimate(request.get());
    EXPECT_TRUE(queue.charge(request.get()).ok());
    queue.push(request);
    return request;
  }
  // One that waits, with `gets` GETs; it is due at its deadline.
  void park(std::uint64_t arrival, TimeUs deadline_us, int gets = 1, Client* client = nullptr) {
    engine::TransactionColumns columns;
    engine::ColumnsBuilder b(&columns, kSecret);
    b.begin(0, 1000);
    b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("a"), 0);
    for (int j = 0; j < gets; ++j) b.op(OpKind::get, b.key("a"));
    b.end();
    Parked parked;
    parked.owner = std::make_shared<AdmittedRequest>();
    parked.client = client;
    parked.arrival = arrival;
    parked.deadline_us = deadline_us;
    batcher.estimate(columns, 0, &parked);
    EXPECT_TRUE(waiting.park(columns, 0, std::move(parked)).ok());
  }
  bool must_form(BatchesInFlight in_flight, bool at_once = false) {
    return batcher.must_form(sim.clock.monotonic_us(), in_flight, at_once);
  }
  bool must_form(std::uint32_t in_flight, bool at_once = false) {
    return must_form(BatchesInFlight{in_flight, 0}, at_once);
  }
  TimeUs next_due(BatchesInFlight in_flight) { return batcher.next_due(sim.clock.monotonic_us(), in_flight); }
  TimeUs due_in(std::uint32_t in_flight) { return next_due({in_flight, 0}) - sim.clock.monotonic_us(); }
  std::unique_ptr<Batch> next() {
    auto batch = std::make_unique<Batch>();
    const bool has_work = batcher.fill(position, unanswered_parts, &refused, batch.get());
    EXPECT_EQ(has_work, !batch->parts.empty() || !batch->session_entries.empty() || !batch->when_durable.empty());
    position.batch = batch->header.number;
    EXPECT_EQ(batch->columns.size(), batch->expires.size());
    return batch;
  }
  // How many transactions of each of its parts.
  static std::vector<std::uint32_t> sizes(const Batch& batch) {
    std::vector<std::uint32_t> sizes;
    for (const BatchPart& part : batch.parts) sizes.push_back(part.end - part.begin);
    return sizes;
  }
  using Sizes = std::vector<std::uint32_t>;

  const std::shared_ptr<Client> nobody = std::make_shared<Client>("");
  SimEnvironment sim{1};
  MemoryLog log;
  DatabaseOptions options;
  Access access;
  DataBudget data{0, 0};
  AdmissionQueue queue{options, &log, &data};
  Pool<Request> requests{16, 1 << 20};
  Pool<Batch> batches{16, 1 << 20};
  Waiting waiting{options};
  RefusedBatch refused{&batches};
  Batcher batcher{options, &sim.clock, &access, &queue, &requests, &waiting, sim.clock.wall_us()};
  Position position;
  std::uint64_t unanswered_parts = 0;
};

TEST_F(BatcherTest, AnIdleServerDoesNotWaitForCompany) {
  EXPECT_FALSE(must_form(0));
  EXPECT_FALSE(must_form(0, true)) << "there is nothing to do";
  EXPECT_EQ(next_due({0, 0}), kNever);
  queue_up(1);
  EXPECT_TRUE(must_form(0));
}

TEST_F(BatcherTest, WhileABatchIsInFlightOneFormsWhenItIsFull) {
  queue_up(9);
  EXPECT_FALSE(must_form(1));
  EXPECT_TRUE(must_form(1, true));
  queue_up(1);
  EXPECT_TRUE(must_form(1));
  EXPECT_TRUE(must_form(3));
  EXPECT_FALSE(must_form(4)) << "as many are in flight as may be";
  EXPECT_FALSE(must_form(4, true));
  EXPECT_EQ(next_due({4, 0}), kNever);
}

// While very many keys are due, a batch of expiries is always in flight.
TEST_F(BatcherTest, ABatchOfExpiriesInFlightIsNoReasonToWait) {
  park(1, sim.clock.wall_us());
  EXPECT_TRUE(must_form({0, 2}));
  EXPECT_EQ(next_due({0, 2}), sim.clock.monotonic_us());
  queue_up(1);
  EXPECT_TRUE(must_form({0, 2}));
  EXPECT_FALSE(must_form({1, 2})) << "the other client's batch is";
  EXPECT_FALSE(must_form({0, 4})) << "as many are in flight as may be";
  EXPECT_FALSE(must_form({2, 2}, true));
  EXPECT_EQ(next_due({2, 2}), kNever);
}

TEST_F(BatcherTest, WhileABatchIsInFlightOneFormsAfterTheDelay) {
  queue_up(1);
  sim.clock.advance(400);
  queue_up(1);
  EXPECT_EQ(due_in(1), kDelayUs - 400) << "the oldest counts";
  sim.clock.advance(kDelayUs - 401);
  EXPECT_FALSE(must_form(1));
  sim.clock.advance(1);
  EXPECT_TRUE(must_form(1));
}

TEST_F(BatcherTest, ADeadlineFormsABatchWhenNothingIsInFlight) {
  park(1, sim.clock.wall_us() + 500);
  EXPECT_FALSE(must_form(0));
  EXPECT_EQ(due_in(0), 500);
  EXPECT_EQ(due_in(1), 500);
  sim.clock.advance(500);
  EXPECT_TRUE(must_form(0));
  EXPECT_EQ(due_in(0), 0);
  EXPECT_FALSE(must_form(1));
  EXPECT_EQ(next_due({1, 0}), kNever) << "it waits for what is in flight";
  const auto batch = next();
  EXPECT_EQ(sizes(*batch), Sizes{1});
  EXPECT_EQ(batch->expires[0], 1u);
}

TEST_F(BatcherTest, WhatIsAttachedFormsABatchWithoutTransactions) {
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::closed;
  batcher.attach(entry);
  EXPECT_TRUE(batcher.has_attached());
  EXPECT_TRUE(must_form(0));
  EXPECT_FALSE(must_form(1));
  const auto batch = next();
  EXPECT_EQ(batch->session_entries.size(), 1u);
  EXPECT_TRUE(batch->columns.empty());
  EXPECT_FALSE(batcher.has_attached());
  EXPECT_FALSE(must_form(0));
}

TEST_F(BatcherTest, RequestsGoInWholeOrInPartsInTheirOrder) {
  const auto first = queue_up(4), second = queue_up(9), third = queue_up(2);
  const auto one = next();
  EXPECT_EQ(sizes(*one), (Sizes{4, 6}));
  EXPECT_EQ(first->content, nullptr) << "it is back in the pool";
  EXPECT_GT(requests.bytes(), 0u);
  EXPECT_NE(second->content, nullptr);
  const auto two = next();
  EXPECT_EQ(sizes(*two), (Sizes{3, 2}));
  EXPECT_EQ(two->parts[0].request, second);
  EXPECT_EQ(two->parts[0].first, 6u);
  EXPECT_EQ(two->parts[1].request, third);
  EXPECT_EQ(two->header.number, one->header.number + 1);
  EXPECT_EQ(two->parts[0].first_arrival, one->parts[1].first_arrival + 6) << "arrivals are consecutive";
  EXPECT_EQ(two->parts[0].admitted_batch, two->header.number);
  EXPECT_EQ(queue.next().request, nullptr);
}

TEST_F(BatcherTest, ReadsLimitABatchButItsFirstTransactionAlwaysFits) {
  options.batch_max_reads = 10;
  queue_up(5, 4);
  queue_up(1, 30);
  queue_up(1, 1);
  EXPECT_EQ(sizes(*next()), Sizes{2});
  EXPECT_EQ(sizes(*next()), Sizes{2});
  EXPECT_EQ(sizes(*next()), Sizes{1}) << "the next one does not fit beside it";
  EXPECT_EQ(sizes(*next()), Sizes{1}) << "alone it fits";
  EXPECT_EQ(sizes(*next()), Sizes{1});
}

TEST_F(BatcherTest, LogBytesLimitABatch) {
  const auto probe = queue_up(1);
  const std::uint64_t each = probe->cost.log.at(0, options.result_bytes_max);
  next();
  options.batch_max_bytes = 3 * each;
  queue_up(7);
  EXPECT_EQ(sizes(*next()), Sizes{3});
  EXPECT_EQ(sizes(*next()), Sizes{3});
  EXPECT_EQ(sizes(*next()), Sizes{1});
}

TEST_F(BatcherTest, ARequestWithABatchOfItsOwnSharesItWithNone) {
  queue_up(2);
  const auto own = queue_up(1);
  own->own_batch = true;
  queue_up(2);
  EXPECT_EQ(sizes(*next()), Sizes{2});
  EXPECT_EQ(sizes(*next()), Sizes{1});
  EXPECT_EQ(sizes(*next()), Sizes{2});
}

TEST_F(BatcherTest, AFailedRequestIsPassedOver) {
  const auto half = queue_up(12);
  EXPECT_EQ(sizes(*next()), Sizes{10});
  half->failed = true;
  batcher.drop(half.get());
  const auto other = queue_up(1);
  const auto batch = next();
  EXPECT_EQ(sizes(*batch), Sizes{1});
  EXPECT_EQ(batch->parts[0].request, other);
  EXPECT_EQ(queue.transactions(), 0u);
}

TEST_F(BatcherTest, ParkedOnesComeFirstAndTakeHalfOfTheBatch) {
  for (std::uint64_t i = 0; i < 7; ++i) park(7 - i, 1);
  queue_up(8);
  const auto batch = next();
  EXPECT_EQ(sizes(*batch), (Sizes{1, 1, 1, 1, 1, 5}));
  for (std::size_t i = 1; i < 5; ++i) EXPECT_LT(batch->parts[i - 1].first_arrival, batch->parts[i].first_arrival);
  EXPECT_EQ(sizes(*next()), (Sizes{1, 1, 3}));
}

TEST_F(BatcherTest, WhereOthersQueueParkedOnesTakeHalfOfTheReads) {
  options.batch_max_reads = 20;
  for (std::uint64_t i = 0; i < 4; ++i) park(i, 1, 4);  // 5 reads with the guard
  EXPECT_EQ(sizes(*next()), (Sizes{1, 1, 1, 1}));
  for (std::uint64_t i = 0; i < 4; ++i) park(i, 1, 4);
  queue_up(1, 10);
  EXPECT_EQ(sizes(*next()), (Sizes{1, 1, 1})) << "two that are parked and one of the queue";
}

// One parked transaction that leaves no room for the queue: the next batch is the queue's.
TEST_F(BatcherTest, AQueueThatGotNothingGoesFirstInTheNextBatch) {
  options.batch_max_reads = 20;
  for (std::uint64_t i = 0; i < 2; ++i) park(i, 1, 30);
  const auto queued = queue_up(1, 1);
  EXPECT_NE(next()->parts[0].parked_id, 0u);
  const auto second = next();
  EXPECT_EQ(sizes(*second), Sizes{1});
  EXPECT_EQ(second->parts[0].request, queued);
  EXPECT_NE(next()->parts[0].parked_id, 0u);
}

// The arrivals of the parked transactions in the batch.
std::vector<std::uint64_t> arrivals(const Batch& batch) {
  std::vector<std::uint64_t> arrivals;
  for (const BatchPart& part : batch.parts) {
    if (part.parked_id != 0) arrivals.push_back(part.first_arrival);
  }
  return arrivals;
}
using Arrivals = std::vector<std::uint64_t>;

TEST_F(BatcherTest, ClientsShareThePlacesForParkedOnesAndTheyRunByArrival) {
  Client greedy("greedy"), light("light");
  for (std::uint64_t i = 0; i < 50; ++i) park(i, 1, 1, &greedy);
  park(50, 1, 1, &light);
  EXPECT_EQ(arrivals(*next()), (Arrivals{0, 1, 2, 3, 50}));
}

// Each of the others fills a batch.
TEST_F(BatcherTest, AParkedOneDoesNotWaitForThoseOfOthersThatCostMuch) {
  options.batch_max_reads = 20;
  Client greedy("greedy"), light("light");
  for (std::uint64_t i = 0; i < 50; ++i) park(i, 1, 30, &greedy);
  EXPECT_EQ(arrivals(*next()), Arrivals{0});
  park(50, 1, 1, &light);
  const Arrivals second = arrivals(*next()), third = arrivals(*next());
  EXPECT_TRUE(second == Arrivals{50} || third == Arrivals{50});
  EXPECT_EQ(second.size() + third.size(), 2u) << "and the greedy one goes on";
}

TEST_F(BatcherTest, AParkedOneThatDoesNotFitIsPassedByOnce) {
  options.batch_max_reads = 20;
  Client large("large"), light("light");
  park(1, 1, 18, &large);
  for (std::uint64_t i = 2; i < 4; ++i) park(i, 1, 1, &light);
  EXPECT_EQ(arrivals(*next()), (Arrivals{2, 3}));
  for (std::uint64_t i = 4; i < 6; ++i) park(i, 1, 1, &light);
  EXPECT_EQ(arrivals(*next()), Arrivals{1}) << "it goes first, and leaves no room";
  EXPECT_EQ(arrivals(*next()), (Arrivals{4, 5}));
}

TEST_F(BatcherTest, WhileMuchIsNotAnsweredSmallParkedOnesPassButNotForEver) {
  options.batch_max_reads = 100;
  Client large("large"), light("light");
  park(1, 1, 90, &large);
  unanswered_parts = kWholeBatch + kWholeBatch / 5;
  EXPECT_TRUE(next()->parts.empty());
  std::uint64_t passed = 0;
  for (std::uint64_t i = 2; i < 100; ++i) {
    park(i, 1, 1, &light);
    passed += arrivals(*next()).size();
  }
  EXPECT_GT(passed, 32u);
  EXPECT_LT(passed, 80u);
  unanswered_parts = kWholeBatch;
  EXPECT_EQ(arrivals(*next()).front(), 1u);
}

// Those that are queued read so much that there is never an end of unanswered reads, unless nothing goes for a while.
TEST_F(BatcherTest, ALargeParkedOneDoesNotWaitForEverForThoseThatAreQueued) {
  options.batch_max_reads = 100;
  Client large("large"), light("light");
  const auto greedy = std::make_shared<Client>("greedy");
  park(1, 1, 90, &large);
  int formed = 0;
  for (std::uint64_t i = 2; i < 100; ++i) {
    queue_up(greedy, 2, 30);
    park(i, 1, 1, &light);
    unanswered_parts = kWholeBatch + kWholeBatch / 5;
    auto batch = next();
    if (batch->parts.empty()) {
      unanswered_parts = 0;  // what was under way is answered meanwhile
      batch = next();
    }
    ++formed;
    const Arrivals parked = arrivals(*batch);
    if (std::find(parked.begin(), parked.end(), 1u) != parked.end()) return;
  }
  FAIL() << "it got no place in " << formed << " batches";
}

// Each newcomer has one, which fills a batch. Two of them always wait.
TEST_F(BatcherTest, WhoHasManyParkedOnesDoesNotWaitForAllNewcomers) {
  options.batch_max_reads = 100;
  Client many("many");
  std::deque<Client> newcomers;
  for (std::uint64_t i = 0; i < 100; ++i) park(i, 1, 30, &many);
  std::size_t of_many = 0, waiting_newcomers = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (; waiting_newcomers < 2; ++waiting_newcomers) {
      park(1000 + newcomers.size(), 1, 120, &newcomers.emplace_back(std::to_string(newcomers.size())));
    }
    const Arrivals parked = arrivals(*next());
    const auto is_of_many = [](std::uint64_t arrival) { return arrival < 100; };
    const auto count = static_cast<std::size_t>(std::count_if(parked.begin(), parked.end(), is_of_many));
    of_many += count;
    waiting_newcomers -= parked.size() - count;
  }
  EXPECT_GE(of_many, 10u) << "it goes on, if not as fast as it would beside clients who pay for what they had";
}

// The one comes back with one before each batch, which takes more than half of it. The other has many small ones.
TEST_F(BatcherTest, WhoComesBackWithOneParkedOnePaysForThoseBefore) {
  options.batch_max_reads = 100;
  options.batch_max_transactions = 100;
  Client many("many"), one("one");
  for (std::uint64_t i = 0; i < 200; ++i) park(i, 1, 9, &many);
  bool one_waits = false;
  std::size_t of_many = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    if (!one_waits) park(1000, 1, 64, &one);
    const Arrivals parked = arrivals(*next());
    one_waits = std::find(parked.begin(), parked.end(), 1000u) == parked.end();
    of_many += parked.size() - (one_waits ? 0 : 1);
  }
  EXPECT_GE(of_many, 95u) << "half of the reads";
}

// A larger value makes copies of it dearer than they were when the transaction was parked.
TEST_F(BatcherTest, WhatWasParkedIsEstimatedAgainAtALargerValue) {
  options.batch_max_bytes = 1100000;
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, kSecret);
  b.begin(0, 1000);
  b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("a"), 0);
  b.op(OpKind::get, b.key("a"));
  b.op(OpKind::put, b.key("b"), engine::Operand::get, 0);
  b.end();
  next();  // with the smallest of values
  for (std::uint64_t i = 0; i < 4; ++i) {
    Parked parked;
    parked.owner = std::make_shared<AdmittedRequest>();
    parked.arrival = i;
    batcher.estimate(columns, 0, &parked);
    EXPECT_LT(parked.part, kWholeBatch / 2);
    EXPECT_TRUE(waiting.park(columns, 0, std::move(parked)).ok());
  }
  queue.recovered_value(400000);  // it counts as 524,288
  EXPECT_EQ(sizes(*next()), (Sizes{1, 1}));
  EXPECT_EQ(sizes(*next()), (Sizes{1, 1}));
}

TEST_F(BatcherTest, ClientsShareABatch) {
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  queue_up(greedy, 30);
  queue_up(light, 1);
  const auto batch = next();
  EXPECT_EQ(batch->parts[0].request->client, light);
  EXPECT_EQ(sizes(*batch), (Sizes{1, 9}));
}

// A turn of one of two clients is half a batch; nobody else comes, so the batch is filled all the same.
TEST_F(BatcherTest, BusyClientsFillABatchInTurns) {
  const auto one = std::make_shared<Client>("one"), two = std::make_shared<Client>("two");
  queue_up(one, 20);
  queue_up(two, 20);
  const auto batch = next();
  ASSERT_EQ(sizes(*batch), (Sizes{5, 5}));
  EXPECT_NE(batch->parts[0].request->client, batch->parts[1].request->client);
}

TEST_F(BatcherTest, ALargeReadWaitsForItsRoomButNotForEver) {
  options.batch_max_reads = 10;
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  queue_up(greedy, 3, 20);
  queue_up(light, 1);
  EXPECT_EQ(next()->parts[0].request->client, light);
  queue_up(light, 1);
  EXPECT_EQ(next()->parts[0].request->client, greedy) << "it was put off";
  EXPECT_EQ(next()->parts[0].request->client, light);
}

TEST_F(BatcherTest, WhileMuchIsNotAnsweredOnlyWhatReadsLittlePasses) {
  options.batch_max_reads = 100;
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  queue_up(greedy, 1, 90);
  unanswered_parts = kWholeBatch + kWholeBatch / 5;
  EXPECT_TRUE(next()->parts.empty()) << "its reads would pass the limit";
  queue_up(light, 1);
  EXPECT_EQ(sizes(*next()), Sizes{1});
  EXPECT_EQ(queue.ready(), 1u);
  unanswered_parts = kWholeBatch;
  EXPECT_EQ(next()->parts[0].request->client, greedy);
}

TEST_F(BatcherTest, WhatIsDroppedLeavesTheQueueAtOnce) {
  const auto dropped = queue_up(5), stays = queue_up(1);
  batcher.drop(dropped.get());
  EXPECT_EQ(queue.transactions(), 1u);
  EXPECT_EQ(queue.ready(), 1u);
  EXPECT_EQ(dropped->content, nullptr);
  EXPECT_EQ(queue.bytes(), stays->queued_bytes);
  EXPECT_EQ(next()->parts[0].request, stays);
  batcher.drop(queue_up(3).get());
  EXPECT_EQ(next_due({1, 0}), kNever) << "nothing is left to wait for";
}

TEST_F(BatcherTest, ALargerValueMakesTheNextBatchesCountAgain) {
  options.batch_max_bytes = 1100000;
  const auto copies = [&] {
    auto request = std::make_shared<AdmittedRequest>();
    request->client = nobody;
    request->content = std::make_unique<Request>();
    engine::ColumnsBuilder b(&request->content->transactions, kSecret);
    for (int i = 0; i < 4; ++i) {
      b.begin();
      b.op(OpKind::get, b.key("a"));
      b.op(OpKind::put, b.key("b"), engine::Operand::get, 0);
      b.end();
    }
    request->to_run = request->unanswered = request->transactions = 4;
    queue.estimate(request.get());
    EXPECT_TRUE(queue.charge(request.get()).ok());
    queue.push(request);
    return request;
  };
  const auto request = copies();
  queue.recovered_value(400000);  // as if such a value was admitted after the request; it counts as 524,288
  EXPECT_EQ(sizes(*next()), Sizes{2});
  EXPECT_EQ(sizes(*next()), Sizes{2});
  EXPECT_EQ(request->cost_left, 0u);
}

TEST_F(BatcherTest, StampsGoOnWhileTheWallClockGoesBack) {
  queue_up(1);
  const TimeUs first = next()->header.time_us;
  EXPECT_EQ(first, sim.clock.wall_us());
  sim.clock.jump_wall(-1000000);
  sim.clock.advance(300);
  queue_up(1);
  EXPECT_EQ(next()->header.time_us, first + 300);
  sim.clock.jump_wall(5000000);
  queue_up(1);
  EXPECT_EQ(next()->header.time_us, sim.clock.wall_us());
}

TEST_F(BatcherTest, WhatWasAttachedToARefusedBatchGoesWithTheNext) {
  queue_up(2);
  const auto failed = std::make_shared<AdmittedRequest>();
  BatchPart cancelled;
  cancelled.request = failed;
  cancelled.whole = false;
  cancelled.items = {LiveItem{0, 3, 1, true}};
  batcher.attach(cancelled);
  std::vector<int> ran;
  batcher.attach([&] { ran.push_back(1); });
  const auto batch = next();
  EXPECT_EQ(sizes(*batch), (Sizes{2, 0}));
  EXPECT_FALSE(batcher.has_attached());
  batcher.attach([&] { ran.push_back(2); });
  batcher.take_back_attached(batch.get());
  EXPECT_EQ(sizes(*batch), Sizes{2});
  EXPECT_FALSE(batcher.has_cancelled_of_failed());
  failed->failed = true;
  EXPECT_TRUE(batcher.has_cancelled_of_failed());
  const auto again = next();
  EXPECT_EQ(sizes(*again), Sizes{0});
  for (const auto& work : again->when_durable) work();
  EXPECT_EQ(ran, (std::vector{1, 2})) << "in the order in which they were attached";
}

TEST_F(BatcherTest, PartsOfARefusedBatchTakeThePlaceOfTheOthers) {
  queue_up(2);
  queue_up(2);
  auto batch = next();
  const auto first = batch->parts[0].request;
  refused.hold(std::move(batch));
  park(1, 1);
  queue_up(3);
  const auto part = next();
  EXPECT_EQ(sizes(*part), Sizes{2});
  EXPECT_EQ(part->parts[0].request, first);
  EXPECT_EQ(queue.ready(), 3u);
}

}  // namespace
}  // namespace kilokv::server
