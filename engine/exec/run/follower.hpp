// Who keeps the books of a batch that runs: the thread that runs it, or another one. The thread that runs begins. When
// the other thread comes, the books change hands at the next tile. If it does not come, the thread that runs keeps them
// to the end. So a batch never waits for a thread that the system has not woken up yet.
//
// Thread safety: one thread runs. All others may ask for the books, and one of them gets them. It sees all that was
// written before the books changed hands.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/platform/host.hpp"

namespace kilokv::engine {

class Follower {
 public:
  // Before the threads begin. Requires: they belong to the team.
  void open(const ThreadTeam& team) {
    team_ = &team;
    ran_.store(0, std::memory_order_relaxed);
    keeper_.store(kRuns, std::memory_order_relaxed);
  }

  // For the thread that runs. The first `ran` transactions have run, and the books of the first `kept` are kept.
  // Returns true if the caller is to keep the books of the transactions between them. Else the other thread does this.
  // The results of all `ran` stay as they are until the later passes.
  bool keeps_books(std::uint32_t kept, std::uint32_t ran) {
    const std::uint32_t keeper = keeper_.load(std::memory_order_acquire);
    if (keeper == kRuns) return true;
    if (keeper == kAsked) give(kept);
    ran_.store(ran);
    ran_.notify_all();
    return false;
  }
  // For the thread that runs, at the end. `kept`: as above; all, if the caller keeps the books.
  void end(std::uint32_t kept) {
    std::uint32_t keeper = kRuns;
    if (!keeper_.compare_exchange_strong(keeper, kEnded, std::memory_order_acq_rel) && keeper == kAsked) give(kept);
  }

  // For another thread: asks for the books. False: the batch has ended without it, or yet another one has asked.
  bool ask() {
    std::uint32_t keeper = kRuns;
    return keeper_.compare_exchange_strong(keeper, kAsked, std::memory_order_acq_rel);
  }
  // For the thread that has asked. Waits until it has the books. Returns of how many transactions they are kept.
  std::uint32_t await_books() const {
    team_->wait(keeper_, kAsked);
    return kept_;
  }
  // Waits until more than `followed` have run. Returns how many.
  std::uint32_t wait_ran(std::uint32_t followed) const {
    team_->wait(ran_, followed);
    return ran_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::uint32_t kRuns = 0, kAsked = 1, kGiven = 2, kEnded = 3;

  void give(std::uint32_t kept) {
    kept_ = kept;
    ran_.store(kept, std::memory_order_relaxed);
    keeper_.store(kGiven);
    keeper_.notify_all();
  }

  const ThreadTeam* team_ = nullptr;
  std::uint32_t kept_ = 0;
  alignas(64) std::atomic<std::uint32_t> ran_{0};
  alignas(64) std::atomic<std::uint32_t> keeper_{kRuns};
};

}  // namespace kilokv::engine
