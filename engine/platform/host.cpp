#include "engine/platform/host.hpp"

#include "engine/base/check.hpp"

namespace kilokv::engine {

ThreadTeam::ThreadTeam(std::uint32_t threads) : size_(threads), meeting_(static_cast<std::ptrdiff_t>(threads)) {
  KILOKV_CHECK(threads > 0);
  threads_.reserve(threads - 1);
  for (std::uint32_t thread = 1; thread < threads; ++thread) threads_.emplace_back([this, thread] { work(thread); });
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

void ThreadTeam::work(std::uint32_t thread) {
  for (std::uint64_t seen = 0;; ++seen) {
    launches_.wait(seen);
    if (ends_.load()) return;
    (*body_)(thread);
    barrier();
  }
}

}  // namespace kilokv::engine
