// Interactive transactions: read, decide in the client, buffer writes, commit. Optimistic: commit sends one transaction
// with `version ==` for every key read and `range unchanged` for every range scanned; when one is false, nothing is
// written and commit says `conflict`. run() repeats until it commits.
//
// Each read is strictly serializable by itself, but reads at different times may be inconsistent with each other until
// commit has validated them: a body must not do anything outside of the database on the strength of what it read.
// A transaction that only reads is validated by commit too. A large read set is uploaded by commit in chunks, up to the
// server's --read-set-keys-max (1,000,000 keys). Ranges and writes count against its limits of one transaction
// (--guards-max, --operations-max). Thread safety: one thread.
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
  // Requires: `session` outlives it; its client too. `session` null: a lost answer to commit is `unavailable`, its fate
  // unknown; but a large read set is committed in a session that commit opens for it.
  InteractiveTransaction(Client* client, Session* session, CallOptions options = {});
  InteractiveTransaction(InteractiveTransaction&&) noexcept;
  ~InteractiveTransaction();

  // Own buffered writes are seen; a key read twice gives the same value.
  Expected<Value> get(std::string_view key);
  // Many at once, in few calls; each call reads its keys at one moment.
  Expected<std::vector<Value>> get_many(const std::vector<std::string>& keys);
  Expected<std::vector<Pair>> scan(std::string_view from, std::string_view to);
  void put(std::string_view key, std::int64_t value);
  void put(std::string_view key, std::string_view bytes);
  void del(std::string_view key);

  // Ends the transaction. After `conflict` or an error it can only be destroyed.
  Expected<CommitResult> commit();
  std::optional<std::uint64_t> version() const;  // commit version, after a commit that wrote
  std::string conflicting_key() const;           // after a conflict; of a scan: the start of its range

  // Runs `body` in a new transaction until it commits; an Error from `body` or from commit ends it. After attempts_max
  // conflicts: aborted, naming the key of the last one.
  static Error run(Client* client, Session* session, const std::function<Error(InteractiveTransaction&)>& body,
                   std::uint32_t attempts_max = 100);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kilokv::client
