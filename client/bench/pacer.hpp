// Open-loop arrivals at a fixed rate. Request n is due at start + n / rate, whatever happened to the requests before
// it, and its latency counts from then. So a stalled server is charged for every request that should have been sent in
// that time (no coordinated omission).
//
// Thread safety: none. The caller supplies the time.
#pragma once

#include <cstdint>

namespace kilokv::bench {

class Pacer {
 public:
  // Requires: requests_per_s > 0.
  Pacer(std::int64_t start_us, double requests_per_s) : start_us_(start_us), interval_us_(1e6 / requests_per_s) {}

  // The time at which the next request is due. It stays due until it is taken.
  std::int64_t due_us() const {
    return start_us_ + static_cast<std::int64_t>(static_cast<double>(taken_) * interval_us_);
  }
  // Takes the next request. Returns the start from which its latency counts.
  std::int64_t take() {
    const std::int64_t due = due_us();
    ++taken_;
    return due;
  }
  std::uint64_t taken() const { return taken_; }

 private:
  std::int64_t start_us_;
  double interval_us_;
  std::uint64_t taken_ = 0;
};

}  // namespace kilokv::bench
