// One thread that calls functions at given times: deadlines, retries and leases of all sessions of a client.
// Thread safety: any thread. Functions are called one at a time and should be short; one may schedule or cancel others.
// Destruction drops what has not been called; it may happen inside of a function.
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
  // Afterwards the function is not called, unless it is being called now. An unknown id is fine.
  void cancel(Id id);

 private:
  struct State;
  static void run(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace kilokv::client
