// The calls of one connection that lack a message. A call that lacks its message holds what has come of it in gRPC's
// memory, and nobody else can tell how much that is. So the server can end those whose message is late.
//
// Times are those of a clock that never goes back, in milliseconds. Thread safety: all members.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::server {

class AwaitingCall {
 public:
  virtual ~AwaitingCall() = default;
  AwaitingCall(const AwaitingCall&) = delete;
  AwaitingCall& operator=(const AwaitingCall&) = delete;

  // Its message is late, and the server wants the memory. The call ends with `status`. May be called again.
  virtual void end_late(const Status& status) = 0;

 protected:
  AwaitingCall() = default;
};

class AwaitedMessages {
  struct Waiting {
    std::int64_t since_ms;
    std::weak_ptr<AwaitingCall> call;
  };

 public:
  // A message that has not come for so long is late.
  static constexpr std::int64_t kLateMs = 1000;
  using Handle = std::list<Waiting>::iterator;

  // A call begins to wait. Returns what end() needs.
  Handle begin(std::weak_ptr<AwaitingCall> call, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    return waiting_.insert(waiting_.end(), {now_ms, std::move(call)});
  }
  // Its message has come, or the call has ended.
  void end(Handle handle) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(handle);
  }
  // How many are late.
  std::uint64_t late(std::int64_t now_ms) const {
    std::uint64_t count = 0;
    for_each_late(now_ms, [&count](const Waiting&) { ++count; });
    return count;
  }
  std::vector<std::shared_ptr<AwaitingCall>> late_calls(std::int64_t now_ms) const {
    std::vector<std::shared_ptr<AwaitingCall>> calls;
    for_each_late(now_ms, [&calls](const Waiting& waiting) {
      if (std::shared_ptr<AwaitingCall> call = waiting.call.lock()) calls.push_back(std::move(call));
    });
    return calls;
  }

 private:
  template <class Visit>
  void for_each_late(std::int64_t now_ms, const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const Waiting& waiting : waiting_) {  // those that began first are the first
      if (now_ms - waiting.since_ms < kLateMs) return;
      visit(waiting);
    }
  }

  mutable std::mutex mutex_;
  std::list<Waiting> waiting_;
};

}  // namespace kilokv::server
