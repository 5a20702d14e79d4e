// Runs one transaction. The rules of docs/transactions.md, sections 3 to 6, are written here once, for every strategy
// and platform. The interpreter allocates nothing, and accesses records only through `Access`.
//
// Thread safety: that of Access.
//
// Access (a class of the strategy or executor; `key`, `range`, `value` are indices into the batch's columns):
//   Cell read(key)                     the record for the operation that runs: as this transaction sees it, with
//                                      its own writes
//   Cell read_of_guard(key, use)       the same for a guard: use 2g is its key, 2g + 1 the other key of a compare
//   bool stopped()                     the reads so far are not consistent with each other: the run ends, undecided
//   void write(key, Cell)              a write of this transaction; undo() takes it back
//   void begin(operation), void undo() begin() opens a transaction's writes, from this operation on; undo() takes them
//                                      back
//   void ahead(operation)              this operation runs next
//   bool defers(operation)             an ADD that the strategy itself applies after the transaction has run: its
//                                      op_cell is then the delta, its flags are kDelta; its key occurs once
//   bool bytes_equal(Cell, value)      compares a bytes value with a constant
//   uint64_t value_word(value)         the word of a record that holds this constant
//   bool range_unchanged(range, since) whether no key of the range has a version > since
//   void range_get(range, own, reverse)
//                                      returns pairs, and marks the pairs of version `own` as own writes; `reverse`:
//                                      from the last key to the first
//   bool delete_range(range, own)      deletes pairs, with version `own`; returns whether it deleted any
//
// Every switch over kinds is without `default`, so that the compiler names the places that a new kind needs. A number
// that is no kind cannot occur, because validated columns have none (txn/validate.hpp). No check looks for it here,
// because a check would cost registers on a device: such a guard would be false, and such an operation would do
// nothing.
//
// Rules that are easily missed (docs/transactions.md, sections 3 and 4):
//   - Guards see the state before the transaction; they are evaluated even when no operation follows.
//   - A compare with two keys is a TYPE_MISMATCH when either holds bytes; guard_cell is the first key's.
//   - A time guard with a key takes an absent key for the time 0. The time of a batch is the same in all its passes.
//   - ADD checks its operand first, then the record. Bytes in one of them is a TYPE_MISMATCH. Absent counts as 0.
//   - ADD of 0 to an absent key writes 0. PUT of an equal value is a write, with a new version.
//   - A DELETE after the transaction's own PUT of a key that was never written leaves a tombstone: it wrote.
//   - If the else-operations of a failed guard overflow or meet the wrong type, that is the outcome, with failed_in
//     else_ops. The results then do not mention the failed guard.
//   - RANGE_GET and DELETE_RANGE see the transaction's own writes; their limits count keys that are not deleted.
//   - `unchanged since v` on a key without a version, with v below the tombstone floor, is false: the key may have been
//     deleted after v and forgotten.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

enum class Verdict : std::uint8_t { is_true, is_false, type_mismatch };

// A sum, and whether it leaves the signed 64-bit range.
struct CheckedSum {
  std::int64_t sum;
  bool overflow;
};

KILOKV_HOST_DEVICE inline CheckedSum checked_add(std::int64_t a, std::int64_t b) {
  const std::uint64_t sum = static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b);
  const bool overflow = ((static_cast<std::uint64_t>(a) ^ sum) & (static_cast<std::uint64_t>(b) ^ sum)) >> 63 != 0;
  return {static_cast<std::int64_t>(sum), overflow};
}

// Whether the compare of an integer, or of the stamp of the batch (left), holds. False for the kinds that compare none.
KILOKV_HOST_DEVICE inline bool compare(GuardKind kind, std::int64_t left, std::int64_t right) {
  switch (kind) {
    case GuardKind::equal: return left == right;
    case GuardKind::not_equal: return left != right;
    case GuardKind::less: return left < right;
    case GuardKind::less_equal: return left <= right;
    case GuardKind::greater: return left > right;
    case GuardKind::greater_equal: return left >= right;
    case GuardKind::exists:
    case GuardKind::absent:
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::bytes_equal:
    case GuardKind::range_unchanged: break;
    case GuardKind::time_before: return left < right;
    case GuardKind::time_after: return left >= right;
  }
  return false;
}

