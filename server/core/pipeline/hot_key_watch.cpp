#include "server/core/pipeline/hot_key_watch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

// The weight of a new use may grow to two to the power of this. Then all weights are scaled.
constexpr double kHalfLivesMax = 64;
constexpr double kLeastPerSecond = 0.01;  // what fades below this is not shown
constexpr std::uint64_t kStrideMax = std::uint64_t{1} << 32;

constexpr bool writes(engine::OpKind kind) { return !engine::returns_values(kind); }

// Ranges have ids of their own. No key has the id of a range, but with the probability of a collision of hashes.
KeyId range_id(std::string_view from, const engine::KeyHashSecret& secret) {
  KeyId id = engine::hash_key(from, secret);
  id.high = ~id.high;
  return id;
}

}  // namespace

void HotKeyWatch::note_batch(const engine::TransactionColumns& columns, const engine::BatchResults& results,
                             TimeUs now_us, const engine::KeyHashSecret& secret) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  adapt(now_us);
  advance(now_us);
  const double growth_now = growth(now_us);
  const std::size_t n = columns.size();
  std::uint64_t t = skip_;
  for (; t < n; t += stride_ == 1 ? 1 : 1 + next_random() % (2 * stride_ - 1)) {
    // A sudden load: the next adapt() would come too late.
    if (uses_ > 2 * kUsesPerInterval && stride_ < kStrideMax) {
      stride_ *= 2;
      uses_ = kUsesPerInterval;
    }
    weight_ = growth_now * static_cast<double>(stride_);
    note_transaction(columns, results, t, secret);
  }
  skip_ = t - n;
}

// Chooses the stride so that the next interval has about kUsesPerInterval, if it is like this one.
void HotKeyWatch::adapt(TimeUs now_us) {
  if (!has_begun_) {
    has_begun_ = true;
    begun_us_ = reference_us_ = interval_us_ = now_us;
  }
  const DurationUs passed = now_us - interval_us_;
  if (passed < kIntervalUs) return;
  const double intervals = static_cast<double>(passed) / static_cast<double>(kIntervalUs);
  const double all = static_cast<double>(uses_) * static_cast<double>(stride_) / intervals;
  const double wanted = std::ceil(all / static_cast<double>(kUsesPerInterval));
  stride_ = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, static_cast<double>(kStrideMax)));
  skip_ = std::min(skip_, 2 * stride_);  // after a busy time
  uses_ = 0;
  interval_us_ = now_us;
}

double HotKeyWatch::growth(TimeUs now_us) const {
  return std::exp2(static_cast<double>(now_us - reference_us_) / static_cast<double>(kHotKeysHalfLifeUs));
}

// Keeps the weights within the range of numbers.
void HotKeyWatch::advance(TimeUs now_us) {
  if (now_us - reference_us_ < static_cast<DurationUs>(kHalfLivesMax) * kHotKeysHalfLifeUs) return;
  for (KeySketch& sketch : sketches_) sketch.scale(1 / growth(now_us));
  reference_us_ = now_us;
}

// xorshift64 (Marsaglia, "Xorshift RNGs", 2003): no client gains anything from knowing it.
std::uint64_t HotKeyWatch::next_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void HotKeyWatch::note_transaction(const engine::TransactionColumns& columns, const engine::BatchResults& results,
                                   std::size_t t, const engine::KeyHashSecret& secret) {
  const double weight = weight_;
  const std::uint32_t guards_begin = columns.guard_begin(t), guards_end = columns.guard_end[t];
  const std::uint32_t step = std::max(1U, (guards_end - guards_begin) / kUsesOfTransaction);
  for (std::uint32_t g = guards_begin + static_cast<std::uint32_t>(next_random() % step); g < guards_end; g += step) {
    note_guard(KeyUse::read, columns, g, weight * step, secret);
    if (columns.guard_other[g] != engine::kNone) note_key(KeyUse::read, columns, columns.guard_other[g], weight * step);
  }
  const auto outcome = static_cast<engine::Outcome>(results.outcome[t]);
  const auto failed_in = static_cast<engine::FailedIn>(results.failed_in[t]);
  const std::uint32_t failed = guards_begin + results.failed_index[t];
  if (outcome == engine::Outcome::postponed) return note_guard(KeyUse::wait, columns, failed, weight, secret);
  const bool guard_was_false = outcome == engine::Outcome::guard_failed || outcome == engine::Outcome::wait_expired;
  if (guard_was_false) note_guard(KeyUse::failed_guard, columns, failed, weight, secret);
  if (columns.ran_else(t, outcome) || failed_in == engine::FailedIn::else_ops) {
    note_ops(columns, columns.then_end[t], columns.else_end[t], secret);
  } else if (failed_in != engine::FailedIn::guards) {
    note_ops(columns, columns.then_begin(t), columns.then_end[t], secret);
  }
}

