// Role: see call_driver.hpp.
#include "client/bench/call_driver.hpp"

#include <utility>

#include "client/measure/clock.hpp"

namespace kilokv::bench {

CallDriver::CallDriver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
                       client::Client* client)
    : Driver(options, std::move(workload), window, place, options.connections * options.in_flight), client_(client) {}

void CallDriver::run() {
  std::int64_t start_us = 0;
  while (next_start(&start_us) && call(start_us)) {
  }
  count_not_sent();
}

void CallDriver::wake() {
  const std::lock_guard lock(mutex_);
  ended_.notify_all();
}

bool CallDriver::next_start(std::int64_t* start_us) {
  if (pacer_) {
    if (pacer_->due_us() >= end_us()) return false;
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, at_steady_us(pacer_->due_us()), [this] { return steady_now_us() >= end_us(); });
  }
  const std::int64_t now_us = steady_now_us();
  if (now_us >= end_us()) return false;
  *start_us = pacer_ ? pacer_->take() : now_us;
  return true;
}

bool CallDriver::call(std::int64_t start_us) {
  batch_.clear();
  generate(&batch_);
  client::CallOptions options;
  options.timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us);
  const auto results = client_->execute(batch_, options);
  if (!results) return count_failure(results.error(), batch_.size());
  Counts counts;
  counts.requests = 1;
  counts.sent = batch_.size();
  for (std::size_t i = 0; i < results->size(); ++i) ++counts.outcomes[static_cast<std::size_t>(results->outcome(i))];
  count(counts, start_us);
  return true;
}

}  // namespace kilokv::bench
