// Keeps helper threads off the core of the thread that wakes them.
//
// The scheduler of Linux often puts a thread that is woken up on the core of the thread that wakes it, also if another
// core is idle: on a virtual machine an idle core looks as if the host had taken it away. The woken thread then waits
// until the busy one has used its slice, which takes some milliseconds. So before the helpers are woken up, they are
// allowed on all cores of the process but the caller's. This costs a system call for each helper, and only when the
// caller has moved to another core.
//
// If the caller itself is about to wait for a helper, its core is free: allow_all() gives it back to the helpers.
//
// Does nothing on systems other than Linux, or if there are more threads than cores. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace kilokv::engine {

class HelperCores {
 public:
  // `threads`: of the team, the caller's included. The helpers may use the cores that the calling thread may use now.
  explicit HelperCores(std::uint32_t threads);
  ~HelperCores();
  HelperCores(const HelperCores&) = delete;
  HelperCores& operator=(const HelperCores&) = delete;

  // `helpers`: the same threads in each call.
  void keep_off_this_core(std::vector<std::thread>* helpers);
  void allow_all(std::vector<std::thread>* helpers);

 private:
  struct Cores;
  std::unique_ptr<Cores> cores_;  // null: there is nothing to do
};

}  // namespace kilokv::engine
