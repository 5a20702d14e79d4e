// Serves all watches, on a thread of its own with a low priority. Each watch has its turn, and in its turn it reads a
// bounded part of the log. It reads the next part when its client has taken the last one. So a watch that catches up
// over a long log delays neither the pipeline nor the other watches for long, and a client that is slow only falls
// behind.
//
// Thread safety: all members.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kilokv/v1/kilokv.pb.h"
#include "server/core/reads/watch_cursor.hpp"
#include "server/service/call_environment.hpp"

namespace kilokv::server {

class WatchCall;

class WatchStreamer {
 public:
  explicit WatchStreamer(CallEnvironment* environment) : environment_(environment) {}
  ~WatchStreamer() { close(); }

  // Takes a call whose request has come. UNAVAILABLE: the server stops.
  Status add(std::shared_ptr<WatchCall> call);
  // Something about a call has changed. Takes no lock that is held while a call is used.
  void wake() { bell_->ring(); }
  // Ends the thread, and lets go of the log. No call is taken after this.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  // What wakes the thread. Work that waits for a batch holds it, and may outlive the streamer.
  class Bell {
   public:
    void ring();
    // Returns true when it has rung since the last call, and false at the time.
    bool wait_until(Clock::time_point time);

   private:
    std::mutex mutex_;
    std::condition_variable rung_;
    bool has_rung_ = false;
  };
  struct Watch {
    std::shared_ptr<WatchCall> call;
    std::unique_ptr<WatchCursor> cursor;  // null: it has not begun
    Clock::time_point sent;               // when its last answer was sent
    bool announced = false;               // the first answer was sent
  };

  void serve();
  void ring_after(BatchNumber batch);
  // Gives the watch its turn. Returns whether it has more to do at once. Sets `ended`.
  bool turn(Watch* watch, bool* ended);
  Status begin(Watch* watch, Database* database);
  Status advance(Watch* watch, Database* database, BatchNumber through, bool* has_more) const;
  static void send(Watch* watch, const Database& database, v1::WatchResponse* answer);

  CallEnvironment* const environment_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::mutex mutex_;    // of these:
  std::thread thread_;  // from the first call on
  bool stopping_ = false;
  std::vector<std::shared_ptr<WatchCall>> new_;
  // Only the thread uses these.
  std::unique_ptr<LogReader> reader_;  // of all watches, so that they share what was read; null: none has begun
  std::list<Watch> watches_;
  BatchNumber waits_for_ = 0;  // the bell rings when this batch is answered
};

}  // namespace kilokv::server
