// How many transactions of `kilo` may be between their start and their end: a number, or one that adapts. Each thread
// looks at its own last few attempts; where half of them failed it halves the limit, where hardly one did it raises it
// by a quarter. A lowered limit holds for those who start from then on.
//
// While the limit is not below the number of threads nothing is counted, for each thread has one transaction at most.
// Who is refused holds nothing and waits for nobody in particular; those who are let in wait only for others who are.
//
// Thread safety: an object is one thread's. Source: KILO TM, section 4.6; the adaptive limit is what it leaves to
// future work.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/ticketed_arguments.hpp"

namespace kilokv::engine {

enum class LimitChange : std::uint8_t { none, lowered, raised };

template <Platform P, class Rules>
class ConcurrencyLimit {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE ConcurrencyLimit(P& platform, const TicketedArguments<Space>& arguments)
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
  KILOKV_HOST_DEVICE LimitChange end(bool failed) {
    if (is_counted_) p_.fetch_add(word(kKiloActive), ~std::uint64_t{0}, Rules::kLeaveLimitOrder, Scope::device);
    if (a_.tuning.kilo.concurrency_limit != 0) return LimitChange::none;
    failed_ += failed ? 1 : 0;
    if (++attempts_ < kWindow) return LimitChange::none;
    const std::uint32_t failures = failed_;
    attempts_ = failed_ = 0;
    return adapt(failures);
  }

 private:
  static constexpr std::uint32_t kWindow = 8;  // attempts

  KILOKV_HOST_DEVICE auto word(KiloWord i) const { return a_.kilo.words + std::uint64_t{kKiloStride} * i; }
  KILOKV_HOST_DEVICE std::uint64_t now() const {
    if (a_.tuning.kilo.concurrency_limit != 0) return a_.tuning.kilo.concurrency_limit;
    const std::uint64_t limit = p_.load(word(kKiloLimit), Order::relaxed, Scope::device);
    return limit == 0 ? p_.threads() : limit;
  }
  KILOKV_HOST_DEVICE LimitChange adapt(std::uint32_t failures) const {
    const std::uint64_t before = p_.load(word(kKiloLimit), Order::relaxed, Scope::device);
    const std::uint64_t limit = before == 0 ? p_.threads() : before;
    const bool lowers = 2 * failures >= kWindow && limit > 1;
    const bool raises = failures <= 1 && limit < p_.threads();
    if (!lowers && !raises) return LimitChange::none;
    const std::uint64_t after = lowers ? limit / 2 : limit + (limit + 3) / 4;
    // Of those who come to it together one is enough.
    if (p_.compare_exchange(word(kKiloLimit), before, after, Order::relaxed, Scope::device) != before) {
      return LimitChange::none;
    }
    return lowers ? LimitChange::lowered : LimitChange::raised;
  }

  P& p_;
  const TicketedArguments<Space>& a_;
  bool is_counted_ = false;  // the transaction at hand
  std::uint32_t attempts_ = 0, failed_ = 0;
};

}  // namespace kilokv::engine