void HotKeyWatch::note_ops(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                           const engine::KeyHashSecret& secret) {
  const std::uint32_t step = std::max(1U, (end - begin) / kUsesOfTransaction);
  for (std::uint32_t op = begin + static_cast<std::uint32_t>(next_random() % step); op < end; op += step) {
    const auto kind = static_cast<engine::OpKind>(columns.op_kind[op]);
    const KeyUse use = writes(kind) ? KeyUse::write : KeyUse::read;
    if (engine::known_uses_range(kind)) {
      note_range(use, columns, columns.op_key[op], weight_ * step, secret);
    } else {
      note_key(use, columns, columns.op_key[op], weight_ * step);
    }
  }
}

void HotKeyWatch::note_guard(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t guard, double weight,
                             const engine::KeyHashSecret& secret) {
  if (engine::uses_range(static_cast<engine::GuardKind>(columns.guard_kind[guard]))) {
    note_range(use, columns, columns.guard_key[guard], weight, secret);
  } else if (columns.guard_key[guard] != engine::kNone) {
    note_key(use, columns, columns.guard_key[guard], weight);
  }
}

void HotKeyWatch::note_key(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t key, double weight) {
  ++uses_;
  sketch(use).add(columns.key_id[key], columns.key(key), /*is_range=*/false, weight);
}

void HotKeyWatch::note_range(KeyUse use, const engine::TransactionColumns& columns, std::uint32_t range, double weight,
                             const engine::KeyHashSecret& secret) {
  ++uses_;
  const std::string_view from = columns.range_from(range);
  sketch(use).add(range_id(from, secret), from, /*is_range=*/true, weight);
}

// With the rate r, the weights of one second at a time s ago sum to r x 2^(-s / half-life). From the first batch until
// now, these are r x half-life / ln 2 x (1 - 2^(-time / half-life)).
HotKeys HotKeyWatch::top(KeyUse use, std::size_t limit, TimeUs now_us) const {
  const std::lock_guard lock(mutex_);
  HotKeys hot;
  if (!has_begun_) return hot;
  const KeySketch& sketch = sketches_[static_cast<std::size_t>(use)];
  constexpr double kHalfLifeSeconds = static_cast<double>(kHotKeysHalfLifeUs) * 1e-6;
  // Less than a second says little about a rate.
  const double seconds = std::max(1.0, static_cast<double>(now_us - begun_us_) * 1e-6);
  const double whole = kHalfLifeSeconds / std::numbers::ln2 * (1 - std::exp2(-seconds / kHalfLifeSeconds));
  const double factor = 1 / (growth(now_us) * whole);
  hot.per_second = sketch.total() * factor;
  hot.sampled_one_in = stride_;
  for (const KeySketch::Entry& entry : sketch.entries()) {
    const double rate = entry.weight * factor;
    if (rate >= kLeastPerSecond) hot.keys.push_back({entry.key, entry.is_range, rate, entry.error * factor});
  }
  const auto more = [](const HotKey& a, const HotKey& b) {
    return a.per_second != b.per_second ? a.per_second > b.per_second : a.key < b.key;
  };
  std::sort(hot.keys.begin(), hot.keys.end(), more);
  if (hot.keys.size() > limit) hot.keys.resize(limit);
  return hot;
}

}  // namespace kilokv::server
