// Makes one call after the other, each of one transaction, without a session (--unary); a run has one of these for each
// call in flight.
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
  bool next_start(std::int64_t* start_us);  // waits until the next request is due; false: the run is over
  bool call(std::int64_t start_us);         // returns whether to go on

  client::Client* client_;
  client::Batch batch_;
  std::mutex mutex_;  // of the sleep until the next request
  std::condition_variable ended_;
};

}  // namespace kilokv::bench
