// Counts the bytes of answers that clients have not taken yet, over all streams of the service.
// Thread safety: all members.
#pragma once

#include <atomic>
#include <cstdint>

namespace kilokv::server {

class AnswerAccount {
 public:
  explicit AnswerAccount(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds `bytes` if the sum is at most bytes_max(). Returns the sum in both cases: a sum above bytes_max() was not
  // kept.
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
