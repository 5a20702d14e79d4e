// Interactive transactions: the program reads, decides, buffers writes, and commits. They are optimistic. commit()
// sends one transaction. It has a guard `version ==` for every key that was read, and a guard `range unchanged` for
// every range that was scanned. If one of them is false, nothing is written, and commit() returns `conflict`. run()
// repeats the transaction until it commits.
//
// Each read is strictly serializable by itself. But reads at different times may be inconsistent with each other until
// commit() has validated them. So until then, a body must not act outside of the database on what it has read. commit()
// also validates a transaction that only reads.
//
// commit() uploads a large read set in chunks. It may have as many keys as the server's --read-set-keys-max (1,000,000
// by default). Ranges and writes count against the server's limits for one transaction (--guards-max,
// --operations-max). Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kilokv/client.hpp"

namespace kilokv::client {

using Value = std::variant<std::monostate, std::int64_t, std::string>;  // monostate: absent

enum class CommitResult : std::uint8_t { committed, conflict };

class InteractiveTransaction {
 public:
  // `session` may be null. Then a lost answer to commit() is `unavailable`, and the outcome is unknown. But for a large
  // read set, commit() opens a session. Requires: `client` and `session` outlive it.
  InteractiveTransaction(Client* client, Session* session, CallOptions options = {});
  InteractiveTransaction(InteractiveTransaction&&) noexcept;
  ~InteractiveTransaction();

  // Reads the transaction's own buffered writes, too. A second read of a key gives the same value.
  Expected<Value> get(std::string_view key);
  // Reads many keys in few calls. Each call reads its keys at one moment.
  Expected<std::vector<Value>> get_many(const std::vector<std::string>& keys);
  Expected<std::vector<Pair>> scan(std::string_view from, std::string_view to);
  // The last `limit` pairs of [from, to), from the last key to the first; `limit` is at least 1. Only the part of the
  // range that was read must be unchanged at the commit.
  Expected<std::vector<Pair>> scan_reverse(std::string_view from, std::string_view to, std::size_t limit);
  // A key that expires: a time to live counts from the stamp of the batch of the commit.
  void put(std::string_view key, std::int64_t value, const Expiry& expiry = {});
  void put(std::string_view key, std::string_view bytes, const Expiry& expiry = {});
  void del(std::string_view key);

  // Ends the transaction. After a `conflict` or an error the object can only be destroyed.
  Expected<CommitResult> commit();
  std::optional<std::uint64_t> version() const;  // the commit version, after a commit that wrote
  std::string conflicting_key() const;           // after a conflict; for a scan, the start of the range that it guards

  // Runs `body` in a new transaction until it commits. An Error from `body` or from commit() ends the loop. After
  // attempts_max conflicts it returns `aborted`, and names the key of the last conflict.
  static Error run(Client* client, Session* session, const std::function<Error(InteractiveTransaction&)>& body,
                   std::uint32_t attempts_max = 100);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kilokv::client
