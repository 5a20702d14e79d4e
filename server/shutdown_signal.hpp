// The signals that kilokvd handles. The first SIGTERM or SIGINT asks for a graceful end. The second one ends the
// process at once. SIGHUP, SIGUSR1 and SIGUSR2 never end the process. They are passed to a function, which logs what
// they mean here. SIGPIPE is ignored, so that the server goes on when a client or a reader of the log goes away. Thread
// safety: one thread calls wait(). Any thread may call arm().
#pragma once

#include <functional>
#include <memory>

namespace kilokv::server {

// Blocks the signals in this thread and in all threads that it starts later. The signals stay pending until a
// ShutdownSignal takes them. Requires: no other thread runs yet. Call it first in main(). Otherwise a log rotation
// during the start would end the process.
void block_signals();

class ShutdownSignal {
 public:
  // A thread that lives as long as the process calls `on_other` for each signal that does not end the process.
  // Requires: block_signals() was called.
  explicit ShutdownSignal(std::function<void(int signal)> on_other);
  // After this call, the first signal makes wait() return. Before this call, it ends the process at once, because there
  // is no accepted work yet.
  void arm();
  // Returns the number of the signal.
  int wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the watching thread, which outlives this object
};

}  // namespace kilokv::server