// Evaluates guard g on the state that `access` shows. Sets `seen` to its key's cell (zero for a guard without a key).
template <class Space, class Access>
KILOKV_HOST_DEVICE inline Verdict evaluate_guard(const BatchViewIn<Space>& batch, const Access& access, std::uint32_t g,
                                                 Cell* seen) {
  const auto kind = static_cast<GuardKind>(batch.guard_kind[g]);
  const std::int64_t operand = batch.guard_operand[g];
  const auto verdict = [](bool holds) { return holds ? Verdict::is_true : Verdict::is_false; };
  if (uses_range(kind)) {
    *seen = Cell{};
    const auto since = static_cast<Version>(operand);
    return verdict(since >= batch.tombstone_floor && access.range_unchanged(batch.guard_key[g], since));
  }
  const std::uint32_t key = batch.guard_key[g];
  if (key == kNone) {
    *seen = Cell{};
    return verdict(compare(kind, batch.time_us, operand));
  }
  const Cell cell = access.read_of_guard(key, 2 * g);
  *seen = cell;
  const ValueType type = type_of(cell.tag);
  switch (kind) {
    case GuardKind::exists: return verdict(type != ValueType::absent);
    case GuardKind::absent: return verdict(type == ValueType::absent);
    case GuardKind::version_equal: return verdict(version_of(cell.tag) == static_cast<Version>(operand));
    case GuardKind::unchanged: {
      const Version known = cell.tag == 0 ? batch.tombstone_floor : version_of(cell.tag);
      return verdict(known <= static_cast<Version>(operand));
    }
    case GuardKind::bytes_equal:
      if (type == ValueType::integer) return Verdict::type_mismatch;
      return verdict(type == ValueType::bytes && access.bytes_equal(cell, static_cast<std::uint32_t>(operand)));
    case GuardKind::equal:
    case GuardKind::not_equal:
    case GuardKind::less:
    case GuardKind::less_equal:
    case GuardKind::greater:
    case GuardKind::greater_equal: {
      std::int64_t right = operand;
      if (batch.guard_other[g] != kNone) {
        const Cell other = access.read_of_guard(batch.guard_other[g], 2 * g + 1);
        if (type_of(other.tag) == ValueType::bytes) return Verdict::type_mismatch;
        right = static_cast<std::int64_t>(other.word);
      }
      if (type == ValueType::bytes) return Verdict::type_mismatch;
      return verdict(compare(kind, static_cast<std::int64_t>(cell.word), right));  // absent: the word is 0
    }
    case GuardKind::time_before:
    case GuardKind::time_after: {
      if (type == ValueType::bytes) return Verdict::type_mismatch;
      return verdict(compare(kind, batch.time_us, static_cast<TimeUs>(cell.word)));  // absent: the word is 0
    }
    case GuardKind::range_unchanged: break;  // see above
  }
  return Verdict::is_false;
}

// An operand's value, or the outcome that it forces.
struct OperandValue {
  std::uint64_t word = 0;
  ValueType type = ValueType::integer;
  Outcome outcome = Outcome::committed;
};

template <class Space, class Access>
KILOKV_HOST_DEVICE inline OperandValue load_operand(const BatchViewIn<Space>& batch, const ResultViewIn<Space>& results,
                                                    const Access& access, std::uint32_t list_begin, std::uint32_t i,
                                                    Version version, Operand operand) {
  const std::int64_t value = batch.op_value[i];
  switch (operand) {
    case Operand::integer: return {static_cast<std::uint64_t>(value)};
    case Operand::bytes: return {access.value_word(static_cast<std::uint32_t>(value)), ValueType::bytes};
    case Operand::commit_version: return {version};
    case Operand::batch_time: return {static_cast<std::uint64_t>(batch.time_us)};
    case Operand::get:
    case Operand::get_negated: break;
  }
  const Cell read = results.op_cell[list_begin + static_cast<std::uint32_t>(value)];
  OperandValue loaded{read.word, type_of(read.tag)};
  if (operand == Operand::get) return loaded;
  if (loaded.type == ValueType::bytes)
    loaded.outcome = Outcome::type_mismatch;
  else if (loaded.word == std::uint64_t{1} << 63)
    loaded.outcome = Outcome::overflow;
  loaded.word = 0 - loaded.word;
  return loaded;
}

