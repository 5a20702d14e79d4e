// Clients take turns in what waits, and the work of each step is bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/core/options.hpp"
#include "server/core/request.hpp"
#include "tests/unit/core/waiting/waiting_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kLarge = std::size_t{64} << 10;     // bytes of a guard constant
constexpr std::uint64_t kSmallPart = kWholeBatch / 8192;  // of a batch, for a usual transaction
constexpr std::size_t kMany = 8192;

class WaitingTurnsTest : public WaitingTest {
 protected:
  std::uint64_t park_of(const std::shared_ptr<Client>& client, const engine::TransactionColumns& columns,
                        std::uint64_t part = kSmallPart, TimeUs deadline_us = 1000000) {
    Parked parked;
    parked.client = client.get();
    parked.arrival = ++arrivals_;
    parked.deadline_us = deadline_us;
    parked.part = part;
    const Result<std::uint64_t> id = waiting.park(columns, 0, std::move(parked));
    EXPECT_TRUE(id.ok());
    return id.ok() ? *id : 0;
  }
  // Waits until the key holds `constant`.
  static engine::TransactionColumns equal(const std::string& key, const std::string& constant) {
    engine::TransactionColumns columns;
    engine::ColumnsBuilder b(&columns, WrittenTable::kSecret);
    b.begin(0, 1000);
    b.guard(engine::GuardKind::bytes_equal, engine::OnFalse::wait, b.key(key), b.value(constant));
    b.op(engine::OpKind::get, b.key(key));
    b.end();
    return columns;
  }
  void write(const std::vector<std::string>& keys) {
    table.run([&](engine::ColumnsBuilder& b) {
      b.begin();
      for (const std::string& key : keys) b.op(engine::OpKind::add, b.key(key), engine::Operand::integer, 1);
      b.end();
    });
    waiting.end_batch(table.engine()->before_images());
  }
  void wake_all() {
    while (waiting.has_candidates()) wake(/*idle=*/true);
  }
  struct Filled {
    Ids ids;
    std::size_t offers = 0;
  };
  // A batch that takes what fits into it, and its first transaction in any case.
  Filled fill(TimeUs stamp_us = 0, std::size_t max = 4096) {
    Filled filled;
    std::uint64_t cost = 0;
    const auto answer = [&](const Parked& parked) {
      ++filled.offers;
      if (cost >= kWholeBatch) return Waiting::Answer::full;
      if (cost > 0 && cost + parked.part > kWholeBatch) return Waiting::Answer::put_off;
      cost += parked.part;
      return Waiting::Answer::taken;
    };
    waiting.hand_out(stamp_us, max, answer, [&](const Parked& parked) { filled.ids.push_back(parked.id); });
    return filled;
  }
  // How many batches it takes until the transaction has its place.
  int batches_until(std::uint64_t id, TimeUs stamp_us = 0) {
    for (int batches = 1; batches <= 50; ++batches) {
      const Ids ids = fill(stamp_us).ids;
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) return batches;
    }
    return 1000;
  }
  Ids awake_of(const std::shared_ptr<Client>& client) {
    Ids ids;
    for (std::uint64_t after = 0;;) {
      const Waiting::Visited visited = waiting.visit(after, [&](const Parked& parked) {
        if (parked.awake && parked.client == client.get()) ids.push_back(parked.id);
      });
      if (!visited.has_more) return ids;
      after = visited.last_id;
    }
  }

  const std::shared_ptr<Client> greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");

 private:
  std::uint64_t arrivals_ = 0;
};

TEST_F(WaitingTurnsTest, CandidatesAreLookedAtByTheirBytes) {
  const std::string constant(kLarge, 'x');
  for (int i = 0; i < 24; ++i) park_of(greedy, equal("large", constant));
  table.put("large", constant);
  waiting.end_batch(table.engine()->before_images());
  wake();
  EXPECT_EQ(waiting.awake(), 8u) << "64 KiB are 129 looks";
  wake(/*idle=*/true);
  EXPECT_EQ(waiting.awake(), 16u);
  wake_all();
  EXPECT_EQ(waiting.awake(), 24u);
}

TEST_F(WaitingTurnsTest, OneAtLeastIsLookedAt) {
  const std::string constant(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 3; ++i) park_of(greedy, equal("large", constant));
  table.put("large", constant);
  waiting.end_batch(table.engine()->before_images());
  for (std::size_t round = 1; round <= 3; ++round) {
    wake(/*idle=*/true);
    EXPECT_EQ(waiting.awake(), round);
  }
}

