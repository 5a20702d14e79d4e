// Limits how many transactions of `kilo` may be between their start and their end. The limit is a number, or it adapts.
// To adapt it, each group of lanes looks at its own last few attempts. If half of them failed, it halves the limit. If
// at most one in 8 failed, it raises the limit by a quarter. It changes the limit only if no group has changed it since
// the first of these attempts. So when many groups see the same, the limit changes once. A lowered limit applies to
// transactions that start from then on.
//
// While the limit is at least the number of threads, nothing is counted, because each thread has at most one
// transaction. A transaction that is refused holds nothing, and waits for no other one in particular. Transactions that
// are let in wait only for others that are let in.
//
// Thread safety: each object belongs to one thread. Source: KILO TM, section 4.6. The paper leaves the adaptive limit
// to future work.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

enum class LimitChange : std::uint8_t { none, lowered, raised };

template <Platform P, class Rules>
class ConcurrencyLimit {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE ConcurrencyLimit(P& platform, const KiloArguments<Space>& arguments)
      : p_(platform), a_(arguments) {}

  KILOKV_HOST_DEVICE bool begin() {
    const std::uint64_t limit = now();
    is_counted_ = limit < p_.threads() && Rules::kKeepsLimit;
    if (!is_counted_) return true;
    const auto active = word(kKiloActive);
    std::uint64_t expected = p_.load(active, Order::relaxed, Scope::device);
    while (expected < limit) {
      const std::uint64_t found =
          p_.compare_exchange(active, expected, expected + 1, Rules::kBeginOrder, Scope::device);
      if (found == expected) return true;
      expected = found;
    }
    return false;
  }
  KILOKV_HOST_DEVICE void end() {
    if (is_counted_) p_.fetch_add(word(kKiloActive), ~std::uint64_t{0}, Rules::kLeaveLimitOrder, Scope::device);
  }
  // `ended`, `failed`: whether an attempt of this lane has ended just now, and whether it failed. Every lane of the
  // group calls this, in step.
  KILOKV_HOST_DEVICE LimitChange learn(bool ended, bool failed) {
    if (a_.kilo_tuning.concurrency_limit != 0) return LimitChange::none;
    attempts_ += bits_in(p_.ballot(ended));
    failures_ += bits_in(p_.ballot(failed));
    if (attempts_ < kWindow) return LimitChange::none;
    const LimitChange change = p_.lane() == 0 ? adapt() : LimitChange::none;
    attempts_ = failures_ = 0;
    seen_ = p_.load(word(kKiloLimit), Order::relaxed, Scope::device);
    return change;
  }

 private:
  static constexpr std::uint32_t kWindow = 8;  // the smallest number of attempts to adapt by

  KILOKV_HOST_DEVICE auto word(KiloWord i) const { return a_.kilo.words + std::uint64_t{kKiloStride} * i; }
  KILOKV_HOST_DEVICE std::uint64_t now() const {
    if (a_.kilo_tuning.concurrency_limit != 0) return a_.kilo_tuning.concurrency_limit;
    const std::uint64_t limit = p_.load(word(kKiloLimit), Order::relaxed, Scope::device);
    return limit == 0 ? p_.threads() : limit;
  }
  KILOKV_HOST_DEVICE LimitChange adapt() const {
    const std::uint64_t limit = seen_ == 0 ? p_.threads() : seen_;
    const bool lowers = 2 * failures_ >= attempts_ && limit > 1;
    const bool raises = kWindow * failures_ <= attempts_ && limit < p_.threads();
    if (!lowers && !raises) return LimitChange::none;
    const std::uint64_t after = lowers ? limit / 2 : limit + (limit + 3) / 4;
    if (p_.compare_exchange(word(kKiloLimit), seen_, after, Order::relaxed, Scope::device) != seen_) {
      return LimitChange::none;
    }
    return lowers ? LimitChange::lowered : LimitChange::raised;
  }

  P& p_;
  const KiloArguments<Space>& a_;
  bool is_counted_ = false;  // the current transaction is counted
  std::uint64_t seen_ = 0;   // the limit's word when these attempts began
  std::uint32_t attempts_ = 0, failures_ = 0;
};

}  // namespace kilokv::engine
