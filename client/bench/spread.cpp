// Role: see spread.hpp.
#include "client/bench/spread.hpp"

#include <algorithm>

namespace kilokv::bench {

Summary summarize(std::vector<double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size(), middle = count / 2;
  summary.median = count % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  const std::size_t left_out = count >= kTrimFrom ? 1 : 0;
  summary.low = values[left_out];
  summary.high = values[count - 1 - left_out];
  summary.spread = summary.median > 0 ? (summary.high - summary.low) / summary.median : 1;
  return summary;
}

}  // namespace kilokv::bench
