#include "engine/platform/host.hpp"

#include <algorithm>
#include <system_error>

#include "engine/base/check.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine {

ThreadTeam::ThreadTeam(std::uint32_t threads) {
  KILOKV_CHECK(threads > 0);
  threads_.reserve(threads - 1);
  times_.resize(threads - 1);
  try {
    for (; size_ < threads; ++size_) threads_.emplace_back([this, thread = size_] { work(thread); });
  } catch (const std::system_error&) {
  }
  meeting_.emplace(static_cast<std::ptrdiff_t>(size_));  // the threads use meeting_ and size_ only after a launch
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
  for (std::uint64_t seen = 0;; ++seen) {
    launches_.wait(seen);
    if (ends_.load()) return;
    (*body_)(thread);
    ThreadTime& time = times_[thread - 1];
    time = {time.now, Stopwatch::processor_now()};
    barrier();
  }
}

}  // namespace kilokv::engine
