// Who wakes, in which order; how a cancel, a failure and a drain end the waiting.
#include "server/core/waiting/waiting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "server/core/request.hpp"
#include "tests/unit/core/waiting/waiting_fixture.hpp"

namespace kilokv::server {
namespace {

TEST_F(WaitingTest, TheyRunInTheOrderOfTheirFirstArrival) {
  const std::uint64_t third = park("a", 30), first = park("b", 10), second = park("a", 20);
  deposit("a", 5);
  deposit("b", 5);
  EXPECT_EQ(waiting.awake(), 3u);
  EXPECT_EQ(hand_out(), (Ids{first, second, third}));
  EXPECT_TRUE(waiting.empty());
}

TEST_F(WaitingTest, AWriteThatDecidesNothingWakesNobody) {
  const std::uint64_t id = park("a", 1, 1000000, 10);
  deposit("a", 5);
  EXPECT_EQ(waiting.awake(), 0u);
  EXPECT_TRUE(waiting.quiet());
  deposit("a", 5);
  EXPECT_FALSE(waiting.quiet());
  EXPECT_EQ(hand_out(), Ids{id});
}

TEST_F(WaitingTest, OneWithoutAPlaceKeepsItsTurnBeforeThoseThatWakeLater) {
  const std::uint64_t later = park("b", 1), first = park("a", 5), second = park("a", 6), third = park("a", 7);
  deposit("a", 5);
  deposit("b", 5);
  EXPECT_EQ(hand_out(0, 2, 0), Ids{}) << "they are offered, and get no place";
  EXPECT_EQ(hand_out(0, 1), Ids{first});
  EXPECT_EQ(hand_out(0, 2, 1), Ids{second});
  EXPECT_EQ(hand_out(), (Ids{later, third})) << "of those that get places together the first arrival";
}

TEST_F(WaitingTest, OneIsDueAtItsDeadlineAndOfferedOnceThoughItIsAwake) {
  const std::uint64_t late = park("a", 1, 3000), early = park("a", 2, 2000), awake = park("b", 3, 2000);
  EXPECT_EQ(waiting.next_due_us(), 2000);
  EXPECT_EQ(hand_out(1999), Ids{});
  deposit("b", 5);
  EXPECT_EQ(hand_out(2000), (Ids{early, awake}));
  EXPECT_EQ(hand_out(3000), Ids{late});
}

class WaitingForATimeTest : public WaitingTest {
 protected:
  // Waits until the stamp is at least the value of the key.
  std::uint64_t park_until(const std::string& key, std::uint64_t arrival, TimeUs deadline_us) {
    engine::TransactionColumns columns;
    engine::ColumnsBuilder b(&columns, WrittenTable::kSecret);
    b.begin(0, 1000);
    b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, b.key(key), 0);
    b.op(engine::OpKind::get, b.key(key));
    b.end();
    Parked parked;
    parked.arrival = arrival;
    parked.deadline_us = deadline_us;
    parked.next_time_us = table.engine()->next_time(columns, 0, table.now().time_us);
    const Result<std::uint64_t> id = waiting.park(columns, 0, std::move(parked));
    EXPECT_TRUE(id.ok());
    return id.ok() ? *id : 0;
  }
  // Adds to the key in a batch whose stamp the transactions here have seen, too.
  void move(const std::string& key, std::int64_t delta) {
    hand_out(table.now().time_us + 1000, 0);
    deposit(key, delta);
  }
};

TEST_F(WaitingForATimeTest, OneIsDueAtItsTimeOrAtItsDeadline) {
  table.add("soon", 20000);
  table.add("late", 90000);
  const std::uint64_t soon = park_until("soon", 1, 50000), late = park_until("late", 2, 50000);
  EXPECT_EQ(waiting.next_due_us(), 20000);
  EXPECT_EQ(hand_out(19999), Ids{});
  EXPECT_EQ(hand_out(20000), Ids{soon});
  EXPECT_EQ(waiting.next_due_us(), 50000);
  EXPECT_EQ(hand_out(49999), Ids{});
  EXPECT_EQ(hand_out(50000), Ids{late});
}

TEST_F(WaitingForATimeTest, TheTimeIsReadAgainWhenItsKeyIsWritten) {
  table.add("end", 20000);
  const std::uint64_t id = park_until("end", 1, 500000);
  move("end", 10000);
  EXPECT_EQ(waiting.awake(), 0u);
  EXPECT_EQ(waiting.next_due_us(), 30000) << "later";
  move("end", -5000);
  EXPECT_EQ(waiting.next_due_us(), 25000) << "earlier";
  move("end", 1000000);
  EXPECT_EQ(waiting.next_due_us(), 500000) << "after the deadline";
  EXPECT_EQ(hand_out(499999), Ids{});
  move("end", -1024999);
  EXPECT_EQ(waiting.awake(), 1u) << "the time is over";
  EXPECT_EQ(hand_out(499999), Ids{id});
}

// Many wait for one lease. When it is over, one of them gets a place in the batch, and takes it.
TEST_F(WaitingForATimeTest, WhatIsDueByATimeIsLookedAtWhenItsKeyIsWritten) {
  table.add("end", 20000);
  const std::uint64_t first = park_until("end", 1, 500000), second = park_until("end", 2, 500000),
                      third = park_until("end", 3, 500000);
  EXPECT_EQ(hand_out(20000, 1), Ids{first});
  EXPECT_EQ(waiting.next_due_us(), 20000) << "two are left";
  deposit("end", 30000);
  EXPECT_EQ(waiting.awake(), 0u);
  EXPECT_EQ(waiting.next_due_us(), 50000);
  EXPECT_EQ(hand_out(49999), Ids{});
  EXPECT_EQ(hand_out(50000, 1), Ids{second});
  deposit("end", -50000);
  EXPECT_EQ(waiting.awake(), 0u) << "it was given back; what is due keeps its turn";
  EXPECT_EQ(waiting.next_due_us(), 50000);
  EXPECT_EQ(hand_out(50000), Ids{third});
}

TEST_F(WaitingForATimeTest, AListShowsNoKeyOfAGuardWithoutOne) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, WrittenTable::kSecret);
  b.begin(0, 1000);
  b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, engine::kNone, 20000);
  b.op(engine::OpKind::get, b.key("a"));
  b.end();
  Parked parked;
  parked.deadline_us = 500000;
  parked.next_time_us = table.engine()->next_time(columns, 0, 0);
  ASSERT_TRUE(waiting.park(columns, 0, std::move(parked)).ok());
  const Waiting::List list = waiting.list(0, 10);
  ASSERT_EQ(list.parked.size(), 1u);
  EXPECT_EQ(list.parked[0].guard_key, "");
  EXPECT_EQ(waiting.next_due_us(), 20000);
}

