// SIGTERM and SIGINT: the first asks for a graceful end, the second ends the process at once.
#pragma once

#include <semaphore>
#include <thread>

namespace kilokv::server {

class ShutdownSignal {
 public:
  // Blocks both signals in this thread and all that it starts later. Requires: no other thread runs yet.
  ShutdownSignal();
  // From now on the first signal makes wait() return. Before, it ends the process at once: there is nothing to finish.
  void arm() { armed_.store(true); }
  // Returns the number of the signal.
  int wait();

 private:
  void watch();

  std::atomic<bool> armed_{false};
  std::atomic<int> signal_{0};
  std::binary_semaphore received_{0};
};

}  // namespace kilokv::server
