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

void ThreadTeam::wait(const std::atomic<std::uint32_t>& word, std::uint32_t old) const {
  for (std::uint32_t looks = 0; looks < looks_max_; ++looks) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  word.wait(old, std::memory_order_acquire);
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

ThreadTeam::ThreadTeam(std::uint32_t threads) {
  KILOKV_CHECK(threads > 0);
  if (threads <= std::thread::hardware_concurrency()) {
    looks_max_ = kLooksMax;  // the threads read it from now on
    cores_ = std::make_unique<HelperCores>();
  }
  threads_.reserve(threads - 1);
  times_.resize(threads - 1);
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
  if (cores_ != nullptr) cores_->keep_off_this_core(&threads_);
  body_ = &body;
  left_.store(0, std::memory_order_relaxed);
  const std::uint32_t number = launches_.load(std::memory_order_relaxed) + 1;
  gate_.store(std::uint64_t{number} << 32, std::memory_order_release);
  launches_.store(number, std::memory_order_release);
  launches_.notify_all();
}

void ThreadTeam::await_left(std::uint32_t threads) {
  for (std::uint32_t left = 0; (left = left_.load(std::memory_order_acquire)) != threads;) wait(left_, left);
  helper_time_ = {};
  for (ThreadTime& time : times_) {
    helper_time_.all += time.now - time.before;
    helper_time_.busiest = std::max(helper_time_.busiest, time.now - time.before);
    time.before = time.now;
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
    if (ends_.load()) return;
    seen = launches_.load(std::memory_order_acquire);
    if (!enter(seen)) continue;
    (*body_)(thread);
    times_[thread - 1].now = Stopwatch::processor_now();
    left_.fetch_add(1, std::memory_order_acq_rel);
    left_.notify_all();
  }
}

}  // namespace kilokv::engine