TEST_F(WaitingForATimeTest, AWakeTimeOfOneClientDoesNotDisturbItsOthers) {
  table.add("a", 20000);
  table.add("b", 30000);
  const std::uint64_t first = park_until("a", 1, 500000), second = park_until("b", 2, 500000),
                      third = park("c", 3, 40000);
  move("a", 15000);
  EXPECT_EQ(waiting.next_due_us(), 30000);
  EXPECT_EQ(hand_out(34999), Ids{second});
  EXPECT_EQ(hand_out(35000), Ids{first});
  EXPECT_EQ(hand_out(40000), Ids{third});
}

TEST_F(WaitingTest, OneRoundOfCandidatesAfterEachBatchUnlessTheServerIsIdle) {
  for (std::uint64_t i = 0; i < 1500; ++i) park("hot", i);
  deposit("hot", 1500);
  EXPECT_EQ(waiting.awake(), 1024u);
  wake();
  EXPECT_EQ(waiting.awake(), 1024u);
  wake(/*idle=*/true);
  EXPECT_EQ(waiting.awake(), 1500u);
}

TEST_F(WaitingTest, ACancelWaitsWhileItsRequestIsQueued) {
  const SessionId mine{{1}};
  park("a", 1, 1000000, 1, mine, 5);
  const std::uint64_t other = park("a", 2, 1000000, 1, mine, 6);
  waiting.cancel({mine, 5, {}, 0}, 0, [](const Result<std::uint64_t>&) {});
  const auto five_is_queued = [&](const RequestName& name) { return name == RequestName{mine, 5}; };
  EXPECT_FALSE(waiting.take_cancelled(five_is_queued, kPart));
  EXPECT_FALSE(waiting.quiet());
  EXPECT_EQ(waiting.parked(), 2u);
  waiting.cancel({{}, 0, {}, other}, 0, [](const Result<std::uint64_t>&) {});
  const auto overtook = waiting.take_cancelled(five_is_queued, kPart);
  ASSERT_TRUE(overtook) << "another cancel does not wait for it";
  EXPECT_EQ(overtook->parked.at(0).id, other);
  const auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->parked.size(), 1u);
  EXPECT_EQ(waiting.parked(), 0u);
  EXPECT_TRUE(waiting.quiet());
  EXPECT_EQ(cancel({{}, 0, {}, other}), 0u) << "there is none such any more";
}

