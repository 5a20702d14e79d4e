// Ends a stream of answers on which nothing comes any more. Thread safety: one thread.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "client/lib/src/timers.hpp"

namespace kilokv::client {

// Cancels a call after some time without a sign of life.
class IdleWatch {
 public:
  IdleWatch(Timers* timers, grpc::ClientContext* context, std::uint64_t idle_us)
      : timers_(timers), state_(std::make_shared<State>()), idle_(std::chrono::microseconds(idle_us)) {
    state_->context = context;
    alive();
  }
  ~IdleWatch() {
    timers_->cancel(timer_);
    const std::lock_guard lock(state_->mutex);
    state_->context = nullptr;
  }
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  // Time does not count from now on, until alive().
  void pause() { timers_->cancel(timer_); }
  void alive() {
    timers_->cancel(timer_);
    timer_ = timers_->at(Clock::now() + idle_, [state = state_] {
      const std::lock_guard lock(state->mutex);
      if (state->context == nullptr) return;
      state->is_idle = true;
      state->context->TryCancel();
    });
  }
  bool is_idle() const {
    const std::lock_guard lock(state_->mutex);
    return state_->is_idle;
  }

 private:
  struct State {
    std::mutex mutex;
    grpc::ClientContext* context = nullptr;
    bool is_idle = false;
  };

  Timers* const timers_;
  const std::shared_ptr<State> state_;
  const std::chrono::microseconds idle_;
  Timers::Id timer_ = 0;
};

}  // namespace kilokv::client
