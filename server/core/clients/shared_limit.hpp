// A limit on what all clients hold together of one thing, such as queued bytes or sessions.
//
// Four rules keep room for others:
// - No client may hold more than kShare times what is left free, and neither may all connections of one address
//   together. So a greedy client alone, or a greedy address, gets four fifths. This is the dynamic threshold of
//   Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on
//   Networking 6(2), 1998.
// - A client that holds little may go on beyond this: at most one part in kLittle, or one item. The last eighth
//   (kReserve) is for such clients alone.
// - The last sixteenth (half of the reserve) is for such clients of addresses that hold little, too: one part in
//   kLittleAddress at most. So greedy connections cannot fill the limit. It does not matter how many an address has, or
//   in which order they come.
// - Who comes first, when nobody holds anything, may take everything in one step.
//
// Thread safety: all members. Under contention a client may pass its share by what it charges itself at the same
// moment. charge() never passes the limit, and what it refuses is never counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "engine/base/status.hpp"

namespace kilokv::server {

// What one client holds of one thing. Where the client is a connection, its address holds it, too.
class Held {
 public:
  // `address`: what the address of a connection holds. It lives as long as this.
  explicit Held(Held* address = nullptr) : address_(address != nullptr ? address : this) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // For an amount above 0, add() returns whether it held nothing before, and subtract() whether nothing is left.
  bool add(std::uint64_t amount) {
    address_->all_.fetch_add(amount, std::memory_order_relaxed);
    return own_.fetch_add(amount, std::memory_order_relaxed) == 0;
  }
  bool subtract(std::uint64_t amount) {
    address_->all_.fetch_sub(amount, std::memory_order_relaxed);
    return own_.fetch_sub(amount, std::memory_order_relaxed) == amount;
  }
  std::uint64_t load() const { return own_.load(std::memory_order_relaxed); }
  // What all connections of the same address hold.
  std::uint64_t of_address() const { return address_->all_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> own_{0};
  std::atomic<std::uint64_t> all_{0};  // of this and of those that name this as their address
  Held* const address_;
};

class SharedLimit {
 public:
  static constexpr std::uint64_t kShare = 4, kReserve = 8, kLittle = 4096, kLittleAddress = 512;

  // What counts as little for a limit of bytes, however low the limit is: one usual item must fit.
  static constexpr std::uint64_t kLittleBytes = std::uint64_t{32} << 10;

  // How a refusal names the thing that is full. The texts outlive the limit.
  struct Name {
    ErrorReason reason;
    const char* field;
    const char* unit;  // with a space before it, such as " bytes"
    const char* setting;
    std::int64_t retry_after_us;
  };

  // `little_min`: so much counts as little in any case. For things of which one item may be as large.
  SharedLimit(std::uint64_t max, const Name& name, std::uint64_t little_min = 1)
      : max_(max), name_(name), little_min_(little_min) {}

  // Adds `amount` to the sum of all and to `client`, or to neither. `client`: null for work that has no client.
  // `raised_max`: used instead of the limit where it is higher. RESOURCE_EXHAUSTED: the limit would be passed, or the
  // client has its share.
  Status charge(Held* client, std::uint64_t amount, std::uint64_t raised_max = 0);
  // Adds `amount` without a check, for what had its room before.
  void add(Held* client, std::uint64_t amount);
  // Gives back what charge() or add() added.
  void release(Held* client, std::uint64_t amount);

  // The most that a client may hold of a limit of which all clients together hold `sum`.
  static std::uint64_t share_of_client(std::uint64_t max, std::uint64_t sum, std::uint64_t little_min = 1) {
    const std::uint64_t little = std::max(max / kLittle, little_min);
    const std::uint64_t free = max - std::min(max, sum);
    return free < max / kReserve ? little : std::max(kShare * free, little);
  }
  // What a client, or its address, would hold beyond its share.
  struct Beyond {
    std::uint64_t most, held;
    const char* whose;  // such as " of this client"
    const char* for_whom;
  };
  // Whether the client may hold `amount` more. `sum`: what all clients would hold then. Nothing: it may.
  static std::optional<Beyond> beyond_share(std::uint64_t max, std::uint64_t sum, const Held& client,
                                            std::uint64_t amount, std::uint64_t little_min = 1);

  std::uint64_t max() const { return max_; }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  // How many clients hold something.
  std::uint64_t holders() const { return holders_.load(std::memory_order_relaxed); }

 private:
  void add_to(Held* client, std::uint64_t amount);
  Status refusal(std::uint64_t most, std::uint64_t sum) const;
  Status refusal_of_client(const Beyond& beyond) const;

  const std::uint64_t max_;
  const Name name_;
  const std::uint64_t little_min_;
  std::atomic<std::uint64_t> held_{0}, holders_{0};
};

}  // namespace kilokv::server
