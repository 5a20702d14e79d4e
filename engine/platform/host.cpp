#include "engine/platform/host.hpp"

#include <algorithm>
#include <system_error>

#include "engine/base/check.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine {
namespace {

// Looks at a word take some 20 to 50 microseconds together. Processors have a hint for such loops.
constexpr std::uint32_t kLooksMax = 1000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool ThreadTeam::look(const std::atomic<std::uint32_t>& word, std::uint32_t old) const {
  for (std::uint32_t looks = 0; looks < looks_max_; ++looks) {
    if (word.load(std::memory_order_acquire) != old) return true;
    pause();
  }
  return false;
}

void ThreadTeam::wait(const std::atomic<std::uint32_t>& word, std::uint32_t old) const {
  if (!look(word, old)) word.wait(old, std::memory_order_acquire);
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const std::uint32_t meeting = meetings_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    meetings_.fetch_add(1, std::memory_order_acq_rel);
    meetings_.notify_all();
  } else {
    wait(meetings_, meeting);
  }
}

ThreadTeam::ThreadTeam(std::uint32_t threads) : times_(threads - 1), cores_(threads) {
  KILOKV_CHECK(threads > 0);
  if (threads <= std::thread::hardware_concurrency()) looks_max_ = kLooksMax;  // the threads read it from now on
  threads_.reserve(threads - 1);
  try {
    for (; size_ < threads; ++size_) threads_.emplace_back([this, thread = size_] { work(thread); });
  } catch (const std::system_error&) {
  }
}

ThreadTeam::~ThreadTeam() {
  ends_.store(true);
  launches_.fetch_add(1);
  launches_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(std::uint32_t)>& body) {
  if (size_ == 1) return body(0);
  launch(body);
  body(0);
  await_left(size_ - 1);
}

void ThreadTeam::run_beside(const std::function<void(std::uint32_t)>& body) {
  if (size_ == 1) return body(0);
  launch(body);
  body(0);
  await_left(static_cast<std::uint32_t>(gate_.fetch_or(kClosed, std::memory_order_acq_rel)));
}

void ThreadTeam::launch(const std::function<void(std::uint32_t)>& body) {
  cores_.keep_off_this_core(&threads_);
  body_ = &body;
  left_.store(0, std::memory_order_relaxed);
  const std::uint32_t number = launches_.load(std::memory_order_relaxed) + 1;
  gate_.store(std::uint64_t{number} << 32, std::memory_order_release);
  launches_.store(number);
  launches_.notify_all();
}

void ThreadTeam::await_left(std::uint32_t threads) {
  for (std::uint32_t left = 0; (left = left_.load(std::memory_order_acquire)) != threads;) {
    if (look(left_, left)) continue;
    cores_.allow_all(&threads_);
    left_.wait(left, std::memory_order_acquire);
  }
  helper_time_ = {};
  for (ThreadTime& time : times_) {
    const double used = time.used.load(std::memory_order_relaxed);
    helper_time_.all += used - time.counted;
    helper_time_.busiest = std::max(helper_time_.busiest, used - time.counted);
    time.counted = used;
  }
}

bool ThreadTeam::enter(std::uint32_t launch) {
  std::uint64_t gate = gate_.load(std::memory_order_acquire);
  do {
    if (gate >> 32 != launch || (gate & kClosed) != 0) return false;
  } while (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

void ThreadTeam::work(std::uint32_t thread) {
  for (std::uint32_t seen = 0;;) {
    wait(launches_, seen);
    seen = launches_.load();
    if (ends_.load()) return;  // after the look at launches_: the end is the last launch
    const bool comes = enter(seen);
    if (comes) (*body_)(thread);
    times_[thread - 1].used.store(Stopwatch::processor_now(), std::memory_order_relaxed);
    if (!comes) continue;
    left_.fetch_add(1);
    left_.notify_all();
  }
}

}  // namespace kilokv::engine
