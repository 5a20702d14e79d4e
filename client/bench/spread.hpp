// Sums up repeated measurements of one thing. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace kilokv::bench {

// The number of values from which on the smallest and the largest one are left out of low and high. So one disturbed
// run in five does not count.
inline constexpr std::size_t kTrimFrom = 5;

struct Summary {
  double median = 0;         // of all values; of an even number, the mean of the middle two
  double low = 0, high = 0;  // the smallest and the largest value that count
  double spread = 0;         // (high - low) / median; 1 if the median is 0
};

// Empty values give zeros.
Summary summarize(std::vector<double> values);

}  // namespace kilokv::bench