class FilteredCancelTest : public WaitingTest {
 protected:
  std::uint64_t park_of(const std::shared_ptr<Client>& client, const std::string& key, TimeUs since_us) {
    Parked parked;
    parked.client = client.get();
    parked.arrival = ++arrivals_;
    parked.since_us = since_us;
    parked.deadline_us = 1000000;
    const Result<std::uint64_t> id = waiting.park(withdrawal(key, 1), 0, std::move(parked));
    EXPECT_TRUE(id.ok());
    waiting.end_batch({});
    return id.ok() ? *id : 0;
  }
  std::optional<std::size_t> cancel_filtered(ParkedFilter filter, TimeUs now_us = 1000) {
    CancelTarget target;
    target.filter = std::move(filter);
    return cancel(target, now_us);
  }

  const std::shared_ptr<Client> one = std::make_shared<Client>("one"), two = std::make_shared<Client>("two");

 private:
  std::uint64_t arrivals_ = 0;
};

TEST_F(FilteredCancelTest, AllConditionsMustHold) {
  park_of(one, "account/1", 100);
  park_of(one, "order/1", 100);
  park_of(one, "account/2", 900);
  const std::uint64_t left = park_of(two, "account/3", 100);
  park_of(nullptr, "account/4", 901);
  const std::vector<ParkedTransaction> listed = waiting.list(left - 1, 1).parked;
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].client, "two");
  EXPECT_EQ(listed[0].since_us, 100);
  EXPECT_EQ(cancel_filtered({.client = "nobody"}), 0u);
  EXPECT_EQ(cancel_filtered({.client = "one", .key_prefix = "account/", .older_than_us = 200}), 1u);
  EXPECT_EQ(cancel_filtered({.key_prefix = "order"}), 1u);
  EXPECT_EQ(cancel_filtered({.client = "one"}), 1u);
  EXPECT_EQ(cancel_filtered({.older_than_us = 899}), 1u) << "the other is younger by a microsecond";
  EXPECT_EQ(waiting.list(0, 10).parked.size(), 1u);
  EXPECT_EQ(cancel_filtered({.older_than_us = 1}), 1u);
  EXPECT_EQ(one->parked_bytes.load() + two->parked_bytes.load(), 0u);
}

TEST_F(FilteredCancelTest, OneThatNamesManyTakesSeveralCallsAndReportsTheSum) {
  constexpr std::size_t kMany = 2500;
  for (std::size_t i = 0; i < kMany; ++i) park_of(i % 2 == 0 ? one : two, "k" + std::to_string(i), 1);
  CancelTarget target;
  target.filter = ParkedFilter{.client = "one"};
  std::uint64_t reported = 0;
  waiting.cancel(target, 1000, [&](const Result<std::uint64_t>& count) { reported = *count; });
  int calls = 0;
  for (bool is_done = false; !is_done; ++calls) {
    auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
    ASSERT_TRUE(cancelled);
    EXPECT_LE(cancelled->parked.size(), kPart) << "a call is short";
    is_done = static_cast<bool>(cancelled->done);
    if (is_done) cancelled->done(cancelled->count);
  }
  EXPECT_GT(calls, 2);
  EXPECT_EQ(reported, kMany / 2);
  EXPECT_EQ(waiting.parked(), kMany / 2);
  EXPECT_EQ(waiting.cancels(), 0u);
}

