// Long messages are decoded in turns.
#include "server/service/decode_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kAny = UINT64_MAX;
constexpr std::uint64_t kLong = kDecodedHereBytesMax + 1;

class DecodeQueueTest : public ::testing::Test {
 protected:
  // Messages of this client are decoded only after open_gate().
  void close_gate(const std::shared_ptr<Client>& client) { client->queued_transactions.add(10); }
  void open_gate(const std::shared_ptr<Client>& client) { client->queued_transactions.subtract(10); }
  Status decode(const std::shared_ptr<Client>& client, std::uint64_t bytes, std::uint64_t queued_max,
                const std::function<void()>& work) {
    return queue.run(client, bytes, queued_max, work, [&] { return work; });
  }
  Status send(const std::shared_ptr<Client>& client, std::uint64_t bytes, std::uint64_t queued_max = 10) {
    return decode(client, bytes, queued_max, [this, client] {
      const std::lock_guard lock(mutex_);
      decoded_.push_back(client->name);
    });
  }
  std::vector<std::string> decoded() {
    const std::lock_guard lock(mutex_);
    return decoded_;
  }
  // Keeps all threads of the queue busy: one until `one` is set, the others until `others` is set. While one thread
  // alone is free, messages are decoded in the order in which they are taken. With two, a thread may take a message and
  // sleep, and the other one decodes all the rest before it.
  struct Occupied {
    std::promise<void> one, others;
  };
  std::unique_ptr<Occupied> occupy() {
    auto occupied = std::make_unique<Occupied>();
    const std::shared_future<void> one = occupied->one.get_future().share();
    const std::shared_future<void> others = occupied->others.get_future().share();
    const auto busy = std::make_shared<Client>("busy");
    for (std::size_t i = 0; i < queue.threads(); ++i) {
      std::promise<void> began;
      auto beginning = began.get_future();
      const std::shared_future<void> waiting = i == 0 ? one : others;
      EXPECT_TRUE(decode(busy, kLong, kAny, [&began, waiting] { began.set_value(), waiting.wait(); }).ok());
      beginning.wait();
    }
    return occupied;
  }
  void wait_for(std::size_t count) {
    while (decoded().size() < count) std::this_thread::yield();
  }

  const std::shared_ptr<Client> greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  std::mutex mutex_;
  std::vector<std::string> decoded_;
  DecodeQueue queue{50 * kLong, "--grpc-memory-max", 16 * kLong};
};

TEST_F(DecodeQueueTest, BytesThatWaitAreCounted) {
  const auto occupied = occupy();
  const std::uint64_t busy = queue.bytes();
  EXPECT_TRUE(send(light, kLong).ok());
  EXPECT_TRUE(decoded().empty()) << "the threads are busy";
  EXPECT_EQ(light->undecoded_bytes.load(), kLong);
  EXPECT_EQ(queue.bytes(), busy + kLong);
  EXPECT_FALSE(send(light, 51 * kLong).ok());
  EXPECT_EQ(queue.bytes(), busy + kLong) << "what is refused is not counted";
  occupied->one.set_value(), occupied->others.set_value();
  queue.drain();
  EXPECT_EQ(decoded().size(), 1u);
  EXPECT_EQ(light->undecoded_bytes.load(), 0u);
  EXPECT_EQ(queue.bytes(), 0u);
}

// Runs `work` as a message of `bytes`, and waits until it has run. Returns the thread that ran it.
class DecodeHereTest : public DecodeQueueTest {
 protected:
  std::thread::id run(
      std::uint64_t bytes, const std::function<void()>& work = [] {}) {
    std::promise<std::thread::id> ran;
    EXPECT_TRUE(decode(light, bytes, kAny, [&] { work(), ran.set_value(std::this_thread::get_id()); }).ok());
    return ran.get_future().get();
  }
  const std::thread::id here = std::this_thread::get_id();
};

TEST_F(DecodeHereTest, MessagesAreDecodedWhereTheyComeWhileThereIsRoom) {
  constexpr std::uint64_t kHalf = kDecodedHereBytesMax / 2;
  std::thread::id second, third;
  EXPECT_EQ(run(kHalf, [&] { second = run(kHalf, [&] { third = run(DecodeQueue::kShortBytes + 1); }); }), here);
  EXPECT_EQ(second, here);
  EXPECT_NE(third, here) << "the two before it took all the room";
  EXPECT_EQ(run(2 * kHalf), here) << "the room is free again";
  EXPECT_NE(run(2 * kHalf + 1), here);
}

