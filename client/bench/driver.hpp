// A source of load: generates requests, sends them, counts the answers. Two kinds: StreamDriver keeps many requests in
// flight from one thread; CallDriver makes one blocking call after the other.
//
// Time: the steady clock, microseconds. A driver sends until Window::end_us, or until end_at() says that it is to end
// earlier, and then waits for what is in flight. Rates
// are of the answers between begin_us and end_us, latencies of the requests that should have started between them,
// whenever they were answered; all answers are counted. Thread safety: run() by one thread; the rest from any.
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
  // Sends and counts until the window ends, all is answered, or an error says that more would be useless.
  virtual void run() = 0;
  // Nothing is sent or measured from `end_us` on, if that is earlier than the window's end.
  void end_at(std::int64_t end_us);

  Tally measured() const;
  Counts whole() const;
  Tally take_interval();            // since the last call
  std::string first_error() const;  // empty: none

 protected:
  // One of `drivers` equal ones; `place` in [0, drivers).
  Driver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
         std::uint32_t drivers);

  std::int64_t end_us() const { return end_us_.load(); }
  // end_us() has become earlier: whoever sleeps until then has to look again.
  virtual void wake() {}
  // Appends the next request.
  void generate(client::Batch* batch);
  // Appends what sent transactions still wait for.
  void generate_rest(client::Batch* batch);
  // Transactions answered now, of a request that should have started at `start_us`.
  void count(const Counts& counts, std::int64_t start_us);
  // A request that ended with an error and `missing` transactions without an answer.
  // Returns whether to go on.
  bool count_failure(const client::Error& error, std::uint64_t missing);
  // Open loop: what was due and could not be sent. It has waited until now at least, and its latency says so: left out,
  // a server that stalls at the end would look fast.
  void count_not_sent();

  const RunOptions options_;
  std::optional<Pacer> pacer_;  // none: closed loop

 private:
  bool measures(std::int64_t time_us) const { return time_us >= window_.begin_us && time_us < end_us(); }

  const Window window_;
  std::atomic<std::int64_t> end_us_;
  engine::Workload workload_;
  mutable std::mutex mutex_;
  Tally measured_, interval_;
  Counts whole_;
  std::string first_error_;
};

}  // namespace kilokv::bench
