// How much may come from an address in a time: a token bucket for each address. What it counts are new connections,
// cancelled calls, or bytes.
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
    Bucket& bucket = buckets_.try_emplace(address, Bucket{at_once_, now_ms}).first->second;
    bucket.left = left(bucket, now_ms);
    bucket.at_ms = now_ms;
    if (bucket.left < amount) return false;
    bucket.left -= amount;
    return true;
  }

  // What may come of the address now.
  double left(const std::string& address, std::int64_t now_ms) const {
    const auto found = buckets_.find(address);
    return found == buckets_.end() ? at_once_ : left(found->second, now_ms);
  }

  // Forgets the addresses that are like new ones.
  void forget_quiet_ones(std::int64_t now_ms) {
    std::erase_if(buckets_, [&](const auto& entry) { return left(entry.second, now_ms) >= at_once_; });
  }
  std::size_t addresses() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left;
    std::int64_t at_ms;
  };
  double left(const Bucket& bucket, std::int64_t now_ms) const {
    return std::min(at_once_, bucket.left + per_second_ * static_cast<double>(now_ms - bucket.at_ms) * 1e-3);
  }

  const double per_second_, at_once_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace kilokv::server