TEST_F(DecodeHereTest, WhileAnotherWaitsNoneIsDecodedWhereItComes) {
  close_gate(greedy);
  ASSERT_TRUE(send(greedy, DecodeQueue::kShortBytes + 1).ok());
  EXPECT_TRUE(decoded().empty()) << "its client has enough in the admission queue";
  EXPECT_NE(run(DecodeQueue::kShortBytes + 1), here);
  open_gate(greedy);
  queue.drain();
  EXPECT_EQ(decoded().size(), 1u);
  EXPECT_EQ(run(DecodeQueue::kShortBytes + 1), here);
}

TEST_F(DecodeQueueTest, ALightClientDoesNotWaitForAllMessagesOfAGreedyOne) {
  const auto occupied = occupy();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(greedy, kLong).ok());
  ASSERT_TRUE(send(light, kLong / 10).ok());
  occupied->one.set_value();
  wait_for(11);
  EXPECT_EQ(decoded().front(), "light");
  occupied->others.set_value();
}

// A client whose clock is far ahead is served, while others have enough in the admission queue.
TEST_F(DecodeQueueTest, ANewcomerDoesNotWaitForAllWhoWerePassedOver) {
  const auto ahead = std::make_shared<Client>("ahead");
  ASSERT_TRUE(send(ahead, 12 * kLong).ok());
  wait_for(1);
  std::vector<std::shared_ptr<Client>> passed_over;
  for (int i = 0; i < 4; ++i) {
    passed_over.push_back(std::make_shared<Client>("passed over"));
    close_gate(passed_over.back());
    for (int j = 0; j < 6; ++j) ASSERT_TRUE(send(passed_over.back(), kLong).ok());
  }
  ASSERT_TRUE(send(ahead, kLong).ok());
  wait_for(2);
  const auto occupied = occupy();
  ASSERT_TRUE(send(light, kLong / 10).ok());
  for (const auto& client : passed_over) open_gate(client);
  occupied->one.set_value();
  wait_for(2 + 4 * 6 + 1);
  EXPECT_EQ(decoded()[2], "light");
  occupied->others.set_value();
}

// One client is passed over all the time. Newcomers pass another one for 16 messages: as much as is decoded at once.
TEST_F(DecodeQueueTest, NewcomersDoNotPassForAsLongAsSomebodyIsPassedOver) {
  const auto ahead = std::make_shared<Client>("ahead"), passed_over = std::make_shared<Client>("passed over");
  close_gate(passed_over);
  ASSERT_TRUE(send(passed_over, kLong).ok());
  for (std::size_t i = 1; i <= 40; ++i) {
    ASSERT_TRUE(send(ahead, kLong).ok());
    wait_for(i);
  }
  const auto occupied = occupy();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(send(light, kLong).ok());
  ASSERT_TRUE(send(ahead, kLong).ok());
  occupied->one.set_value();
  wait_for(40 + 30 + 1);
  const std::vector<std::string> order = decoded();
  const auto place = std::find(order.begin() + 40, order.end(), "ahead") - order.begin() - 40;
  EXPECT_LE(place, 16 + 1 + 1) << "the last of them ends at the same time, and then either may be first";
  open_gate(passed_over);
  occupied->others.set_value();
}

TEST_F(DecodeQueueTest, TheBytesThatAreDecodedAtATimeAreBounded) {
  std::promise<void> first_began, second_began, end_first;
  const std::shared_future<void> first_ends = end_first.get_future().share();
  ASSERT_TRUE(decode(greedy, 10 * kLong, kAny, [&, first_ends] { first_began.set_value(), first_ends.wait(); }).ok());
  first_began.get_future().wait();
  ASSERT_TRUE(decode(light, 7 * kLong, kAny, [&] { second_began.set_value(); }).ok());
  std::future<void> second = second_began.get_future();
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << "10 + 7 is more than 16";
  end_first.set_value();
  second.wait();
  std::promise<void> long_one;
  ASSERT_TRUE(decode(light, 20 * kLong, kAny, [&] { long_one.set_value(); }).ok());
  long_one.get_future().wait();  // one alone is decoded, however long it is
}

