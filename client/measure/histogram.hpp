// A latency histogram with a bounded relative error, after HdrHistogram (Gil Tene). The range is divided at the powers
// of two, and each part has linear buckets. So a value is known to three significant digits, and to record it takes an
// index computation and an increment.
//
// Values are microseconds, 0 to kValueMax. Larger values count as kValueMax. max() is exact.
//
// Thread safety: none. Each thread has its own histogram; they are merged at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace kilokv::bench {

class Histogram {
 public:
  static constexpr std::int64_t kValueMax = (std::int64_t{1} << 36) - 1;  // 19 hours

  Histogram();
  void record(std::int64_t value, std::uint64_t count = 1);
  void merge(const Histogram& other);
  void clear();

  std::uint64_t count() const { return count_; }
  std::int64_t max() const { return max_; }
  double mean() const;
  // The smallest recorded value, to three digits, such that at least `fraction` of all values are not larger. 0 if
  // empty. Requires: 0 <= fraction <= 1.
  std::int64_t quantile(double fraction) const;
  // How many values are in each step of a logarithmic scale, without the empty steps. Step k holds the values above
  // 2^((k-1)/steps) and up to 2^(k/steps), as far as three digits tell; step 0 also holds 0. `steps`: in each doubling.
  std::map<int, std::uint64_t> counts_by_step(int steps) const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace kilokv::bench
