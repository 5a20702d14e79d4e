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

  // Its message is late, and the server wants the memory. The call ends with `status`, unless the message has come
  // meanwhile. `is_again`: it was told so a while ago. If its client has not taken the end since then, it is cancelled.
  // Returns whether it ends now.
  virtual bool end_late(const Status& status, bool is_again) = 0;

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
  static constexpr std::int64_t kNever = -1;
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
  // When the call began to wait that has waited longest, if its message is late; else kNever.
  std::int64_t late_since_ms(std::int64_t now_ms) const {
    const std::lock_guard lock(mutex_);
    return waiting_.empty() || !is_late(waiting_.front(), now_ms) ? kNever : waiting_.front().since_ms;
  }
  std::vector<std::shared_ptr<AwaitingCall>> late_calls(std::int64_t now_ms) const {
    std::vector<std::shared_ptr<AwaitingCall>> calls;
    const std::lock_guard lock(mutex_);
    for (const Waiting& waiting : waiting_) {  // those that began first are the first
      if (!is_late(waiting, now_ms)) break;
      if (std::shared_ptr<AwaitingCall> call = waiting.call.lock()) calls.push_back(std::move(call));
    }
    return calls;
  }

 private:
  static bool is_late(const Waiting& waiting, std::int64_t now_ms) { return now_ms - waiting.since_ms >= kLateMs; }

  mutable std::mutex mutex_;
  std::list<Waiting> waiting_;
};

}  // namespace kilokv::server
