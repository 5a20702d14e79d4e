// How far a batch has run. The thread that runs tells another one, which follows it. Thread safety: one thread runs,
// and one follows.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/platform/host.hpp"

namespace kilokv::engine {

class Follower {
 public:
  // Before the two threads begin. Requires: they belong to the team.
  void open(const ThreadTeam& team) {
    team_ = &team;
    ran_.store(0, std::memory_order_relaxed);
  }
  // The thread that runs calls this when the first `transactions` have run. Their results stay as they are until the
  // later passes.
  void tell_ran(std::uint32_t transactions) {
    ran_.store(transactions, std::memory_order_release);
    ran_.notify_all();
  }
  // For the one that follows: waits until more than `followed` have run. Returns how many.
  std::uint32_t wait_ran(std::uint32_t followed) const {
    team_->wait(ran_, followed);
    return ran_.load(std::memory_order_acquire);
  }

 private:
  const ThreadTeam* team_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> ran_{0};
};

}  // namespace kilokv::engine