// The outcome of an operation: committed, or the outcome that undoes the transaction.
struct OperationEffect {
  Outcome outcome = Outcome::committed;
  bool wrote = false;
};

// Runs an operation of this kind on a key. It reads the record in one place and writes it in one place, because each
// call of the access is inlined, and some of them are large. `of`: ignored if the kind takes no operand.
template <class Space, class Access>
KILOKV_HOST_DEVICE inline OperationEffect run_on_key(const BatchViewIn<Space>& batch,
                                                     const ResultViewIn<Space>& results, Access& access,
                                                     std::uint32_t list_begin, std::uint32_t i, Version version,
                                                     OpKind kind, Operand of) {
  const std::uint32_t key = batch.op_key[i];
  OperandValue operand{0, ValueType::absent};  // stays absent for a GET and a DELETE
  if (takes_operand(kind)) operand = load_operand(batch, results, access, list_begin, i, version, of);
  if (operand.outcome != Outcome::committed) return {operand.outcome};
  Cell before{};  // a PUT of a value does not need it
  if (kind != OpKind::put || operand.type == ValueType::absent) before = access.read(key);
  switch (kind) {
    case OpKind::get:
      results.op_cell[i] = before;
      results.op_flags[i] = version_of(before.tag) == version ? BatchResults::kOwnWrite : 0;
      return {};
    case OpKind::put:
    case OpKind::del:
      if (operand.type != ValueType::absent || type_of(before.tag) != ValueType::absent) break;
      results.op_cell[i] = before;
      results.op_flags[i] = 0;
      return {};
    case OpKind::add: {
      if (operand.type == ValueType::bytes || type_of(before.tag) == ValueType::bytes) return {Outcome::type_mismatch};
      const CheckedSum sum =
          checked_add(static_cast<std::int64_t>(before.word), static_cast<std::int64_t>(operand.word));
      if (sum.overflow) return {Outcome::overflow};
      if (access.defers(i)) {
        results.op_cell[i] = Cell{operand.word, make_tag(version, ValueType::integer)};
        results.op_flags[i] = BatchResults::kWrote | BatchResults::kDelta;
        return {Outcome::committed, true};
      }
      operand = {static_cast<std::uint64_t>(sum.sum)};
      break;
    }
    case OpKind::range_get:
    case OpKind::delete_range:
    case OpKind::range_get_reverse: return {};  // run_operation() runs them
  }
  const Cell after{operand.word, make_tag(version, operand.type)};
  access.write(key, after);
  results.op_cell[i] = after;
  results.op_flags[i] = BatchResults::kWrote;
  return {Outcome::committed, true};
}

template <bool kUsualApart, class Space, class Access>
KILOKV_HOST_DEVICE inline OperationEffect run_operation(const BatchViewIn<Space>& batch,
                                                        const ResultViewIn<Space>& results, Access& access,
                                                        std::uint32_t list_begin, std::uint32_t i, Version version) {
  const auto kind = static_cast<OpKind>(batch.op_kind[i]);
  if constexpr (kUsualApart) {
    if (kind == OpKind::add && static_cast<Operand>(batch.op_operand[i]) == Operand::integer) [[likely]] {
      return run_on_key(batch, results, access, list_begin, i, version, OpKind::add, Operand::integer);
    }
  }
  switch (kind) {
    case OpKind::range_get:
    case OpKind::range_get_reverse:
      access.range_get(batch.op_key[i], version, is_reverse(kind));
      results.op_cell[i] = Cell{};
      results.op_flags[i] = 0;
      return {};
    case OpKind::delete_range: {
      const bool wrote = access.delete_range(batch.op_key[i], version);
      results.op_cell[i] = Cell{};
      results.op_flags[i] = wrote ? BatchResults::kWrote : 0;
      return {Outcome::committed, wrote};
    }
    case OpKind::get:
    case OpKind::put:
    case OpKind::del:
    case OpKind::add: {
      const Operand operand = takes_operand(kind) ? static_cast<Operand>(batch.op_operand[i]) : Operand::integer;
      return run_on_key(batch, results, access, list_begin, i, version, kind, operand);
    }
  }
  return {};
}

