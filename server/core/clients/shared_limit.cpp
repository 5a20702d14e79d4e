#include "server/core/clients/shared_limit.hpp"

#include <algorithm>
#include <string>

namespace kilokv::server {

// The client's share is checked before anything is added: what is refused never counts, not even for a moment, so it
// cannot make the charge of another client fail.
Status SharedLimit::charge(Held* client, std::uint64_t amount, std::uint64_t raised_max) {
  if (amount == 0) return {};
  const std::uint64_t most = std::max(max_, raised_max);
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    const std::uint64_t sum = held + amount;
    if (sum > most) return refusal(most, sum);
    if (client == nullptr || held == 0) continue;
    if (const auto beyond = beyond_share(most, sum, *client, amount, little_min_)) return refusal_of_client(*beyond);
  } while (!held_.compare_exchange_weak(held, held + amount, std::memory_order_relaxed));
  add_to(client, amount);
  return {};
}

void SharedLimit::add_to(Held* client, std::uint64_t amount) {
  if (client != nullptr && amount > 0 && client->add(amount)) holders_.fetch_add(1, std::memory_order_relaxed);
}

std::optional<SharedLimit::Beyond> SharedLimit::beyond_share(std::uint64_t max, std::uint64_t sum, const Held& client,
                                                             std::uint64_t amount, std::uint64_t little_min) {
  const std::uint64_t of_client = client.load() + amount, of_address = client.of_address() + amount;
  const std::uint64_t share = share_of_client(max, sum, little_min);
  if (of_client > share) return Beyond{share, of_client, " of this client", " for one client"};
  const std::uint64_t free = max - std::min(max, sum);
  const bool is_last = free < max / (2 * kReserve);
  if (!is_last && of_client <= std::max(max / kLittle, little_min)) return {};
  const std::uint64_t of_all = is_last ? std::max(max / kLittleAddress, little_min) : share;
  if (of_address <= of_all) return {};
  return Beyond{of_all, of_address, " of the connections of this address", " for one address"};
}

void SharedLimit::add(Held* client, std::uint64_t amount) {
  held_.fetch_add(amount, std::memory_order_relaxed);
  add_to(client, amount);
}

void SharedLimit::release(Held* client, std::uint64_t amount) {
  held_.fetch_sub(amount, std::memory_order_relaxed);
  const bool is_one = client != nullptr && amount > 0;
  if (is_one && client->subtract(amount)) holders_.fetch_sub(1, std::memory_order_relaxed);
}

// The sum that was refused is told. A second read of the counter could show less than the limit, because others leave
// at the same time.
Status SharedLimit::refusal(std::uint64_t most, std::uint64_t sum) const {
  return Status::exhausted(name_.reason,
                           {name_.field, std::to_string(most) + name_.unit,
                            std::to_string(sum) + name_.unit + " with this request", name_.setting},
                           name_.retry_after_us);
}

Status SharedLimit::refusal_of_client(const Beyond& beyond) const {
  return Status::exhausted(
      name_.reason,
      {name_.field, std::to_string(beyond.most) + name_.unit + beyond.for_whom + " at the moment",
       std::to_string(beyond.held) + name_.unit + beyond.whose + " with this request", name_.setting},
      name_.retry_after_us);
}

}  // namespace kilokv::server
