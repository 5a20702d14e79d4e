// The bytes of answers that clients have not taken, and the calls of clients that take none.
#include "server/service/answer_account.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace kilokv::server {
namespace {

constexpr DurationUs kTimeoutUs = 40000;
constexpr DurationUs kNeverUs = 3600000000;

class Call final : public WatchedCall {
 public:
  explicit Call(std::vector<const Call*>* order = nullptr) : order_(order) {}
  void on_timeout() override {
    if (order_ != nullptr) order_->push_back(this);
    ++ended;
  }
  std::atomic<int> ended{0};

 private:
  std::vector<const Call*>* const order_;
};

TEST(AnswerAccountTest, AClientHasAShareOfTheBytes) {
  constexpr std::uint64_t kUnit = 100000;
  AnswerAccount account(1000 * kUnit, 1000000, 1000000);
  Client greedy("greedy"), light("light");
  EXPECT_TRUE(account.charge(&greedy, 700 * kUnit).ok());
  EXPECT_TRUE(account.check(&greedy).ok());
  const Status refused = account.charge(&greedy, 200 * kUnit);
  EXPECT_EQ(refused.reason(), ErrorReason::slow_reader);
  EXPECT_EQ(refused.violation()->setting, "--answers-bytes-max");
  EXPECT_TRUE(account.charge(&greedy, 100 * kUnit).ok());
  EXPECT_FALSE(account.check(&greedy).ok());
  EXPECT_TRUE(account.charge(&light, 70 * kUnit).ok());
  EXPECT_EQ(account.unsent_bytes(), 870 * kUnit);
  account.release(&greedy, 800 * kUnit);
  account.release(&light, 70 * kUnit);
  EXPECT_EQ(account.unsent_bytes(), 0u);
}

TEST(AnswerAccountTest, ACallWhoseAnswerIsNotTakenEndsOnce) {
  AnswerAccount account(1000, kTimeoutUs, kNeverUs);
  Call slow, fast;
  const auto began = std::chrono::steady_clock::now();
  account.watch(&slow);
  account.watch(&fast);
  account.unwatch(&fast);
  while (slow.ended == 0) std::this_thread::yield();
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::microseconds(kTimeoutUs));
  Call later;  // it ends at a later look than the others
  account.watch(&later);
  while (later.ended == 0) std::this_thread::yield();
  EXPECT_EQ(slow.ended, 1);
  EXPECT_EQ(fast.ended, 0);
  account.unwatch(&slow);  // does no harm
}

TEST(AnswerAccountTest, TheTimeBeginsAgainWithEachAnswer) {
  AnswerAccount account(1000, kTimeoutUs, kNeverUs);
  std::vector<const Call*> order;
  Call first(&order), second(&order);
  account.watch(&first);
  account.watch(&second);
  account.watch(&first);  // the next answer of the same call
  while (first.ended == 0 || second.ended == 0) std::this_thread::yield();
  EXPECT_EQ(order, (std::vector<const Call*>{&second, &first})) << "the first is watched since later than the other";
}

TEST(AnswerAccountTest, ACallWhoseMessageDoesNotComeEnds) {
  AnswerAccount account(1000, kNeverUs, kTimeoutUs);
  Call silent, usual, answered;
  for (Call* call : {&silent, &usual, &answered}) account.await_message(call);
  account.message_came(&usual);
  account.watch(&answered);  // with an error, before its message has come
  account.message_came(&answered);
  while (silent.ended == 0) std::this_thread::yield();
  Call later;  // it ends at a later look than the others
  account.await_message(&later);
  while (later.ended == 0) std::this_thread::yield();
  EXPECT_EQ(silent.ended, 1);
  EXPECT_EQ(usual.ended, 0);
  EXPECT_EQ(answered.ended, 0);
  account.unwatch(&answered);
}

TEST(AnswerAccountTest, AMessageThatComesLateDoesNotEndTheTimeOfTheAnswer) {
  AnswerAccount account(1000, kTimeoutUs, kNeverUs);
  Call call;
  account.await_message(&call);
  account.watch(&call);
  account.message_came(&call);
  while (call.ended == 0) std::this_thread::yield();
  EXPECT_EQ(call.ended, 1);
}

// Its cancelling takes until it may end.
class StuckCall final : public WatchedCall {
 public:
  void on_timeout() override {
    began = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!may_end && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ended = true;
  }
  std::atomic<bool> began{false}, may_end{false}, ended{false};
};

TEST(AnswerAccountTest, OthersDoNotWaitForACallThatIsCancelled) {
  AnswerAccount account(1000, kTimeoutUs, kNeverUs);
  StuckCall stuck;
  account.watch(&stuck);
  while (!stuck.began) std::this_thread::yield();
  Call other;
  account.watch(&other);
  account.unwatch(&other);
  EXPECT_FALSE(stuck.ended);
  EXPECT_EQ(other.ended, 0);
  std::atomic<bool> unwatched{false};
  std::thread done([&] {
    account.unwatch(&stuck);
    unwatched = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(unwatched) << "the call would be destroyed while it is cancelled";
  stuck.may_end = true;
  done.join();
  EXPECT_TRUE(stuck.ended);
}

TEST(AnswerAccountTest, ManyCallsEndEachOnceAlthoughSomeEndThemselves) {
  constexpr std::size_t kCalls = 1000;
  AnswerAccount account(1000, kTimeoutUs, kNeverUs);
  std::vector<std::unique_ptr<Call>> calls;
  for (std::size_t i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<Call>());
    account.watch(calls.back().get());
  }
  while (calls.front()->ended == 0) std::this_thread::yield();
  for (std::size_t i = 0; i < kCalls; i += 2) {  // these are destroyed while others are cancelled
    account.unwatch(calls[i].get());
    EXPECT_LE(calls[i]->ended, 1);
    calls[i].reset();
  }
  for (std::size_t i = 1; i < kCalls; i += 2) {
    while (calls[i]->ended == 0) std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (std::size_t i = 1; i < kCalls; i += 2) EXPECT_EQ(calls[i]->ended, 1);
}

}  // namespace
}  // namespace kilokv::server
