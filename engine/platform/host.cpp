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
  if (threads <= std::thread::hardware_concurrency()) looks_max_ = kLooksMax;  // the threads read it from now on
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
  body_ = &body;
  launches_.fetch_add(1);
  launches_.notify_all();
  body(0);
  barrier();  // all threads have run the body when the last one leaves it
  helper_time_ = {};
  for (const ThreadTime& time : times_) {
    helper_time_.all += time.now - time.before;
    helper_time_.busiest = std::max(helper_time_.busiest, time.now - time.before);
  }
}

void ThreadTeam::work(std::uint32_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait(launches_, seen);
    if (ends_.load()) return;
    (*body_)(thread);
    ThreadTime& time = times_[thread - 1];
    time = {time.now, Stopwatch::processor_now()};
    barrier();
  }
}

}  // namespace kilokv::engine