TEST_F(FilteredCancelTest, OneThatIsNotAllowedAnyMoreEnds) {
  constexpr std::size_t kMany = 2500;
  for (std::size_t i = 0; i < kMany; ++i) park_of(one, "k" + std::to_string(i), 1);
  int asked = 0;
  CancelTarget target;
  target.filter = ParkedFilter{.client = "one"};
  target.allowed = [&asked] { return ++asked > 1 ? draining() : Status(); };
  waiting.cancel(target, 1000, [](const Result<std::uint64_t>&) {});
  auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled);
  EXPECT_FALSE(cancelled->done);
  const std::uint64_t left = waiting.parked();
  EXPECT_GT(left, 0u);
  cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled && cancelled->done);
  EXPECT_EQ(cancelled->count.status().code(), StatusCode::unavailable);
  EXPECT_FALSE(cancelled->count.status().not_run()) << "it has cancelled some";
  EXPECT_EQ(waiting.parked(), left);
  EXPECT_TRUE(waiting.quiet());
  waiting.cancel(target, 1000, [](const Result<std::uint64_t>&) {});
  cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled && cancelled->done);
  EXPECT_TRUE(cancelled->count.status().not_run());
  EXPECT_EQ(waiting.parked(), left);
}

TEST_F(WaitingTest, ACancelNamesARequestOrSomeOfItsTransactions) {
  const SessionId mine{{1}}, other{{2}};
  for (std::uint32_t i = 0; i < 5; ++i) park("a", i, 1000000, 1, mine, 5, i);
  const std::uint64_t stays = park("a", 10, 1000000, 1, other, 5, 0);
  deposit("a", 10);
  EXPECT_EQ(waiting.awake(), 6u);
  EXPECT_EQ(cancel({mine, 5, {1}, 0}), 1u);
  EXPECT_EQ(waiting.awake(), 5u);
  EXPECT_EQ(cancel({mine, 5, {4, 1, 3}, 0}), 2u) << "in any order, and what is gone does not count";
  EXPECT_EQ(waiting.awake(), 3u);
  EXPECT_EQ(cancel({mine, 5, {}, 0}), 2u);
  EXPECT_EQ(cancel({{}, 5, {}, 0}), 0u) << "without a session a request has no name";
  EXPECT_EQ(hand_out(), Ids{stays});
}

// A request of many transactions, with some of another request between them.
class CancelInPartsTest : public WaitingTest {
 protected:
  static constexpr std::uint32_t kMany = 2500, kOthers = kMany / 50;
  const SessionId mine{{1}}, other{{2}};

  void park_many() {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      park("a", 2 * i, 1000000, 1, mine, 5, i);
      if (i % 50 == 0) park("b", 2 * i + 1, 1000000, 1, other, 5, i);
    }
  }
  void begin(std::vector<std::uint32_t> indices = {}) {
    waiting.cancel({mine, 5, std::move(indices), 0}, 0, [](const Result<std::uint64_t>&) {});
  }
  // Takes the next part, and adds its transactions to `indices`. Returns whether it was the last one.
  bool take_part(std::vector<std::uint32_t>* indices, std::size_t max = kPart) {
    const auto cancelled = waiting.take_cancelled(nothing_is_queued, max);
    if (!cancelled) {
      ADD_FAILURE() << "there is no cancel";
      return true;
    }
    EXPECT_LE(cancelled->parked.size(), max);
    for (const Parked& parked : cancelled->parked) {
      EXPECT_EQ(parked.session, mine);
      indices->push_back(parked.index);
    }
    EXPECT_EQ(cancelled->count.ok() ? *cancelled->count : 0, indices->size()) << "of all parts";
    return static_cast<bool>(cancelled->done);
  }
  std::vector<std::uint32_t> take_all(std::size_t max = kPart) {
    std::vector<std::uint32_t> indices;
    while (!take_part(&indices, max)) continue;
    return indices;
  }
};

