// Counts and bounds the calls of one kind that are in progress, because each holds memory, and time of the executor,
// until it ends. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/base/status.hpp"

namespace kilokv::server {

class InFlight {
 public:
  // `name`: the calls, as an error names them. `setting`: the flag that sets `max`.
  InFlight(std::uint32_t max, const char* name, const char* setting) : max_(max), name_(name), setting_(setting) {}

  // Counts one more call. RESOURCE_EXHAUSTED, with not_run, if `max` calls are in progress. After an ok, the caller
  // must call leave() once, or the function that returning() made.
  Status enter() {
    const std::uint64_t count = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (count <= max_) return {};
    leave();
    constexpr std::int64_t kRetryAfterUs = 10000;
    return Status::exhausted(ErrorReason::calls_full,
                             {name_, std::to_string(max_) + " in flight",
                              std::to_string(count) + " in flight with this call", setting_},
                             kRetryAfterUs)
        .as_not_run();
  }
  void leave() { count_.fetch_sub(1, std::memory_order_relaxed); }

  // Returns `done` with leave() before it, so that a client that gets the answer can call again at once.
  template <class... Arguments>
  std::function<void(Arguments...)> returning(std::function<void(Arguments...)> done) {
    return [this, done = std::move(done)](Arguments... arguments) {
      leave();
      done(std::move(arguments)...);
    };
  }

 private:
  const std::uint32_t max_;
  const char* const name_;
  const char* const setting_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace kilokv::server
