#include "server/core/threads.hpp"

#include <pthread.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <thread>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, microseconds>;

template <class ClockType>
TimeUs microseconds_of() {
  return duration_cast<microseconds>(ClockType::now().time_since_epoch()).count();
}

class ThreadWorker : public Worker {
 public:
  ThreadWorker(const std::string& name, std::function<TimeUs()> step)
      : step_(std::move(step)), thread_([this] { run(); }) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }

  ~ThreadWorker() override { ThreadWorker::stop(); }

  void stop() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void notify() override {
    if (due_.load(std::memory_order_acquire) || due_.exchange(true, std::memory_order_acq_rel)) {
      return;
    }
    // Lock and unlock: the thread either sees due_ before it waits, or is woken.
    { const std::scoped_lock lock(mutex_); }
    wake_.notify_one();
  }

 private:
  void run() {
    TimeUs next_us = kNever;
    while (wait(next_us)) {
      // Acquire: the step sees everything that was passed on before the notify() that this takes.
      due_.exchange(false, std::memory_order_acq_rel);
      next_us = step_();
    }
  }

  // Returns true when the step is due, and false when the worker stops.
  bool wait(TimeUs next_us) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return stopping_ || due_.load(std::memory_order_acquire); };
    if (next_us == kNever) {
      wake_.wait(lock, ready);
    } else {
      wake_.wait_until(lock, SteadyTime(microseconds(next_us)), ready);
    }
    return !stopping_;
  }

  const std::function<TimeUs()> step_;
  std::atomic<bool> due_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last, because the thread uses all of the above
};

}  // namespace

TimeUs SystemClock::wall_us() const { return microseconds_of<std::chrono::system_clock>(); }

TimeUs SystemClock::monotonic_us() const { return microseconds_of<std::chrono::steady_clock>(); }

TimeUs SystemClock::boot_us() const {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);  // cannot fail: Linux has this clock
  return TimeUs{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

std::uint64_t SystemRandom::next() {
  const std::scoped_lock lock(mutex_);
  if (used_ == block_.size()) {
    // A call for at most 256 bytes is never cut short by a signal.
    static_assert(sizeof block_ <= 256);
    ssize_t got = 0;
    do {
      got = getrandom(block_.data(), sizeof block_, 0);
    } while (got < 0 && errno == EINTR);
    KILOKV_CHECK(got == static_cast<ssize_t>(sizeof block_));
    used_ = 0;
  }
  return std::exchange(block_[used_++], 0);
}

std::unique_ptr<Worker> ThreadScheduler::spawn(std::string name, std::function<TimeUs()> step) {
  return std::make_unique<ThreadWorker>(name, std::move(step));
}

}  // namespace kilokv::server