TEST_F(CancelInPartsTest, ARequestIsCancelledInOrderOfIndex) {
  park_many();
  begin();
  std::vector<std::uint32_t> indices;
  int parts = 1;
  for (; !take_part(&indices); ++parts) EXPECT_FALSE(waiting.quiet());
  EXPECT_GE(parts, 3);
  ASSERT_EQ(indices.size(), kMany);
  EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
  EXPECT_EQ(waiting.parked(), kOthers);
  EXPECT_TRUE(waiting.quiet());
}

TEST_F(CancelInPartsTest, APartCanBeAsSmallAsOne) {
  for (std::uint32_t i = 0; i < 3; ++i) park("a", i, 1000000, 1, mine, 5, i);
  begin();
  EXPECT_EQ(take_all(1), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_F(CancelInPartsTest, IndicesMayBeManyAndInAnyOrder) {
  park_many();
  std::vector<std::uint32_t> named, wanted;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    if (i % 3 != 0) wanted.push_back(i);
  }
  named.assign(wanted.rbegin(), wanted.rend());
  named.insert(named.end(), {1, 1, kMany, UINT32_MAX});
  begin(named);
  EXPECT_EQ(take_all(), wanted);
  EXPECT_EQ(waiting.parked(), kMany + kOthers - wanted.size());
}

TEST_F(CancelInPartsTest, WhatRunsBetweenTwoPartsIsNotCancelled) {
  park_many();
  begin();
  std::vector<std::uint32_t> indices;
  ASSERT_FALSE(take_part(&indices));
  deposit("a", 1);
  std::vector<Parked> ran;
  waiting.hand_out(0, 20, take_all_offered, [&ran](const Parked& parked) { ran.push_back(parked); });
  ASSERT_EQ(ran.size(), 20u);
  for (std::size_t i = 0; i < 10; ++i) {  // these still wait; the others are decided
    const std::uint64_t id = ran[i].id;
    EXPECT_EQ(*waiting.park(withdrawal("a", 1), 0, std::move(ran[i])), id);
  }
  waiting.end_batch({});
  while (!take_part(&indices)) continue;
  EXPECT_EQ(indices.size(), kMany - 10);
  for (std::size_t i = 10; i < 20; ++i) {
    EXPECT_EQ(std::count(indices.begin(), indices.end(), ran[i].index), 0) << ran[i].index;
  }
  EXPECT_EQ(waiting.parked(), kOthers);
}

// A retry of the request comes when the cancel has begun.
TEST_F(CancelInPartsTest, WhatIsParkedLaterIsNotCancelled) {
  park_many();
  begin();
  std::vector<std::uint32_t> indices;
  ASSERT_FALSE(take_part(&indices));
  park("a", 9999, 1000000, 1, mine, 5, 1);
  const auto all_are_queued = [](const RequestName&) { return true; };
  const auto second = waiting.take_cancelled(all_are_queued, kPart);
  ASSERT_TRUE(second) << "it does not wait for the retry";
  EXPECT_EQ(second->parked.size(), kPart);
  const auto third = waiting.take_cancelled(all_are_queued, kPart);
  ASSERT_TRUE(third && third->done);
  EXPECT_EQ(*third->count, kMany);
  EXPECT_EQ(waiting.parked(), kOthers + 1);
}

TEST_F(CancelInPartsTest, CancelsTakeTurns) {
  park_many();
  const std::uint64_t small = park("c", 9999);
  begin();
  waiting.cancel({{}, 0, {}, small}, 0, [](const Result<std::uint64_t>&) {});
  auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->parked.size(), kPart);
  EXPECT_FALSE(cancelled->done);
  cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled && cancelled->done) << "a small one does not wait for a large one";
  ASSERT_EQ(cancelled->parked.size(), 1u);
  EXPECT_EQ(cancelled->parked[0].id, small);
  EXPECT_EQ(waiting.cancels(), 1u);
}

