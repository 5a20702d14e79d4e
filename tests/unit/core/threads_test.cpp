#include "server/core/threads.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>
#include <vector>

namespace kilokv::server {
namespace {

TEST(ThreadsTest, ClocksAdvance) {
  SystemClock clock;
  const TimeUs first = clock.monotonic_us();
  EXPECT_GE(clock.monotonic_us(), first);
  EXPECT_GT(clock.wall_us(), TimeUs{1'600'000'000} * 1'000'000);
}

TEST(ThreadsTest, RandomNumbersDiffer) {
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(random.next());
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(ThreadsTest, AStepRunsAfterItsFirstNotifyInItsOwnNamedThread) {
  ThreadScheduler scheduler;
  std::atomic<bool> notified{false};
  std::promise<std::pair<bool, std::string>> ran;
  const auto worker = scheduler.spawn("a name that is too long", [&] {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    ran.set_value({notified.load(), name});
    return kNever;
  });
  notified = true;
  worker->notify();
  EXPECT_EQ(ran.get_future().get(), std::pair(true, std::string("a name that is ")));
}

TEST(ThreadsTest, AStepRunsAgainWhenItsTimeHasCome) {
  SystemClock clock;
  ThreadScheduler scheduler;
  int steps = 0;
  TimeUs wanted = 0;
  std::promise<TimeUs> second;
  const auto worker = scheduler.spawn("timer", [&] {
    if (++steps == 1) {
      return wanted = clock.monotonic_us() + 2000;
    }
    if (steps == 2) {
      second.set_value(clock.monotonic_us());
    }
    return kNever;
  });
  worker->notify();
  const TimeUs woke = second.get_future().get();
  EXPECT_GE(woke, wanted);
}

// Several threads hand over work and notify; every piece must be taken although the worker only runs when notified.
TEST(ThreadsTest, NoNotifyIsLost) {
  constexpr int kThreads = 4, kEach = 20'000;
  ThreadScheduler scheduler;
  std::atomic<int> handed_over{0};
  std::promise<void> all_taken;
  int taken = 0;
  const auto worker = scheduler.spawn("taker", [&] {
    const int before = std::exchange(taken, taken + handed_over.exchange(0));
    if (before < kThreads * kEach && taken == kThreads * kEach) {
      all_taken.set_value();
    }
    return kNever;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) {
        handed_over.fetch_add(1);
        worker->notify();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(all_taken.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(ThreadsTest, AStepMayNotifyItself) {
  ThreadScheduler scheduler;
  std::unique_ptr<Worker> worker;
  int steps = 0;
  std::promise<void> done;
  worker = scheduler.spawn("self", [&] {
    if (++steps < 100) {
      worker->notify();
    } else if (steps == 100) {
      done.set_value();
    }
    return kNever;
  });
  worker->notify();
  done.get_future().get();
}

TEST(ThreadsTest, DestroyingAWorkerWaitsForItsStep) {
  ThreadScheduler scheduler;
  std::promise<void> entered, leave;
  bool left = false;
  auto worker = scheduler.spawn("slow", [&] {
    entered.set_value();
    leave.get_future().get();
    left = true;
    return kNever;
  });
  worker->notify();
  entered.get_future().get();
  std::thread releaser([&] { leave.set_value(); });
  worker.reset();
  EXPECT_TRUE(left);
  releaser.join();
}

}  // namespace
}  // namespace kilokv::server