TEST_F(WaitingTurnsTest, ListsCancelsAndFailuresAreBoundedByBytes) {
  Ids ids;
  for (int i = 0; i < 24; ++i) ids.push_back(park_of(greedy, equal("large", std::string(kLarge, 'x'))));
  const Waiting::List list = waiting.list(0, 1000);
  EXPECT_EQ(list.parked.size(), 8u);
  EXPECT_TRUE(list.has_more);
  EXPECT_FALSE(waiting.list(ids[15], 1000).has_more);
  std::size_t visits = 0;
  EXPECT_TRUE(waiting.visit(0, [&](const Parked&) { ++visits; }).has_more);
  EXPECT_EQ(visits, 8u);
  CancelTarget target;
  target.filter = ParkedFilter{.key_prefix = "lar"};
  waiting.cancel(target, 1000, [](const Result<std::uint64_t>&) {});
  const auto cancelled = waiting.take_cancelled(nothing_is_queued, kMany);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->parked.size(), 8u);
  EXPECT_FALSE(cancelled->done);
  std::size_t looks = kLooksPerStep;
  EXPECT_EQ(waiting.forget(ids, &looks), 8u + 8u) << "eight are not there any more, and cost one look each";
  EXPECT_EQ(looks, 0u);
  EXPECT_EQ(waiting.forget(ids, &looks), 0u);
}

// Each of them costs a look of 64 KiB.
TEST_F(WaitingTurnsTest, AClientsCandidatesDoNotWaitForThoseOfAnother) {
  std::vector<std::string> keys;
  for (int i = 0; i < 400; ++i) {
    keys.push_back("k" + std::to_string(i));
    park_of(greedy, equal(keys.back(), std::string(kLarge, 'x')));
  }
  const std::uint64_t mine = park_of(light, withdrawal("mine", 1));
  keys.push_back("mine");
  write(keys);
  wake();
  EXPECT_EQ(awake_of(light), Ids{mine});
}

TEST_F(WaitingTurnsTest, BusyClientsShareTheLooksByBytes) {
  const std::string constant(kLarge, 'x');
  for (int i = 0; i < 100; ++i) park_of(greedy, equal("large", constant));
  for (int i = 0; i < 10000; ++i) park_of(light, withdrawal("a", 1));
  table.put("large", constant);
  waiting.end_batch(table.engine()->before_images());
  write({"a"});
  for (int i = 0; i < 4; ++i) wake(/*idle=*/true);
  EXPECT_NEAR(static_cast<double>(awake_of(greedy).size()), 16, 5) << "of 129 looks";
  EXPECT_NEAR(static_cast<double>(awake_of(light).size()), 2048, 500);
}

TEST_F(WaitingTurnsTest, ManyWhoWaitForTheSameKeyDoNotKeepOthersFromTheirTurn) {
  for (std::size_t i = 0; i < 20000; ++i) park_of(greedy, withdrawal("hot", 1000000));
  const std::uint64_t mine = park_of(light, withdrawal("hot", 2));
  for (int i = 0; i < 2; ++i) {  // the others are looked at after each write, and are never done
    write({"hot"});
    wake();
  }
  EXPECT_EQ(awake_of(light), Ids{mine});
}

TEST_F(WaitingTurnsTest, OneThatWakesDoesNotWaitForThoseOfOthersThatFillABatchEach) {
  for (std::size_t i = 0; i < kMany; ++i) park_of(greedy, withdrawal("theirs", 1), kWholeBatch);
  const std::uint64_t mine = park_of(light, withdrawal("mine", 1));
  write({"theirs"});
  wake_all();
  EXPECT_EQ(waiting.awake(), kMany);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fill().ids.size(), 1u);
  write({"mine"});
  wake();
  ASSERT_EQ(waiting.awake(), kMany - 4);
  EXPECT_LE(batches_until(mine), 2);
}

TEST_F(WaitingTurnsTest, NorDoesOneThatIsDue) {
  for (std::size_t i = 0; i < kMany; ++i) park_of(greedy, withdrawal("never", 1), kWholeBatch, 2000);
  const std::uint64_t mine = park_of(light, withdrawal("never", 1), kSmallPart, 2001);
  const std::uint64_t awake = park_of(light, withdrawal("mine", 1));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fill(2000).ids.size(), 1u);
  EXPECT_LE(batches_until(mine, 2001), 2);
  write({"mine"});
  wake();
  EXPECT_LE(batches_until(awake, 2001), 3);
  EXPECT_EQ(waiting.next_due_us(), 2001) << "others are due";
}

TEST_F(WaitingTurnsTest, WhatIsDueKeepsItsTurnWhenItsKeyIsWritten) {
  for (int i = 0; i < 100; ++i) park_of(light, withdrawal("a", 1), kWholeBatch);
  const std::uint64_t due = park_of(light, withdrawal("b", 1), kWholeBatch, 2000);
  write({"a"});
  wake_all();
  EXPECT_EQ(fill(2000).ids.size(), 1u);
  write({"b"});
  wake_all();
  EXPECT_LE(batches_until(due, 2000), 2);
}