// Each of the greedy client's cancels looks at everything that is parked, and finds nothing.
TEST_F(CancelInPartsTest, TheCancelsOfALightClientWaitForOnePartOfEachOther) {
  park_many();
  const std::uint64_t small = park("c", 9999);
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  CancelTarget search{{}, 0, {}, 0, ParkedFilter{.key_prefix = "none"}};
  search.caller = greedy;
  for (int i = 0; i < 500; ++i) waiting.cancel(search, 0, [](const Result<std::uint64_t>&) {});
  ASSERT_TRUE(waiting.take_cancelled(nothing_is_queued, kPart));
  CancelTarget one{{}, 0, {}, small};
  one.caller = light;
  bool answered = false;
  waiting.cancel(one, 0, [&](const Result<std::uint64_t>&) { answered = true; });
  int parts = 0;
  for (; parts < 10 && !answered; ++parts) {
    auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart);
    ASSERT_TRUE(cancelled);
    if (cancelled->done) cancelled->done(cancelled->count);
  }
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(waiting.cancels(), 500u);
  while (auto cancelled = waiting.take_cancelled(nothing_is_queued, kPart)) continue;
  EXPECT_EQ(waiting.cancels(), 0u);
}

// Others were parked between two transactions of the request.
TEST_F(CancelInPartsTest, ACallLooksAtFewAlthoughItFindsNone) {
  park("a", 1, 1000000, 1, mine, 5, 0);
  for (std::uint64_t i = 0; i < 3000; ++i) park("b", 2 + i);
  park("a", 9999, 1000000, 1, mine, 5, 1);
  begin();
  std::vector<std::uint32_t> indices;
  int parts = 1;
  while (!take_part(&indices)) ++parts;
  EXPECT_EQ(parts, 3) << "1024 in each";
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{0, 1}));
}

TEST_F(WaitingTest, WhatFailsIsForgotten) {
  const std::uint64_t id = park("a", 1), stays = park("a", 2);
  deposit("a", 5);
  forget({id, 999});
  EXPECT_EQ(waiting.parked(), 1u);
  EXPECT_EQ(hand_out(), Ids{stays});
}

TEST_F(WaitingTest, NothingIsParkedOnceItIsClosed) {
  const Ids ids{park("a", 2), park("b", 1)};
  waiting.close();
  EXPECT_EQ(waiting.park(withdrawal("a", 1), 0, {}).status().code(), StatusCode::unavailable);
  EXPECT_EQ(waiting.parked(), 2u) << "what is parked stays";
  forget(ids);
  EXPECT_EQ(waiting.parked(), 0u);
  EXPECT_EQ(waiting.parked_bytes(), 0u);
  EXPECT_TRUE(waiting.empty());
}

TEST_F(WaitingTest, TheListIsInOrderOfId) {
  const std::uint64_t first = park("a", 2, 7000), second = park("b", 1);
  const std::vector<ParkedTransaction> all = waiting.list(0, 10).parked;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id, first);
  EXPECT_EQ(all[0].guard_key, "a");
  EXPECT_EQ(all[0].deadline_us, 7000);
  EXPECT_EQ(all[1].id, second);
  EXPECT_EQ(waiting.list(0, 1).parked.size(), 1u);
  ASSERT_EQ(waiting.list(first, 10).parked.size(), 1u);
  EXPECT_EQ(waiting.list(first, 10).parked[0].id, second);
}

// A batch that takes some and parks them again is not seen to have fewer parked in between.
TEST_F(WaitingTest, CountsAreThoseAfterABatch) {
  park("a", 1);
  deposit("a", 5);
  EXPECT_EQ(hand_out().size(), 1u);
  EXPECT_EQ(waiting.parked(), 1u);
  waiting.end_batch({});
  EXPECT_EQ(waiting.parked(), 0u);
}

