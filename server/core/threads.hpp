// The real environment of core (core/environment.hpp): the machine's clocks, the kernel's random numbers, and one
// thread for each worker. Tests use tests/support/sim_environment.hpp instead.
//
// Thread safety: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "server/core/environment.hpp"

namespace kilokv::server {

class SystemClock : public Clock {
 public:
  TimeUs wall_us() const override;
  TimeUs monotonic_us() const override;
  TimeUs boot_us() const override;
};

// Numbers from getrandom(2), fetched in blocks.
class SystemRandom : public Random {
 public:
  std::uint64_t next() override;

 private:
  std::mutex mutex_;
  std::array<std::uint64_t, 32> block_{};
  std::size_t used_ = block_.size();
};

// One thread for each worker, with the worker's name (the first 15 characters). A worker's first step runs after its
// first notify(), so that several workers can be connected before any runs. Destroying a worker waits for its running
// step. A worker must not destroy itself.
class ThreadScheduler : public Scheduler {
 public:
  std::unique_ptr<Worker> spawn(std::string name, std::function<TimeUs()> step) override;
};

}  // namespace kilokv::server
