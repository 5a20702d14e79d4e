#include "server/watchdog.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace kilokv::server {
namespace {

constexpr DurationUs kShort = 1, kForEver = DurationUs{3600} * 1000000;

// The probes of a watchdog, and what it says. A wait that does not end is ended by the time limit of the test.
class Pipeline {
 public:
  Watchdog::Probe probe() {
    return [this](std::function<void()> came_back) {
      const std::lock_guard lock(mutex_);
      ++probes_;
      under_way_ = std::move(came_back);
      changed_.notify_all();
    };
  }
  std::function<void()> alive() {
    return [this] {
      const std::lock_guard lock(mutex_);
      ++alive_;
      changed_.notify_all();
    };
  }

  // Gives back the next probe.
  void give_back() { take()(); }
  std::function<void()> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_.has_value(); });
    return *std::exchange(under_way_, std::nullopt);
  }
  void wait_for_probe(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return probes_ >= number; });
  }
  void wait_for_alive(int times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return alive_ >= times; });
  }
  int probes() {
    const std::lock_guard lock(mutex_);
    return probes_;
  }
  int times_alive() {
    const std::lock_guard lock(mutex_);
    return alive_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::function<void()>> under_way_;
  int probes_ = 0, alive_ = 0;
};

TEST(Watchdog, IsAliveOncePerProbeThatCameBack) {
  Pipeline pipeline;
  const Watchdog watchdog(kShort, pipeline.probe(), pipeline.alive());
  for (int i = 1; i <= 20; ++i) {
    pipeline.wait_for_probe(i);
    EXPECT_EQ(pipeline.times_alive(), i - 1);
    pipeline.give_back();
    pipeline.wait_for_alive(i);
  }
}

TEST(Watchdog, AProbeThatDoesNotComeBackEndsIt) {
  Pipeline pipeline;
  {
    const Watchdog watchdog(kShort, pipeline.probe(), pipeline.alive());
    pipeline.give_back();
    pipeline.wait_for_probe(2);
  }
  EXPECT_EQ(pipeline.times_alive(), 1);
  EXPECT_EQ(pipeline.probes(), 2);
}

TEST(Watchdog, AProbeThatComesBackAfterItsEndDoesNothing) {
  Pipeline pipeline;
  std::function<void()> came_back;
  {
    const Watchdog watchdog(kShort, pipeline.probe(), pipeline.alive());
    came_back = pipeline.take();
  }
  came_back();
  EXPECT_EQ(pipeline.times_alive(), 0);
}

TEST(Watchdog, ItsEndDoesNotWaitForThePause) {
  Pipeline pipeline;
  const Watchdog watchdog(kForEver, pipeline.probe(), pipeline.alive());
  pipeline.give_back();
  pipeline.wait_for_alive(1);
  EXPECT_EQ(pipeline.probes(), 1);
}

}  // namespace
}  // namespace kilokv::server
