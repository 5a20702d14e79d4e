// A client of the server: a user with all its connections, or, on a server without logins, one connection. It counts
// what the client holds of each thing that clients share (shared_limit.hpp), and it has the client's place in the turns
// of the queue (turns.hpp).
//
// A connection can end, and its client can come back on a new one. What outlives it counts for the address that it came
// from (keeper()): sessions with all that they hold, transactions that wait in a session, and scans between two pages.
// Otherwise a new connection would give a client a new share. A user is its own keeper.
//
// Life: the calls, requests and sessions of a client hold it by shared_ptr, and ClientTable keeps it a while longer.
//
// Thread safety: the counts and `user_weight` are atomic. `queue`, `waited`, `weight` and `decode_begin` have one user
// each. The rest does not change.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/core/clients/awaited_messages.hpp"
#include "server/core/clients/shared_limit.hpp"

namespace kilokv::server {

struct AdmittedRequest;

struct Client {
  // `of_address`: for what outlives a connection; null: this client itself.
  explicit Client(std::string client_name, std::shared_ptr<Client> of_address = nullptr)
      : name(std::move(client_name)), address(std::move(of_address)) {}

  // What it holds of one thing, to be charged; null for the client without a name, which has no share to keep to.
  Held* account(Held Client::*thing) { return name.empty() ? nullptr : &(this->*thing); }

  // The client that counts what outlives this one. It lives as long as this one.
  Client* keeper() { return address != nullptr ? address.get() : this; }

  // The name of the user who has logged in; empty: nobody has.
  std::string_view user() const {
    const bool is_user = name.compare(0, kUserPrefix.size(), kUserPrefix) == 0;
    return is_user ? std::string_view(name).substr(kUserPrefix.size()) : std::string_view();
  }

  static constexpr std::string_view kUserPrefix = "user:";
  // Before the peer of a browser whose calls come from the console.
  static constexpr std::string_view kConsolePrefix = "console/";

  const std::string name;  // such as user:alice or ipv4:127.0.0.1:40000; empty: for work that no client has sent
  std::atomic<std::uint32_t> user_weight{1};  // its part of the turns, compared with those of others
  const std::shared_ptr<Client> address;

  Held queued_transactions{of_address(&Client::queued_transactions)}, queued_bytes{of_address(&Client::queued_bytes)};
  // Transactions that are parked or may be, and their bytes.
  Held waiting{of_address(&Client::waiting)}, parked_bytes{of_address(&Client::parked_bytes)};
  // Reserved for requests that are not answered.
  Held data_bytes{of_address(&Client::data_bytes)}, log_bytes{of_address(&Client::log_bytes)};
  Held sessions, session_bytes, upload_bytes, boundaries;  // of keepers alone
  Held scans{of_address(&Client::scans)}, commands{of_address(&Client::commands)};
  Held streams{of_address(&Client::streams)}, call_bytes{of_address(&Client::call_bytes)};
  Held undecoded_bytes{of_address(&Client::undecoded_bytes)}, answer_bytes{of_address(&Client::answer_bytes)};

  // Where the client is one connection: what its whole messages and the headers of its calls account for at most; the
  // part of the messages; what calls may have brought that were refused unread, and have ended; its open calls that
  // were refused for want of a place; its calls without a valid login, on a server that needs one; and those that lack
  // a message.
  std::atomic<std::uint64_t> accounted_bytes{0}, message_bytes{0}, forgiven_bytes{0}, refused_calls{0},
      calls_without_login{0};
  AwaitedMessages awaited;

  // Its requests in the queue. Only Turns uses it, with its lock.
  struct Queue {
    std::deque<std::shared_ptr<AdmittedRequest>> requests;
    double begin = 0;  // virtual time at which its next turn begins
  } queue;
  // Virtual times at which its next waiting transactions begin (waiting/lane_turns.hpp). Only ParkingLot uses them, in
  // the executor's thread.
  struct Waited {
    double looked_at = 0, awake = 0, due = 0;
  } waited;
  double weight = 1;        // user_weight, as it was when the queue was last empty. Only Turns uses it, with its lock.
  double decode_begin = 0;  // virtual time at which its next message may begin. Only DecodeQueue uses it.
  // For a keeper: when the next message may pass its full share of the admission queue, in milliseconds of the steady
  // clock. Only DecodeQueue uses it.
  std::int64_t passes_from_ms = 0;

 private:
  Held* of_address(Held Client::*thing) const { return address == nullptr ? nullptr : &((*address).*thing); }
};

// The keeper of a client that may be null.
inline std::shared_ptr<Client> keeper_of(const std::shared_ptr<Client>& client) {
  return client != nullptr && client->address != nullptr ? client->address : client;
}

}  // namespace kilokv::server
