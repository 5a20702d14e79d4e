// What goes on in a server at present, for the people who operate it. A server with logins shows it only to users with
// the metrics right.
//
//   auto activity = Activity::connect(options);
//   auto hot = (*activity)->hot_keys({});
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/client.hpp"
#include "kilokv/error.hpp"
#include "kilokv/results.hpp"

namespace kilokv::client {

// A key, or its hash where the caller may not read the key. The hash of a key never changes in one database, and the
// log of the server has the same.
struct ShownKey {
  std::string key;
  std::string hash;       // such as #0123456789abcdef; empty: `key` is the key
  bool is_range = false;  // it is about a range that begins at this key

  // False: there is no key, such as for a guard that compares the stamp with a constant.
  bool is_there() const { return is_range || !key.empty() || !hash.empty(); }
};

enum class KeyUse : std::uint8_t { read, write, failed_guard, wait };
const char* to_string(KeyUse use);  // read, write, failed_guard or wait

// The most used keys of the last seconds. The rates are estimates.
struct HotKey {
  ShownKey key;
  double per_second = 0;
  double error = 0;  // `per_second` is too high by at most so much, beside the error of the sample
};
struct HotKeysOfUse {
  KeyUse use = KeyUse::read;
  double per_second = 0;     // uses of all keys
  std::vector<HotKey> keys;  // the most used first
};
struct HotKeys {
  std::vector<HotKeysOfUse> uses;
  std::uint64_t sampled_one_in = 1;  // the server counts one transaction of this many; 1: all
  std::uint64_t half_life_us = 0;    // a use counts half after this time
};

// A transaction that took longer than --slow-transaction.
struct SlowTransaction {
  std::string reason;            // the stage that took longest: waiting, queued, large_read, execution, sync or answer
  std::int64_t answered_us = 0;  // microseconds since the Unix epoch
  // From the admission to the answer, and the parts of this time.
  std::uint64_t total_us = 0, queued_us = 0, waited_us = 0, execution_us = 0, sync_us = 0, answer_us = 0;
  std::string client;   // such as user:alice or ipv4:127.0.0.1:40000
  std::string session;  // the first 8 hexadecimal digits of its id; empty: none
  std::uint64_t request = 0;
  std::uint32_t index = 0;               // of the first transaction in the request that this is about
  std::uint32_t transactions = 1;        // of the request, that ended with the same batch
  Outcome outcome = Outcome::committed;  // of the first
  std::uint64_t batch = 0, admitted_batch = 0;
  std::uint32_t batch_transactions = 0;
  std::uint64_t reads = 0;             // the most keys that a transaction of the request may look at
  std::optional<std::uint32_t> guard;  // waiting: the guard for which it was parked last, and its key, if it has one
  ShownKey guard_key;
  std::string trace, span;  // ids that the client has named by traceparent; empty: none
};
struct SlowTransactions {
  std::vector<SlowTransaction> transactions;                  // the latest first; not each of them is kept
  std::vector<std::pair<std::string, std::uint64_t>> counts;  // all since the start, by reason
  std::uint64_t threshold_us = 0;                             // --slow-transaction
};

struct OpenSession {
  std::string id;    // the first 8 hexadecimal digits
  std::string user;  // who opened it; empty: opened without a login
  std::uint64_t lease_us = 0;
  std::int64_t lease_left_us = 0;  // below 0: it is over, and requests in flight keep the session
  std::uint64_t holder = 0;        // how often a client has attached to it
  std::uint64_t acknowledged_through = 0;
  std::uint64_t requests = 0;                          // that are not acknowledged
  std::uint32_t requests_in_flight = 0;                // of them: queued, parked or running
  std::uint64_t uploads = 0;                           // read sets that are not committed
  std::uint64_t stored_bytes = 0, reserved_bytes = 0;  // of results, and for results to come
};
struct OpenSessions {
  std::vector<OpenSession> sessions;  // those that hold the most bytes first
  std::uint64_t count = 0;            // of all
};

struct OpenConnection {
  std::string peer;  // such as ipv4:127.0.0.1:40000
  std::string user;  // of the last call with a login; empty: none
  std::uint64_t age_us = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t unfinished_bytes = 0;  // of messages that lack their end
};
struct OpenConnections {
  std::vector<OpenConnection> connections;  // those that have sent the most bytes first
  std::uint64_t count = 0;                  // of all
};

class Activity {
 public:
  static Expected<std::unique_ptr<Activity>> connect(const ClientOptions& options);
  virtual ~Activity() = default;

  // `limit`: entries; 0: as many as the server chooses. Without `use`, all uses.
  virtual Expected<HotKeys> hot_keys(std::optional<KeyUse> use, std::uint32_t limit = 0,
                                     const CallOptions& options = {}) = 0;
  virtual Expected<SlowTransactions> slow(std::uint32_t limit = 0, const CallOptions& options = {}) = 0;
  virtual Expected<OpenSessions> sessions(std::uint32_t limit = 0, const CallOptions& options = {}) = 0;
  virtual Expected<OpenConnections> connections(std::uint32_t limit = 0, const CallOptions& options = {}) = 0;
};

}  // namespace kilokv::client
