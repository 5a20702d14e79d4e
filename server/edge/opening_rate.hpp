// How fast connections of one address may come (a token bucket for each address). A connection that ends at once leaves
// its calls to the server, and the limit of open connections does not count it.
//
// Thread safety: none; the caller locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace kilokv::server {

class OpeningRate {
 public:
  // `at_once`: so many may come at once after a pause; at least `per_second`.
  OpeningRate(std::uint32_t per_second, std::uint32_t at_once)
      : per_second_(per_second), at_once_(std::max(per_second, at_once)) {}

  // Counts one connection of the address, if it may come now.
  bool take(const std::string& address, std::int64_t now_ms) {
    Bucket& bucket = buckets_.try_emplace(address, Bucket{at_once_, now_ms}).first->second;
    bucket.left = left(bucket, now_ms);
    bucket.at_ms = now_ms;
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
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
