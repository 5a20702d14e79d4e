// The signals that kilokvd handles. SIGTERM and SIGINT: the first asks for a graceful end, the second ends the process
// at once. SIGHUP, SIGUSR1 and SIGUSR2 never end it: they are handed to a function, which says in the log what they
// mean here. SIGPIPE is ignored: a client or a reader of the log that goes away is no reason to end.
// Thread safety: wait() by one thread; arm() any thread.
#pragma once

#include <functional>
#include <memory>

namespace kilokv::server {

// Blocks the signals in this thread and all that it starts later; they stay pending until a ShutdownSignal takes them.
// Requires: no other thread runs yet. First in main(), or a log rotation during the start would end the process.
void block_signals();

class ShutdownSignal {
 public:
  // `on_other` is called for each signal that does not end the process, by a thread that lives as long as the process.
  // Requires: block_signals() was called.
  explicit ShutdownSignal(std::function<void(int signal)> on_other);
  // From now on the first signal makes wait() return. Before, it ends the process at once: there is nothing to finish.
  void arm();
  // Returns the number of the signal.
  int wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread that watches holds it, too, and outlives this
};

}  // namespace kilokv::server
