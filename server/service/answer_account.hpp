// What the service holds of answers that clients have not taken yet, over all streams.
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace kilokv::server {

class AnswerAccount {
 public:
  explicit AnswerAccount(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds `bytes`, unless that would be more than the maximum. Returns the sum: nothing was added where it is more than
  // bytes_max().
  std::uint64_t charge(std::uint64_t bytes) {
    const std::uint64_t sum = unsent_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (sum > bytes_max_) release(bytes);
    return sum;
  }
  void release(std::uint64_t bytes) { unsent_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t unsent_bytes() const { return unsent_bytes_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> unsent_bytes_{0};
};

}  // namespace kilokv::server
