// Which connections are held back, in a model of a reader that takes one connection after the other.
#include "server/edge/reading_turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::int64_t kLookMs = 20;

class ReadingTurnsTest : public testing::Test {
 protected:
  struct Connection {
    std::string address;
    std::uint64_t read = 0, waiting = 0;
    bool is_stuck = false;
  };

  // Opens connections of an address. `waiting`: the bytes that wait on each of them.
  std::vector<int> connect(const std::string& address, int count, std::uint64_t waiting) {
    std::vector<int> numbers;
    for (int i = 0; i < count; ++i) {
      const int number = static_cast<int>(connections_.size());
      connections_[number] = {.address = address, .waiting = waiting};
      turns_.begin(number, address, now_ms_);
      numbers.push_back(number);
    }
    return numbers;
  }
  // Eight connections of one address take turns, because one of another address has waited. The first has its turn.
  std::pair<std::vector<int>, int> begin_turns() {
    const std::vector<int> many = connect("many", 8, 100);
    const int other = connect("other", 1, 100).front();
    look();
    look(ReadingTurns::kUnreadMs);
    EXPECT_EQ(readable(), (std::vector<int>{many[0], other}));
    return {many, other};
  }
  void read(int number) {
    Connection& connection = connections_.at(number);
    connection.read += std::exchange(connection.waiting, 0);
  }
  // A look, some time later. Returns the addresses that begin to take turns.
  std::vector<std::string> look(std::int64_t ms = kLookMs) {
    now_ms_ += ms;
    for (const auto& [number, connection] : connections_) {
      turns_.see(number, connection.read, connection.waiting, connection.is_stuck, now_ms_);
    }
    ReadingTurns::Decision decision = turns_.decide(now_ms_);
    to_cut_off_ = decision.to_cut_off;
    return decision.crowds;
  }
  std::vector<int> readable() const {
    std::vector<int> numbers;
    for (const auto& [number, connection] : connections_) {
      if (connection.waiting > 0 && !held_.contains(number)) numbers.push_back(number);
    }
    return numbers;
  }

  std::int64_t now_ms_ = 1000;
  std::map<int, Connection> connections_;
  std::set<int> held_;
  std::vector<int> to_cut_off_;  // by the last look
  ReadingTurns turns_{[this](int connection, bool is_held) {
    if (is_held) {
      EXPECT_TRUE(held_.insert(connection).second) << "held twice";
    } else {
      EXPECT_EQ(held_.erase(connection), 1u) << "not held";
    }
  }};
};

TEST_F(ReadingTurnsTest, ConnectionsTakeTurnsOnceAnotherAddressHasWaited) {
  connect("many", 8, 100);
  const int other = connect("other", 1, 100).front();
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look(ReadingTurns::kUnreadMs - 1).empty());
  EXPECT_FALSE(turns_.any());
  EXPECT_EQ(look(1), std::vector<std::string>{"many"});
  EXPECT_TRUE(turns_.takes_turns("many"));
  EXPECT_FALSE(turns_.takes_turns("other"));
  EXPECT_FALSE(held_.contains(other));
}

TEST_F(ReadingTurnsTest, NobodyTakesTurnsWhereNoOtherAddressWaits) {
  connect("many", 100, 100);
  connect("other", 1, 0);
  look();
  EXPECT_TRUE(look(10 * ReadingTurns::kUnreadMs).empty());
}

TEST_F(ReadingTurnsTest, OnlyManyMoreConnectionsThanThoseThatWaitAreACrowd) {
  connect("few", 3, 100);
  connect("as many", 7, 100);
  connect("many", 8, 100);
  connect("others", 2, 100);
  look();
  EXPECT_EQ(look(ReadingTurns::kUnreadMs), std::vector<std::string>{"many"});
}

TEST_F(ReadingTurnsTest, WhatIsReadNowAndThenDoesNotWait) {
  connect("many", 8, 100);
  const int other = connect("other", 1, 100).front();
  look();
  for (int i = 0; i < 10; ++i) {
    read(other);
    connections_[other].waiting = 100;
    EXPECT_TRUE(look(ReadingTurns::kUnreadMs).empty());
  }
}

TEST_F(ReadingTurnsTest, EachGetsItsTurn) {
  const auto [many, other] = begin_turns();
  read(other);
  std::vector<int> were_read;
  while (were_read.size() < 9) {
    const std::vector<int> next = readable();
    ASSERT_FALSE(next.empty());
    for (const int number : next) {
      read(number);
      connections_[number].waiting = 100;
    }
    were_read.insert(were_read.end(), next.begin(), next.end());
    look();
  }
  EXPECT_EQ(std::set<int>(were_read.begin(), were_read.begin() + 7).size(), 7u) << "nobody had two turns";
  EXPECT_EQ(std::set<int>(were_read.begin(), were_read.end()).size(), 8u) << "two were read at once at last";
}

TEST_F(ReadingTurnsTest, MoreAreReadAtOnceWhileTheServerKeepsUp) {
  const std::vector<int> many = connect("many", 64, 100);
  const int other = connect("other", 1, 100).front();
  look();
  look(ReadingTurns::kUnreadMs);
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    for (const int number : readable()) read(number);
    for (const int number : many) connections_[number].waiting = 100;
    look();
    most = std::max(most, readable().size());
    EXPECT_LE(i < 4 * ReadingTurns::kInTime ? most : 0, 6u) << "it becomes more step by step";
  }
  EXPECT_EQ(most, 64u);
  EXPECT_FALSE(turns_.any()) << "nobody waited for a turn for a while, so the turns have ended";
  EXPECT_TRUE(held_.empty());

  connections_[other].waiting = 100;
  look();
  EXPECT_EQ(look(ReadingTurns::kUnreadMs), std::vector<std::string>{"many"}) << "and they begin again";
}

