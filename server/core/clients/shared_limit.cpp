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
    const std::uint64_t of_client = client->load(std::memory_order_relaxed) + amount;
    const std::uint64_t share = share_of_client(most, sum);
    if (of_client > share) return refusal_of_client(share, of_client);
  } while (!held_.compare_exchange_weak(held, held + amount, std::memory_order_relaxed));
  if (client != nullptr) client->fetch_add(amount, std::memory_order_relaxed);
  return {};
}

void SharedLimit::add(Held* client, std::uint64_t amount) {
  held_.fetch_add(amount, std::memory_order_relaxed);
  if (client != nullptr) client->fetch_add(amount, std::memory_order_relaxed);
}

void SharedLimit::release(Held* client, std::uint64_t amount) {
  held_.fetch_sub(amount, std::memory_order_relaxed);
  if (client != nullptr) client->fetch_sub(amount, std::memory_order_relaxed);
}

// The sum that was refused is told. A second read of the counter could show less than the limit, because others leave
// at the same time.
Status SharedLimit::refusal(std::uint64_t most, std::uint64_t sum) const {
  return Status::exhausted(name_.reason,
                           {name_.field, std::to_string(most) + name_.unit,
                            std::to_string(sum) + name_.unit + " with this request", name_.setting},
                           name_.retry_after_us);
}

Status SharedLimit::refusal_of_client(std::uint64_t most, std::uint64_t of_client) const {
  return Status::exhausted(
      name_.reason,
      {name_.field, std::to_string(most) + name_.unit + " for one client at the moment",
       std::to_string(of_client) + name_.unit + " of this client with this request", name_.setting},
      name_.retry_after_us);
}

}  // namespace kilokv::server
