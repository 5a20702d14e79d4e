// A database in the test's process, for code that uses Client and Session. It runs requests that are in flight in any
// order, which a seed draws, one at a time. A transaction whose WAIT guard is false waits until another one has run, if
// it has a wait_timeout, and otherwise expires at once. If nothing else can run, one that waits expires.
//
// A session can be broken off, as if its process were killed: no further request is sent and no further answer comes.
// What was sent before still runs, some of it only after the next session has begun.
//
// It knows the guards exists, absent and bytes_eq, and the operation PUT.
//
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "client/lib/src/batch_columns.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

class FakeDatabase {
 public:
  struct Stored {
    std::variant<std::int64_t, std::string> value;
    std::uint32_t writes = 0;  // how often it was written
    bool operator==(const Stored&) const = default;
  };
  using State = std::map<std::string, Stored>;

  explicit FakeDatabase(std::uint64_t seed);
  ~FakeDatabase();
  FakeDatabase(const FakeDatabase&) = delete;
  FakeDatabase& operator=(const FakeDatabase&) = delete;

  // Requires: the database outlives it.
  std::unique_ptr<Client> client();
  // The next session is broken off when this many requests were sent on it.
  void break_off_after(std::uint32_t requests);
  // Refuses keys and values that are longer, as a server does.
  void set_bytes_max(std::size_t key_bytes, std::size_t value_bytes);
  // Refuses transactions with a wait_timeout.
  void forbid_waiting();
  void put(const std::string& key, std::variant<std::int64_t, std::string> value);
  void erase(const std::string& key);
  State state();                  // after all that can run has run
  std::uint64_t expired();        // transactions that waited in vain
  std::uint64_t in_flight_max();  // most requests that were in flight at the same time

 private:
  friend class FakeSession;
  friend class FakeClient;

  struct Request {
    std::uint64_t session = 0, number = 0;
    Batch::Columns columns;
    ProgressCallback callback;  // empty: nobody listens any more
    bool waits = false;         // nothing has run since its guard was false, or since its session was broken off
  };

  std::uint64_t open();
  std::uint64_t submit(std::uint64_t session, const Batch& batch, ProgressCallback callback);
  void close(std::uint64_t session);
  std::optional<Error> problem_of(const Batch::Columns& columns) const;
  void run();
  bool run_one();
  bool has_able() const;
  void expire_one();
  // Empty: it waits.
  std::optional<Outcome> outcome_of(const Batch::Columns& columns, int transaction);
  bool holds(const Batch::Columns& columns, int guard) const;
  void write(const Batch::Columns& columns, int operation);
  static void answer(const Request& request, const std::vector<Outcome>& outcomes, const Error& error);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  State state_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::uint64_t sessions_ = 0, numbers_ = 0, expired_ = 0, in_flight_max_ = 0;
  std::uint32_t sends_left_ = ~0u;
  std::set<std::uint64_t> broken_;  // sessions
  std::size_t key_bytes_max_ = 1024, value_bytes_max_ = std::size_t{1} << 20;
  bool is_stopping_ = false, is_settling_ = false, may_wait_ = true;
  std::thread worker_;
};

}  // namespace kilokv::client