// Runs transaction t with the given rank. Fills its results, and leaves its writes in `access`. Returns its outcome.
// `postponed`: a WAIT guard was false, and nothing was written. `undecided`: the access stopped the run.
// `kUsualApart`: for CPUs. The usual operation, an ADD of a constant, then has code of its own. And in the first pass,
// the results of a transaction that commits and writes are there already (fill_usual()). On a device, both would only
// cost registers.
// `kExpires`: if a WAIT guard is false, the else-operations run, and the outcome is WAIT_EXPIRED.
template <bool kUsualApart = false, bool kExpires = false, class Space, class Access>
KILOKV_HOST_DEVICE inline Outcome run_transaction(const BatchViewIn<Space>& batch, const ResultViewIn<Space>& results,
                                                  Access& access, std::uint32_t t, std::uint32_t rank) {
  const Version version = batch.first_version + rank;
  const auto finish = [&](Outcome outcome, FailedIn failed_in, std::uint32_t failed_index, Cell cell, bool wrote) {
    if (kUsualApart && outcome == Outcome::committed && wrote && rank < batch.size) return outcome;
    results.outcome[t] = static_cast<std::uint8_t>(outcome);
    results.failed_in[t] = static_cast<std::uint8_t>(failed_in);
    results.failed_index[t] = failed_index;
    results.rank[t] = rank;
    results.wrote[t] = wrote ? 1 : 0;
    results.guard_cell[t] = cell;
    return outcome;
  };
  Outcome outcome = Outcome::committed;
  FailedIn failed_in = FailedIn::none;
  std::uint32_t failed_index = kNone;
  Cell guard_cell{};
  std::uint32_t begin = t == 0 ? 0 : batch.else_end[t - 1];
  std::uint32_t end = batch.then_end[t];
  const std::uint32_t guard_begin = t == 0 ? 0 : batch.guard_end[t - 1];
  for (std::uint32_t g = guard_begin; g < batch.guard_end[t]; ++g) {
    Cell seen;
    const Verdict verdict = evaluate_guard(batch, access, g, &seen);
    if (access.stopped()) return Outcome::undecided;
    if (verdict == Verdict::is_true) continue;
    if (verdict == Verdict::type_mismatch) {
      return finish(Outcome::type_mismatch, FailedIn::guards, g - guard_begin, Cell{}, false);
    }
    const bool waits = static_cast<OnFalse>(batch.guard_on_false[g]) == OnFalse::wait;
    if (waits && !kExpires) {
      return finish(Outcome::postponed, FailedIn::guards, g - guard_begin, seen, false);
    }
    outcome = kExpires && waits ? Outcome::wait_expired : Outcome::guard_failed;
    failed_in = FailedIn::guards;
    failed_index = g - guard_begin;
    guard_cell = seen;
    begin = end;
    end = batch.else_end[t];
    break;
  }
  access.begin(begin);
  bool wrote = false;
  for (std::uint32_t i = begin; i < end; ++i) {
    access.ahead(i);
    const OperationEffect effect = run_operation<kUsualApart>(batch, results, access, begin, i, version);
    if (access.stopped()) return Outcome::undecided;
    if (effect.outcome != Outcome::committed) {
      access.undo();
      const FailedIn list = outcome == Outcome::committed ? FailedIn::then_ops : FailedIn::else_ops;
      return finish(effect.outcome, list, i - begin, Cell{}, false);
    }
    wrote |= effect.wrote;
  }
  return finish(outcome, failed_in, failed_index, guard_cell, wrote);
}

}  // namespace kilokv::engine
