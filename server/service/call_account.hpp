// The memory of the calls that are open: what gRPC keeps of each, and its headers. gRPC counts little of it. A call has
// a place here from its headers on, until gRPC has let go of it. All clients share the places (shared_limit.hpp). On a
// server with logins, calls without one have an account of their own, so that they cannot use up the memory of users.
//
// The connection of a call counts what has no place, and what lacks a message (Client::refused_calls, Client::awaited).
// The edge bounds both.
//
// Thread safety: all members of the account. A place has one user at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/status.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/clients/shared_limit.hpp"

namespace kilokv::server {

class CallAccount {
 public:
  // `window_bytes`: what a client may send of a message that nobody reads. `unit`: how a refusal names the bytes.
  CallAccount(std::uint64_t bytes_max, std::uint64_t window_bytes, const char* unit = " bytes of open calls")
      : window_bytes_(window_bytes),
        limit_(bytes_max, {ErrorReason::calls_full, "calls", unit, "--calls-bytes-max", kRetryAfterUs},
               SharedLimit::kLittleBytes) {}

  // The time of Client::awaited.
  static std::int64_t now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }

  // The place of one call. Its end gives it back.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { swap(other); }
    Place& operator=(Place&& other) noexcept {
      Place(std::move(other)).swap(*this);
      return *this;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      if (connection_ == nullptr) return;
      message_came();
      if (forgives_) connection_->forgiven_bytes.fetch_add(account_->window_bytes_, std::memory_order_relaxed);
      if (bytes_ > 0) {
        account_->limit_.release(client_->account(&Client::call_bytes), bytes_);
      } else {
        connection_->refused_calls.fetch_sub(1, std::memory_order_relaxed);
      }
    }

    // The call lacks a message until message_came().
    void await_message(std::weak_ptr<AwaitingCall> call) {
      awaits_ = connection_->awaited.begin(std::move(call), now_ms());
    }
    void message_came() {
      if (awaits_) connection_->awaited.end(*std::exchange(awaits_, std::nullopt));
    }
    // The call is refused before its message is read. The client may have sent a window of it, which is not its fault.
    // That is gone when the call is.
    void forgive_message() { forgives_ = true; }

   private:
    friend class CallAccount;
    void swap(Place& other) {
      std::swap(account_, other.account_), std::swap(connection_, other.connection_);
      std::swap(client_, other.client_), std::swap(bytes_, other.bytes_);
      std::swap(awaits_, other.awaits_), std::swap(forgives_, other.forgives_);
    }
    CallAccount* account_ = nullptr;
    std::shared_ptr<Client> connection_, client_;
    std::uint64_t bytes_ = 0;  // 0: the call was refused
    std::optional<AwaitedMessages::Handle> awaits_;
    bool forgives_ = false;
  };

  // Takes a place for a call with headers of this length. RESOURCE_EXHAUSTED: all clients together, or this client,
  // have too many open. The call then counts as refused, until it has ended.
  Status enter(const std::shared_ptr<Client>& client, const std::shared_ptr<Client>& connection,
               std::uint64_t header_bytes, Place* place) {
    place->account_ = this;
    place->connection_ = connection;
    place->client_ = client;
    // Measured: 12,750 bytes of resident memory for a call with few headers, and 32,800 with 15,000 bytes of them.
    const std::uint64_t bytes = kCallBytes + header_bytes + header_bytes / 2;
    Status status = limit_.charge(client->account(&Client::call_bytes), bytes);
    if (status.ok()) {
      place->bytes_ = bytes;
    } else {
      connection->refused_calls.fetch_add(1, std::memory_order_relaxed);
    }
    return status;
  }
  std::uint64_t bytes() const { return limit_.held(); }
  // How many clients have open calls.
  std::uint64_t clients() const { return limit_.holders(); }

 private:
  static constexpr std::uint64_t kCallBytes = 12288;
  static constexpr std::int64_t kRetryAfterUs = 1000000;  // by then, calls may have ended

  const std::uint64_t window_bytes_;
  SharedLimit limit_;
};

}  // namespace kilokv::server
