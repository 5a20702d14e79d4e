#include "server/core/clients/shared_limit.hpp"

#include <algorithm>
#include <string>

namespace kilokv::server {

Status SharedLimit::charge(Held* client, std::uint64_t amount, std::uint64_t raised_max) {
  if (amount == 0) return {};
  const std::uint64_t most = std::max(max_, raised_max);
  const std::uint64_t sum = held_.fetch_add(amount, std::memory_order_relaxed) + amount;
  if (sum > most) {
    held_.fetch_sub(amount, std::memory_order_relaxed);
    return refusal(most, sum);
  }
  if (client == nullptr) return {};
  const std::uint64_t of_client = client->fetch_add(amount, std::memory_order_relaxed) + amount;
  const std::uint64_t share = share_of_client(most, sum);
  if (of_client <= share || sum == amount) return {};
  release(client, amount);
  return refusal_of_client(share, of_client);
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