// Deadlines that come together do not keep out those that wake.
TEST_F(WaitingTest, HalfOfThePlacesAreForThoseThatAreAwake) {
  for (std::uint64_t i = 0; i < 100; ++i) park("never", i, 2000);
  Ids woken;
  for (std::uint64_t i = 0; i < 30; ++i) woken.push_back(park("a", 1000 + i));
  deposit("a", 100);
  ASSERT_EQ(waiting.awake(), 30u);
  Ids awake;
  for (int batch = 0; batch < 6; ++batch) {
    const Ids ids = hand_out(2000, 10);
    EXPECT_EQ(ids.size(), 10u);
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(awake),
                 [&](std::uint64_t id) { return id >= woken.front(); });
    EXPECT_EQ(awake.size(), 5u * (static_cast<std::size_t>(batch) + 1));
  }
  EXPECT_EQ(awake, woken) << "in their order, five in each batch";
  EXPECT_EQ(hand_out(2000, 100).size(), 70u) << "and all places are for the due ones if nobody is awake";
}

TEST_F(WaitingTest, OnePlaceGoesToBothInTurns) {
  for (std::uint64_t i = 0; i < 4; ++i) park("never", i, 2000);
  const std::uint64_t woken = park("a", 9);
  deposit("a", 100);
  Ids first = hand_out(2000, 1), second = hand_out(2000, 1);
  EXPECT_TRUE(first == Ids{woken} || second == Ids{woken});
}

TEST_F(WaitingTest, WhatIsDueAndGetsNoPlaceIsAwakeOnce) {
  for (std::uint64_t i = 0; i < 20; ++i) park("never", i, 2000);
  for (int batch = 0; batch < 10; ++batch) EXPECT_EQ(hand_out(2000, 10, 0), Ids{});
  EXPECT_LE(waiting.awake(), 20u);
  EXPECT_EQ(hand_out(2000, 100).size(), 20u);
  EXPECT_EQ(waiting.awake(), 0u);
  EXPECT_TRUE(waiting.quiet());
}

TEST_F(WaitingTest, OneThatIsAwakeIsNotWokenAgain) {
  park("a", 1);
  for (int i = 0; i < 5; ++i) deposit("a", 1);
  EXPECT_EQ(waiting.awake(), 1u);
  EXPECT_EQ(hand_out().size(), 1u);
}

// The caller forgets them a part at a time, and some are due meanwhile.
TEST_F(WaitingTest, WhatBelongsToAFailedRequestNeitherRunsNorIsCancelled) {
  const SessionId mine{{1}};
  Waiting bounded(options, [](const Parked& parked) { return parked.index == 1; });
  Ids ids;
  for (std::uint32_t i = 0; i < 6; ++i) {
    Parked parked;
    parked.arrival = i;
    parked.deadline_us = 2000;
    parked.index = i % 2;
    parked.session = mine;
    parked.request = 1 + i / 4;
    ids.push_back(*bounded.park(withdrawal(i < 3 ? "a" : "never", 1), 0, parked));
  }
  table.add("a", 10);
  bounded.end_batch(table.engine()->before_images());
  bounded.wake_candidates(*table.engine(), table.now().batch, true);
  EXPECT_EQ(bounded.awake(), 2u);
  bounded.cancel({mine, 2, {}, 0}, 0, [](const Result<std::uint64_t>&) {});
  const auto cancelled = bounded.take_cancelled(nothing_is_queued, kPart);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(*cancelled->count, 1u);
  Ids ran;
  bounded.hand_out(2000, 100, take_all_offered, [&](const Parked& parked) { ran.push_back(parked.id); });
  EXPECT_EQ(ran, (Ids{ids[0], ids[2]}));
  std::size_t looks = kLooksPerStep;
  EXPECT_EQ(bounded.forget(ids, &looks), ids.size());
  EXPECT_EQ(bounded.parked(), 0u);
  EXPECT_TRUE(bounded.quiet());
}

}  // namespace
}  // namespace kilokv::server
