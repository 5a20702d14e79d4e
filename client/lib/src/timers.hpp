// One thread that calls functions at given times, for the deadlines, retries and leases of all sessions of a client.
// Thread safety: any thread. Functions run one at a time, and should be short. A function may schedule or cancel
// others. The destructor drops the functions that have not run. A function may destroy the timers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace kilokv::client {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

class Timers {
 public:
  using Id = std::uint64_t;

  Timers();
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  Id at(TimePoint time, std::function<void()> function);
  // After this, the function is not called any more, but a call that has begun goes on. An unknown id does nothing.
  void cancel(Id id);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace kilokv::client
