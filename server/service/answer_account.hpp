// What the service holds of answers that clients have not taken yet, over all streams.
// Thread safety: all of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace kilokv::server {

class AnswerAccount {
 public:
  explicit AnswerAccount(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds `bytes`, unless that would be more than the maximum.
  bool charge(std::uint64_t bytes) {
    if (unsent_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) return true;
    release(bytes);
    return false;
  }
  void release(std::uint64_t bytes) { unsent_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t bytes_max() const { return bytes_max_; }
  std::uint64_t unsent_bytes() const { return unsent_bytes_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> unsent_bytes_{0};
};

}  // namespace kilokv::server
