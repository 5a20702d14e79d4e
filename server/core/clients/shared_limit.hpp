// A limit on what all clients hold together of one thing, such as queued bytes or sessions.
//
// Three rules keep room for others:
// - No client may hold more than kShare times what is left free. So a greedy client alone gets four fifths. This is the
//   dynamic threshold of Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
//   IEEE/ACM Transactions on Networking 6(2), 1998.
// - The last eighth (kReserve) is for clients that hold little: at most one part in kLittle, or one item. So greedy
//   clients cannot fill the limit, however many they are and in whatever order they come.
// - Who comes first, when nobody holds anything, may take everything in one step.
//
// Thread safety: all members. Under contention a client may pass its share by what it charges itself at the same
// moment. charge() never passes the limit, and what it refuses is never counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/base/status.hpp"

namespace kilokv::server {

// What one client, or all clients, hold of one thing.
using Held = std::atomic<std::uint64_t>;

class SharedLimit {
 public:
  static constexpr std::uint64_t kShare = 4, kReserve = 8, kLittle = 4096;

  // How a refusal names the thing that is full. The texts outlive the limit.
  struct Name {
    ErrorReason reason;
    const char* field;
    const char* unit;  // with a space before it, such as " bytes"
    const char* setting;
    std::int64_t retry_after_us;
  };

  SharedLimit(std::uint64_t max, const Name& name) : max_(max), name_(name) {}

  // Adds `amount` to the sum of all and to `client`, or to neither. `client`: null for work that has no client.
  // `raised_max`: used instead of the limit where it is higher. RESOURCE_EXHAUSTED: the limit would be passed, or the
  // client has its share.
  Status charge(Held* client, std::uint64_t amount, std::uint64_t raised_max = 0);
  // Adds `amount` without a check, for what had its room before.
  void add(Held* client, std::uint64_t amount);
  // Gives back what charge() or add() added.
  void release(Held* client, std::uint64_t amount);

  // The most that a client may hold of a limit of which all clients together hold `sum`.
  static std::uint64_t share_of_client(std::uint64_t max, std::uint64_t sum) {
    const std::uint64_t little = std::max<std::uint64_t>(max / kLittle, 1);
    const std::uint64_t free = max - std::min(max, sum);
    return free < max / kReserve ? little : std::max(kShare * free, little);
  }

  std::uint64_t max() const { return max_; }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  Status refusal(std::uint64_t most, std::uint64_t sum) const;
  Status refusal_of_client(std::uint64_t most, std::uint64_t of_client) const;

  const std::uint64_t max_;
  const Name name_;
  Held held_{0};
};

}  // namespace kilokv::server
