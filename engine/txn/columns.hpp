// Transactions as columns (structure of arrays). This is the only in-memory form of a transaction, from the decoder to
// the engine. A request is decoded straight into one TransactionColumns; the batcher appends requests to the batch's
// columns.
//
// Shapes. With n transactions, k keys, g guards, m operations, r ranges, v byte values, x expiries:
//   transaction columns  [n]  ends are exclusive and cumulative. Transaction t has guards
//                             [guard_end[t-1], guard_end[t]), then-operations [else_end[t-1], then_end[t]), and
//                             else-operations [then_end[t], else_end[t])
//   key columns          [k]  key i has bytes [key_end[i-1], key_end[i]) of key_bytes. A key may occur more than once.
//   guard columns        [g]  guard_key: index into the key columns; for guards on ranges into the range columns;
//                             kNone for a guard of time that names no key
//   operation columns    [m]  op_key: index into the key columns; for range operations into the range columns
//   range columns        [r]  each range belongs to exactly one guard or operation; bounds are bytes in range_bytes
//   value columns        [v]  value i has bytes [value_end[i-1], value_end[i]) of value_bytes
//   expiry columns       [x]  one element for each PUT or ADD that sets an expiry, in the order of the operations
// Invariants (txn/validate.hpp checks them where input enters; the engine relies on them): every index is in range.
// Every end column is non-decreasing. Every enum value is known. An operand GET is an earlier GET of the same list. In
// a range, from < to.
//
// The columns live in a std::pmr memory resource, so that their memory can be pinned for CUDA. clear() keeps the
// capacity, so a batch allocates nothing in the steady state.
//
// Thread safety: none, but const calls may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

template <class T>
using Column = std::pmr::vector<T>;

struct TransactionColumns {
  explicit TransactionColumns(std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // [n]
  Column<std::uint8_t> precedence;        // lower runs first
  Column<DurationUs> wait_timeout_us;     // how long WAIT may postpone the transaction; 0: this batch only
  Column<std::uint8_t> expire_runs_else;  // 1: if the transaction expires, its else-operations run
  Column<std::uint32_t> guard_end;
  Column<std::uint32_t> then_end;
  Column<std::uint32_t> else_end;
  // [k]
  Column<KeyId> key_id;
  Column<std::uint32_t> key_end;
  Column<char> key_bytes;
  // [g]
  Column<std::uint8_t> guard_kind;      // GuardKind
  Column<std::uint8_t> guard_on_false;  // OnFalse
  Column<std::uint32_t> guard_key;
  Column<std::uint32_t> guard_other;   // key index of the other key of a compare, or kNone
  Column<std::int64_t> guard_operand;  // constant, version, time, or (bytes_equal) index into the value columns
  // [m]
  Column<std::uint8_t> op_kind;     // OpKind
  Column<std::uint8_t> op_operand;  // Operand; 0 where the operation has none
  Column<std::uint32_t> op_key;
  Column<std::int64_t> op_value;
  // [r]
  Column<std::uint32_t> range_from_end;  // `from` has bytes [range_to_end[i-1], range_from_end[i]) of range_bytes
  Column<std::uint32_t> range_to_end;    // `to` has bytes [range_from_end[i], range_to_end[i]); empty: no upper bound
  Column<std::uint32_t> range_limit;     // pairs; at least 1; 0 in a guard
  Column<char> range_bytes;
  // [v]
  Column<std::uint32_t> value_end;
  Column<char> value_bytes;
  // [x]
  Column<std::uint32_t> expiry_op;   // index into the operation columns
  Column<std::uint8_t> expiry_kind;  // Expiry
  Column<std::int64_t> expiry_us;    // a time, or a duration; at least 1

  std::size_t size() const { return guard_end.size(); }
  bool empty() const { return guard_end.empty(); }
  std::size_t memory_bytes() const;  // the size of the contents, not of the capacity
  std::size_t capacity_bytes() const;
  void clear();

  // Appends transactions [begin, end) of `from`, with all their columns rebased. Requires: this and `from` are
  // distinct. Cost: a copy; it allocates only if the capacity does not suffice.
  void append(const TransactionColumns& from, std::size_t begin, std::size_t end);
  // Removes all transactions but these. Keys, ranges and values stay, also those that nothing refers to any more. So
  // it needs no memory. Requires: ascending indices.
  void keep(std::span<const std::uint32_t> transactions);

  std::string_view key(std::size_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : key_end[i - 1];
    return {key_bytes.data() + begin, key_end[i] - begin};
  }
  // The key of a guard that is not on a range; empty if the guard has none.
  std::string_view key_of_guard(std::size_t g) const {
    return guard_key[g] == kNone ? std::string_view() : key(guard_key[g]);
  }
  std::string_view value(std::size_t i) const;
  std::string_view range_from(std::size_t i) const;
  std::string_view range_to(std::size_t i) const;
  std::uint32_t guard_begin(std::size_t t) const { return t == 0 ? 0 : guard_end[t - 1]; }
  std::uint32_t then_begin(std::size_t t) const { return t == 0 ? 0 : else_end[t - 1]; }
  // Whether the else-operations of transaction t have run, if this is its outcome.
  bool ran_else(std::size_t t, Outcome outcome) const {
    return outcome == Outcome::guard_failed || (outcome == Outcome::wait_expired && expire_runs_else[t] != 0);
  }
};

// Builds columns one transaction at a time, for decoders, workloads and tests. begin() opens a transaction. Then come
// its guards, then-operations and else-operations, in this order. end() closes it. Keys are hashed with `secret`
// (base/key_hash.hpp). Operand indices are positions within the list.
class ColumnsBuilder {
 public:
  ColumnsBuilder(TransactionColumns* columns, const KeyHashSecret& secret);
  void begin(std::uint8_t precedence = 0, DurationUs wait_timeout_us = 0, bool expire_runs_else = false);
  std::uint32_t key(std::string_view bytes);    // returns its index in the key columns
  std::uint32_t value(std::string_view bytes);  // returns its index in the value columns
  void guard(GuardKind kind, OnFalse on_false, std::uint32_t key, std::int64_t operand, std::uint32_t other = kNone);
  void range_guard(GuardKind kind, OnFalse on_false, std::string_view from, std::string_view to, Version version);
  void op(OpKind kind, std::uint32_t key, Operand operand = Operand::integer, std::int64_t value = 0);
  void range_op(OpKind kind, std::string_view from, std::string_view to, std::uint32_t limit);
  void expire(Expiry kind, std::int64_t us);  // of the last operation, which is a PUT or an ADD
  void begin_else();                          // the operations that follow go to the else-list
  void end();

 private:
  std::uint32_t range(std::string_view from, std::string_view to, std::uint32_t limit);

  TransactionColumns* columns_;
  KeyHashSecret secret_;
  bool in_else_ = false;
};

// Packs one transaction into a self-contained string, and back. Parked transactions need this, because they outlive the
// columns of their batch. The format is internal to one process. unpack_transaction appends to `columns`.
std::string pack_transaction(const TransactionColumns& columns, std::size_t t);
void unpack_transaction(std::string_view packed, TransactionColumns* columns);

}  // namespace kilokv::engine
