// Counts and bounds the calls of one kind that are in progress, because each holds memory, and time of the executor,
// until it ends. Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/base/status.hpp"
#include "server/core/clients/client.hpp"

namespace kilokv::server {

class InFlight {
 public:
  // `name`: the calls, as an error names them. `setting`: the flag that sets `max`. `account`: where a client counts
  // its calls of this kind.
  InFlight(std::uint32_t max, const char* name, const char* setting, Held Client::*account)
      : limit_(max, {ErrorReason::calls_full, name, " in flight", setting, kRetryAfterUs}), account_(account) {}

  // Counts one more call. `client`: null if nobody in particular calls. RESOURCE_EXHAUSTED, with not_run, if too many
  // are in progress. After an ok, the function that returning() made must be called once.
  Status enter(const std::shared_ptr<Client>& client) {
    Status status = limit_.charge(account_of(client), 1);
    return status.ok() ? status : status.as_not_run();
  }

  // Returns `done` with the end of the call before it, so that a client that gets the answer can call again at once.
  template <class... Arguments>
  std::function<void(Arguments...)> returning(std::shared_ptr<Client> client, std::function<void(Arguments...)> done) {
    return [this, client = std::move(client), done = std::move(done)](Arguments... arguments) {
      limit_.release(account_of(client), 1);
      done(std::move(arguments)...);
    };
  }

 private:
  static constexpr std::int64_t kRetryAfterUs = 10000;
  Held* account_of(const std::shared_ptr<Client>& client) const {
    return client == nullptr ? nullptr : client->account(account_);
  }

  SharedLimit limit_;
  Held Client::*const account_;
};

}  // namespace kilokv::server
