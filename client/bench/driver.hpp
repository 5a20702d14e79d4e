// A source of load: it generates requests, sends them, and counts the answers. There are two kinds. StreamDriver keeps
// many requests in flight from one thread. CallDriver makes one blocking call after the other.
//
// Time: the steady clock, in microseconds. A driver sends until Window::end_us, or until the earlier time that end_at()
// sets. Then it waits for the requests in flight. Rates count the answers between begin_us and end_us. Latencies are
// those of the requests that should have started in that time, whenever they were answered. All answers are counted in
// whole().
//
// Thread safety: one thread calls run(); any thread may call the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "client/bench/pacer.hpp"
#include "client/bench/run_options.hpp"
#include "client/bench/tally.hpp"
#include "engine/workloads/workload.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

struct Window {
  std::int64_t start_us = 0;  // first request
  std::int64_t begin_us = 0;  // of the measured part
  std::int64_t end_us = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  // Sends and counts until the window has ended and all is answered, or until an error makes more requests useless.
  virtual void run() = 0;
  // Nothing is sent or measured from `end_us` on, if that is before the window's end.
  void end_at(std::int64_t end_us);

  Tally measured() const;
  Counts whole() const;
  Tally take_interval();            // since the last call
  std::string first_error() const;  // empty: none

 protected:
  // One of `drivers` equal drivers; `place` is in [0, drivers).
  Driver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
         std::uint32_t drivers);

  std::int64_t end_us() const { return end_us_.load(); }
  // Called when end_us() has become earlier, to wake a thread that sleeps until the old time.
  virtual void wake() {}
  // Appends the next request.
  void generate(client::Batch* batch);
  // Appends the transactions that sent transactions still wait for.
  void generate_rest(client::Batch* batch);
  // Counts transactions that were answered now. Their request should have started at `start_us`.
  void count(const Counts& counts, std::int64_t start_us);
  // Counts a request that ended with an error, and its `missing` transactions without an answer. Returns whether to
  // continue.
  bool count_failure(const client::Error& error, std::uint64_t missing);
  // Open loop: counts the time in which a request was due and all were in flight.
  void count_full(std::int64_t microseconds);
  // Open loop: counts all requests that were due, and those that could not be sent. Each of the latter has waited at
  // least until now, and its latency counts that. Without this, a server that stalls at the end would look fast.
  void count_not_sent();

  const RunOptions options_;
  std::optional<Pacer> pacer_;  // none: closed loop

 private:
  bool measures(std::int64_t time_us) const { return time_us >= window_.begin_us && time_us < end_us(); }

  const Window window_;
  std::atomic<std::int64_t> end_us_;
  engine::Workload workload_;
  std::int64_t last_answer_us_;  // in the measured part, or its begin
  mutable std::mutex mutex_;
  Tally measured_, interval_;
  Counts whole_;
  std::string first_error_;
};

}  // namespace kilokv::bench
