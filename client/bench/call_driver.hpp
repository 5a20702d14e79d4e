// Makes one call after the other, each with one transaction, without a session (--unary). A run has one CallDriver for
// each call in flight. Thread safety: as Driver.
#pragma once

#include <condition_variable>
#include <mutex>

#include "client/bench/driver.hpp"

namespace kilokv::bench {

class CallDriver : public Driver {
 public:
  // Requires: `client` outlives it.
  CallDriver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
             client::Client* client);
  void run() override;

 private:
  void wake() override;
  bool next_start(std::int64_t* start_us);  // waits until the next request is due; false: the run has ended
  bool call(std::int64_t start_us);         // returns whether to continue

  client::Client* client_;
  client::Batch batch_;
  std::mutex mutex_;  // for the sleep until the next request
  std::condition_variable ended_;
};

}  // namespace kilokv::bench