TEST_F(ReadingTurnsTest, FewerAreReadAtOnceWhenOthersWaitAgain) {
  const std::vector<int> many = connect("many", 64, 100);
  const int other = connect("other", 1, 100).front();
  look();
  look(ReadingTurns::kUnreadMs);
  const auto go_on = [&] {
    for (const int number : readable()) {
      if (number != other) read(number);
    }
    for (const int number : many) connections_[number].waiting = 100;
    look();
  };
  read(other);
  for (int i = 0; i < 50; ++i) go_on();
  const std::size_t before = readable().size();
  EXPECT_GE(before, 8u);
  connections_[other].waiting = 100;
  for (int i = 0; i < 4; ++i) go_on();  // it has waited for long enough at the last two looks
  EXPECT_LE(readable().size() - 1, (before + 2) / 4 + 1);
}

TEST_F(ReadingTurnsTest, WhatHasManyBytesIsCutOffAfterOthersHaveWaitedForLong) {
  const auto [many, other] = begin_turns();
  connections_[many[3]].waiting = ReadingTurns::kHeldBytes / 2;
  connections_[many[4]].waiting = ReadingTurns::kHeldBytes / 2 - 1;
  look(ReadingTurns::kUnbearableMs - 1);
  EXPECT_TRUE(to_cut_off_.empty());
  look(1);
  EXPECT_EQ(to_cut_off_, std::vector<int>{many[3]}) << "the others wait for their turns";
  look(ReadingTurns::kNotReadMs - ReadingTurns::kUnbearableMs);
  EXPECT_TRUE(to_cut_off_.empty()) << "nobody else waits who is ever read";
}

TEST_F(ReadingTurnsTest, ATurnEndsAlthoughNobodyReads) {
  const auto [many, other] = begin_turns();
  read(other);
  look(ReadingTurns::kTurnMs - 1);
  EXPECT_EQ(readable(), std::vector<int>{many[0]});
  look(1);
  EXPECT_EQ(readable(), std::vector<int>{many[1]});
}

TEST_F(ReadingTurnsTest, ARoundOfVeryManyHasABound) {
  connect("many", 500, 100);
  connect("other", 1, 100);
  look();
  look(ReadingTurns::kUnreadMs);
  look();
  EXPECT_EQ(readable().size(), 1 + 1 + 499u * ReadingTurns::kLookMs / ReadingTurns::kRoundMs);
}

TEST_F(ReadingTurnsTest, WhatALookDidNotSeeIsNoWait) {
  connect("many", 8, 100);
  const int other = connect("other", 1, 100).front();
  look();
  now_ms_ += 10 * ReadingTurns::kUnreadMs;
  for (const auto& [number, connection] : connections_) {
    if (number != other) turns_.see(number, connection.read, connection.waiting, false, now_ms_);
  }
  EXPECT_TRUE(turns_.decide(now_ms_).crowds.empty());
}

// Nobody can make others take turns by not reading its answers.
TEST_F(ReadingTurnsTest, WhoDoesNotTakeItsAnswersWaitsForNobody) {
  connect("many", 8, 100);
  const int other = connect("other", 1, 100).front();
  connections_.at(other).is_stuck = true;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(look(ReadingTurns::kUnreadMs).empty());
  connections_.at(other).is_stuck = false;
  EXPECT_TRUE(look(ReadingTurns::kUnreadMs - 1).empty());
  EXPECT_EQ(look(1), std::vector<std::string>{"many"}) << "its wait begins when it takes them";
}

TEST_F(ReadingTurnsTest, NobodyIsHeldBackAfterTheEnd) {
  connect("many", 8, 100);
  connect("other", 1, 100);
  look();
  look(ReadingTurns::kUnreadMs);
  EXPECT_FALSE(held_.empty());
  turns_.stop();
  EXPECT_TRUE(held_.empty());
}

TEST_F(ReadingTurnsTest, ANewConnectionIsLastInLine) {
  const std::vector<int> many = connect("many", 5, 100);
  const int other = connect("other", 1, 100).front();
  look();
  look(ReadingTurns::kUnreadMs);
  for (const int number : many) {  // all but the last, which has the turn then
    if (number != many.back()) read(number);
    connections_[number].waiting = 100;
  }
  read(other);
  look();
  const int late = connect("many", 1, 100).front();
  EXPECT_TRUE(held_.contains(late)) << "from its begin";
  std::vector<int> line;
  while (line.size() < 6) {
    const std::vector<int> next = readable();
    ASSERT_FALSE(next.empty());
    for (const int number : next) read(number);
    line.insert(line.end(), next.begin(), next.end());
    look();
  }
  EXPECT_EQ(line.back(), late);
}

TEST_F(ReadingTurnsTest, ConnectionsThatEndLeaveTheLine) {
  const std::vector<int> many = connect("many", 8, 100);
  connect("other", 1, 100);
  look();
  look(ReadingTurns::kUnreadMs);
  for (const int number : many) {
    turns_.end(number);
    connections_.erase(number);
    held_.erase(number);
  }
  look();
  look(ReadingTurns::kEndMs);
  EXPECT_FALSE(turns_.any());
}

}  // namespace
}  // namespace kilokv::server
