// How much may come from an address in a time: a token bucket for each address. What it counts are new connections,
// cancelled calls, or bytes.
//
// What is counted late may have come evenly in a long time, while the bucket was full. So a second bucket takes what
// the first has no room for. Only what is counted late may come from the second.
//
// Thread safety: none; the caller locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace kilokv::server {

class AddressRate {
 public:
  // `at_once`: so much may come at once after a pause.
  AddressRate(double per_second, double at_once) : per_second_(per_second), at_once_(at_once) {}

  // Counts this amount of the address, if it may come now.
  bool take(const std::string& address, double amount, std::int64_t now_ms) {
    return take_late(address, amount, 0, now_ms);
  }

  // The same for what came in the last `late_ms`.
  bool take_late(const std::string& address, double amount, std::int64_t late_ms, std::int64_t now_ms) {
    Bucket& bucket = buckets_.try_emplace(address, Bucket{at_once_, spare_max(), now_ms}).first->second;
    bucket = filled(bucket, now_ms);
    const double missing = std::max(0.0, amount - bucket.left);
    if (missing > std::min(bucket.spare, in(late_ms))) return false;
    bucket.left -= amount - missing;
    bucket.spare -= missing;
    return true;
  }

  // What may come of the address now.
  double left(const std::string& address, std::int64_t now_ms) const {
    const auto found = buckets_.find(address);
    return found == buckets_.end() ? at_once_ : filled(found->second, now_ms).left;
  }

  // Forgets the addresses that are like new ones.
  void forget_quiet_ones(std::int64_t now_ms) {
    std::erase_if(buckets_, [&](const auto& entry) {
      const Bucket bucket = filled(entry.second, now_ms);
      return bucket.left >= at_once_ && bucket.spare >= spare_max();
    });
  }
  std::size_t addresses() const { return buckets_.size(); }

 private:
  static constexpr std::int64_t kSpareMs = 10000;
  struct Bucket {
    double left, spare;
    std::int64_t at_ms;
  };
  double in(std::int64_t ms) const { return per_second_ * static_cast<double>(ms) * 1e-3; }
  double spare_max() const { return in(kSpareMs); }
  Bucket filled(const Bucket& bucket, std::int64_t now_ms) const {
    const double left = bucket.left + in(now_ms - bucket.at_ms);
    const double over = std::max(0.0, left - at_once_);
    return {left - over, std::min(spare_max(), bucket.spare + over), now_ms};
  }

  const double per_second_, at_once_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace kilokv::server
