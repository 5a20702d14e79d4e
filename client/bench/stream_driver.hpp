// Keeps `in_flight` requests in flight on one session, from one thread. Requests live in slots that are used again. So
// in the steady state a transaction costs its generation and one read of its outcome, and no allocation.
//
// Thread safety: as Driver.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/bench/driver.hpp"
#include "client/bench/history_log.hpp"

namespace kilokv::bench {

class StreamDriver : public Driver {
 public:
  // Requires: `session` and `history` (null: none is kept) outlive it.
  StreamDriver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
               client::Session* session, HistoryLog* history);
  void run() override;

 private:
  struct Slot {
    client::Batch batch;
    std::int64_t start_us = 0;
    std::uint64_t answered = 0;
  };

  void wake() override;
  // Waits for a free slot, at most until the end. Requires: `lock` holds mutex_.
  void wait_for_slot(std::unique_lock<std::mutex>* lock);
  Slot* next_slot();  // a free slot, with its start; null: the run has ended
  void send(Slot* slot);
  void send_rest();
  void submit(Slot* slot);
  void on_progress(Slot* slot, const client::Progress& progress);

  client::Session* session_;
  const std::string session_id_;
  HistoryLog* history_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot*> free_;
  std::int64_t freed_us_ = 0;  // when the first of the free slots became free
  bool stopped_ = false;       // by an error
};

}  // namespace kilokv::bench
