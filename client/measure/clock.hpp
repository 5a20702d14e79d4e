// The clock of the load tester and the demo: monotonic, in microseconds. Thread safety: any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace kilokv::bench {

inline std::int64_t steady_now_us() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now().time_since_epoch()).count();
}
inline std::chrono::steady_clock::time_point at_steady_us(std::int64_t microseconds) {
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(microseconds));
}

}  // namespace kilokv::bench
