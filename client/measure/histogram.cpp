// Role: see histogram.hpp. Bucket b > 0 covers [2^(b+10), 2^(b+11)) in 1024 steps of 2^b: at most 0.1% wide each.
#include "client/measure/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kilokv::bench {
namespace {

constexpr int kStepBits = 10;
constexpr int kValueBits = 36;
constexpr std::size_t kBuckets = (kValueBits - kStepBits + 1) << kStepBits;

std::size_t index_of(std::int64_t value) {
  const auto v = static_cast<std::uint64_t>(value);
  const int shift = std::max(0, static_cast<int>(std::bit_width(v)) - kStepBits - 1);
  return (static_cast<std::size_t>(shift) << kStepBits) + (v >> shift);
}

std::int64_t highest_value_of(std::size_t index) {
  const std::size_t shift = index < (2u << kStepBits) ? 0 : (index >> kStepBits) - 1;
  const std::size_t step = index - (shift << kStepBits);
  return static_cast<std::int64_t>(((step + 1) << shift) - 1);
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::record(std::int64_t value, std::uint64_t count) {
  if (count == 0) return;
  value = std::clamp<std::int64_t>(value, 0, kValueMax);
  buckets_[index_of(value)] += count;
  count_ += count;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(count);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

void Histogram::clear() {
  std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = 0;
  max_ = 0;
  sum_ = 0;
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

std::int64_t Histogram::quantile(double fraction) const {
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets && count_ != 0; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(highest_value_of(i), max_);
  }
  return max_;
}

std::map<int, std::uint64_t> Histogram::counts_by_step(int steps) const {
  std::map<int, std::uint64_t> counts;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    const auto value = static_cast<double>(std::max<std::int64_t>(1, highest_value_of(i)));
    counts[static_cast<int>(std::ceil(std::log2(value) * steps - 1e-9))] += buckets_[i];
  }
  return counts;
}

}  // namespace kilokv::bench