// The work of a batch follows from what it takes, and not from how many are due.
TEST_F(WaitingTurnsTest, DeadlinesThatComeTogetherAreNotWalkedOver) {
  for (std::size_t i = 0; i < kMany; ++i) park_of(greedy, withdrawal("never", 1), kWholeBatch / 2 + 1, 2000);
  for (int batch = 0; batch < 20; ++batch) {
    const Filled filled = fill(2000);
    EXPECT_EQ(filled.ids.size(), 1u);
    EXPECT_LE(filled.offers, 2u);
  }
  const std::uint64_t mine = park_of(light, withdrawal("mine", 1));
  write({"mine"});
  wake();
  EXPECT_EQ(awake_of(light), Ids{mine}) << "what is due keeps nobody from waking";
}

// Four clients have work for many batches.
TEST_F(WaitingTurnsTest, BusyClientsShareBatchesByCostAndWeight) {
  const auto heavy = std::make_shared<Client>("heavy"), weighty = std::make_shared<Client>("weighty");
  weighty->user_weight = 3;
  for (int i = 0; i < 2000; ++i) {
    park_of(greedy, withdrawal("a", 1), kWholeBatch / 16);
    park_of(heavy, withdrawal("a", 1), kWholeBatch / 4);
    park_of(weighty, withdrawal("a", 1), kWholeBatch / 16);
    park_of(light, withdrawal("a", 1), kWholeBatch / 64);
  }
  write({"a"});
  table.add("a", 100000);
  waiting.end_batch(table.engine()->before_images());
  wake_all();
  ASSERT_EQ(waiting.awake(), 8000u);
  std::uint64_t of_greedy = 0, of_heavy = 0, of_weighty = 0, of_light = 0, all = 0;
  for (int batch = 0; batch < 60; ++batch) {
    for (const std::uint64_t id : fill().ids) {
      const std::uint64_t part = id % 4 == 2 ? 16 : id % 4 == 0 ? 1 : 4;  // in 64ths of a batch
      (id % 4 == 1 ? of_greedy : id % 4 == 2 ? of_heavy : id % 4 == 3 ? of_weighty : of_light) += part;
      all += part;
    }
  }
  EXPECT_NEAR(static_cast<double>(of_greedy) / static_cast<double>(all), 1.0 / 6, 0.04);
  EXPECT_NEAR(static_cast<double>(of_heavy) / static_cast<double>(all), 1.0 / 6, 0.04);
  EXPECT_NEAR(static_cast<double>(of_light) / static_cast<double>(all), 1.0 / 6, 0.04);
  EXPECT_NEAR(static_cast<double>(of_weighty) / static_cast<double>(all), 3.0 / 6, 0.04);
}

// New transactions of others come all the time, and fit.
TEST_F(WaitingTurnsTest, OneThatDoesNotFitIsNotPassedByForEver) {
  for (int i = 0; i < 500; ++i) park_of(light, withdrawal("a", 1));
  const std::uint64_t large = park_of(greedy, withdrawal("a", 1), kWholeBatch);
  table.add("a", 100000);
  waiting.end_batch(table.engine()->before_images());
  wake_all();
  int batches = 0;
  for (bool is_taken = false; !is_taken && batches < 50; ++batches) {
    const auto newcomer = std::make_shared<Client>("new");
    const std::uint64_t small = park_of(newcomer, withdrawal("b", 1));
    table.add("b", 1);
    waiting.end_batch(table.engine()->before_images());
    wake();
    const Ids ids = fill().ids;
    is_taken = std::find(ids.begin(), ids.end(), large) != ids.end();
    if (is_taken) {
      EXPECT_EQ(batches_until(small), 1);
    }
  }
  EXPECT_LE(batches, 3);
}

TEST_F(WaitingTurnsTest, AClientThatWasPutOffKeepsNothingWhenAllOfItLeaves) {
  park_of(light, withdrawal("a", 1));
  const std::uint64_t first = park_of(greedy, withdrawal("a", 1), kWholeBatch);
  table.add("a", 100000);
  waiting.end_batch(table.engine()->before_images());
  wake_all();
  EXPECT_EQ(fill().ids.size(), 1u);
  forget({first});
  EXPECT_EQ(greedy->parked_bytes.load(), 0u);
  EXPECT_TRUE(fill().ids.empty());
  const std::uint64_t again = park_of(greedy, withdrawal("b", 1), kWholeBatch, 10);
  EXPECT_EQ(fill(10).ids, Ids{again});
  EXPECT_TRUE(waiting.empty());
}

}  // namespace
}  // namespace kilokv::server
