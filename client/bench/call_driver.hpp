// Makes one blocking call after the other; a run has one of these for each request in flight. Used where each call is a
// thing of its own: without batches (--unary), and for histories, which tell of each request how it went.
#pragma once

#include "client/bench/driver.hpp"
#include "client/bench/history_log.hpp"

namespace kilokv::bench {

// All outlive the driver.
struct CallTarget {
  client::Client* client = nullptr;
  client::Session* session = nullptr;  // null: calls without a session
  HistoryLog* history = nullptr;       // null: none is kept; needs a session
};

class CallDriver : public Driver {
 public:
  CallDriver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
             const CallTarget& target);
  void run() override;

 private:
  bool next_start(std::int64_t* start_us);  // waits until the next request is due; false: the run is over
  bool call(std::int64_t start_us);         // returns whether to go on
  client::Expected<client::Results> execute();

  CallTarget target_;
  client::Batch batch_;
};

}  // namespace kilokv::bench
