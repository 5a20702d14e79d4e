// Builds transactions. A Batch holds one transaction or many. It holds them in columns, so that a client with many
// transactions makes no object for each. An option of the call says whether they are sent as columns or as rows.
//
//   Batch batch;
//   batch.begin();
//   batch.guard(batch.key("alice"), Compare::greater_equal, 10);      // FAIL unless alice has 10
//   batch.add(batch.key("alice"), -10);
//   batch.add(batch.key("bob"), 10);
//   batch.end();
//
// Misuse is, for example, an operation outside of begin() and end(), or an operand that names a later GET. The call
// that sends the batch reports it as invalid_argument.
//
// Thread safety: none; one thread builds a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>

namespace kilokv::client {

enum class Compare : std::uint8_t { equal = 3, not_equal, less, less_equal, greater, greater_equal };
enum class OnFalse : std::uint8_t { fail, wait };

// The index of a key in its batch. It may be used again within the same transaction.
enum class Key : std::uint32_t {};
// The index of an operation in its list.
enum class Op : std::uint32_t {};

// The value of a PUT, or the delta of an ADD: the value that an earlier GET of the same list has read.
struct FromGet {
  Op get;
  bool negate = false;
};
struct CommitVersion {};
struct BatchTime {};
using Operand = std::variant<std::int64_t, std::string_view, FromGet, CommitVersion, BatchTime>;

// When the key of a put or an add expires. The server then deletes it. The key is there until it is deleted: to be
// exact to the moment, use a guard of time.
struct ExpiresAt {
  std::int64_t time_us = 0;  // microseconds since the Unix epoch
};
struct TimeToLive {
  std::int64_t us = 0;  // microseconds after the stamp of the batch
};
// Nothing: a put clears the expiry of the key, and an add leaves it as it is.
using Expiry = std::variant<std::monostate, ExpiresAt, TimeToLive>;

struct TransactionOptions {
  std::uint8_t precedence = 0;  // within a pass of a batch, lower numbers run first
  std::uint64_t wait_timeout_us =
      0;  // microseconds that a guard with OnFalse::wait may wait; 0: it waits only within its batch
  bool expire_runs_else = false;  // if it waits in vain, its else-operations run. Its outcome is still wait_expired
};

class Batch {
 public:
  Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  void begin(const TransactionOptions& options = {});
  Key key(std::string_view bytes);

  void guard_exists(Key key, OnFalse on_false = OnFalse::fail);
  void guard_absent(Key key, OnFalse on_false = OnFalse::fail);
  void guard(Key key, Compare compare, std::int64_t value, OnFalse on_false = OnFalse::fail);
  void guard_keys(Key key, Compare compare, Key other, OnFalse on_false = OnFalse::fail);
  void guard_version(Key key, std::uint64_t version, OnFalse on_false = OnFalse::fail);
  void guard_unchanged(Key key, std::uint64_t since_version, OnFalse on_false = OnFalse::fail);
  void guard_bytes(Key key, std::string_view bytes, OnFalse on_false = OnFalse::fail);
  void guard_range_unchanged(std::string_view from, std::string_view to, std::uint64_t since_version,
                             OnFalse on_false = OnFalse::fail);
  // They compare the stamp of the batch (BatchTime) with a time, in microseconds since the Unix epoch: with a constant,
  // or with the integer value of a key, where an absent key counts as 0. Before: the stamp is less. After: it is equal
  // or greater. "Before" cannot wait, because time alone never makes it true.
  void guard_time_before(std::int64_t time_us);
  void guard_time_before(Key time);
  void guard_time_after(std::int64_t time_us, OnFalse on_false = OnFalse::fail);
  void guard_time_after(Key time, OnFalse on_false = OnFalse::fail);

  Op get(Key key);
  Op put(Key key, const Operand& value, const Expiry& expiry = {});
  Op del(Key key);
  Op add(Key key, const Operand& delta, const Expiry& expiry = {});
  Op range_get(std::string_view from, std::string_view to, std::uint32_t limit);
  // From the last key to the first; `limit` counts from the last one.
  Op range_get_reverse(std::string_view from, std::string_view to, std::uint32_t limit);
  Op delete_range(std::string_view from, std::string_view to, std::uint32_t limit);
  void otherwise();  // the next operations form the else list
  void end();

  std::size_t size() const;  // number of transactions
  bool empty() const { return size() == 0; }
  void clear();  // keeps the memory for the next transactions

  struct Columns;  // internal
  const Columns& columns() const { return *columns_; }

 private:
  std::unique_ptr<Columns> columns_;
};

}  // namespace kilokv::client