TEST_F(DecodeQueueTest, AMessageWaitsWhileItsClientHasEnoughInTheAdmissionQueue) {
  close_gate(greedy);
  ASSERT_TRUE(send(greedy, kLong).ok());
  ASSERT_TRUE(send(light, kLong).ok());
  wait_for(1);
  EXPECT_EQ(decoded(), std::vector<std::string>{"light"});
  EXPECT_EQ(greedy->undecoded_bytes.load(), kLong);
  open_gate(greedy);
  wait_for(2);
}

// An address gets no more by many connections.
TEST_F(DecodeQueueTest, AMessageWaitsWhileItsAddressHasEnoughInTheAdmissionQueue) {
  const auto address = std::make_shared<Client>("address");
  const auto first = std::make_shared<Client>("first", address), second = std::make_shared<Client>("second", address);
  close_gate(first);
  second->queued_transactions.add(1);
  ASSERT_TRUE(send(second, kDecodedHereBytesMax).ok());
  EXPECT_TRUE(decoded().empty()) << "it would be decoded where it came";
  ASSERT_TRUE(send(light, kLong).ok());
  wait_for(1);
  EXPECT_EQ(decoded(), std::vector<std::string>{"light"});
  EXPECT_EQ(second->undecoded_bytes.load(), kDecodedHereBytesMax);
  open_gate(first);
  wait_for(2);
}

// What the address has queued may take minutes.
class DecodeQueuePassTest : public ::testing::Test {
 protected:
  DecodeQueuePassTest() { first_->queued_transactions.add(10); }

  // A message that is counted when it is decoded.
  static void send(DecodeQueue* queue, const std::shared_ptr<Client>& client, std::atomic<int>* decoded) {
    const std::function<void()> work = [decoded] { ++*decoded; };
    EXPECT_TRUE(queue->run(client, kLong, 10, work, [&work] { return work; }).ok());
  }
  static void wait_for(const std::atomic<int>& decoded, int count) {
    while (decoded < count) std::this_thread::yield();
  }

  const std::shared_ptr<Client> address_ = std::make_shared<Client>("address"),
                                first_ = std::make_shared<Client>("first", address_),
                                second_ = std::make_shared<Client>("second", address_),
                                third_ = std::make_shared<Client>("third", address_);
  std::atomic<int> passed_{0}, further_{0};
};

TEST_F(DecodeQueuePassTest, OneMessageAtATimePassesFromAConnectionWithNothingQueued) {
  DecodeQueue seldom{50 * kLong, "--grpc-memory-max", 16 * kLong, std::chrono::hours(1)};
  send(&seldom, first_, &further_);
  send(&seldom, second_, &passed_);
  wait_for(passed_, 1);
  for (const auto& client : {second_, third_}) send(&seldom, client, &further_);
  const auto neighbour = std::make_shared<Client>("neighbour");
  send(&seldom, neighbour, &passed_);
  wait_for(passed_, 2);
  EXPECT_EQ(further_, 0) << "the address has one pass an hour";
  first_->queued_transactions.subtract(10);
  wait_for(further_, 3);
}

TEST_F(DecodeQueuePassTest, TheNextOnePassesALittleLater) {
  DecodeQueue often{50 * kLong, "--grpc-memory-max", 16 * kLong, std::chrono::milliseconds(1)};
  send(&often, first_, &further_);
  for (const auto& client : {second_, third_, second_}) send(&often, client, &passed_);
  wait_for(passed_, 3);
  EXPECT_EQ(further_, 0) << "it has enough in the admission queue";
  first_->queued_transactions.subtract(10);
  wait_for(further_, 1);
}

TEST_F(DecodeQueueTest, MessagesThatWaitAreBounded) {
  close_gate(greedy);
  Status refused;
  int sent = 0;
  while (refused.ok()) {
    refused = send(greedy, kLong);
    if (refused.ok()) ++sent;
  }
  EXPECT_EQ(sent, 40) << "four fifths of the room for 50";
  EXPECT_EQ(refused.reason(), ErrorReason::queue_full);
  EXPECT_NE(refused.message().find("--grpc-memory-max"), std::string::npos);
  EXPECT_TRUE(send(light, kLong).ok());
  queue.drain();
  EXPECT_EQ(decoded().size(), 41u) << "a drain does not wait for the admission queue";
  EXPECT_EQ(greedy->undecoded_bytes.load(), 0u);
}

}  // namespace
}  // namespace kilokv::server
