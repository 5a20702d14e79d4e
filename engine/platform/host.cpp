#include "engine/platform/host.hpp"

#include <system_error>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

// Of some 20 ns each: phases of a batch end within microseconds of one another, and to wake a parked thread takes more.
constexpr std::uint32_t kSpins = 1000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(std::uint32_t threads) {
  KILOKV_CHECK(threads > 0);
  threads_.reserve(threads - 1);
  try {
    for (; size_ < threads; ++size_) threads_.emplace_back([this, thread = size_] { work(thread); });
  } catch (const std::system_error&) {
  }
  if (size_ <= std::thread::hardware_concurrency()) spins_ = kSpins;  // they look at neither before a launch
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
  barrier();  // the last thread that leaves it has run the body
}

void ThreadTeam::meet() {
  const std::uint32_t meeting =
      meetings_.load(std::memory_order_relaxed);  // nobody ends it before this thread is there
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    meetings_.store(meeting + 1, std::memory_order_release);
    meetings_.notify_all();
    return;
  }
  for (std::uint32_t i = 0; i < spins_; ++i) {
    if (meetings_.load(std::memory_order_acquire) != meeting) return;
    relax();
  }
  meetings_.wait(meeting, std::memory_order_acquire);
}

void ThreadTeam::work(std::uint32_t thread) {
  for (std::uint64_t seen = 0;; ++seen) {
    launches_.wait(seen);
    if (ends_.load()) return;
    (*body_)(thread);
    barrier();
  }
}

}  // namespace kilokv::engine
