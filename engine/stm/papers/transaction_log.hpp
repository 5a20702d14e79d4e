// The log of one transaction: the records that it may touch, and what it has read and will write of each. The footprint
// of a transaction is static, so the records are known before it runs. A repeated read comes from the log, with the
// version of the first read. A second write changes the entry of the first one. A lock that covers several records is
// in the log once (docs/papers.md, gaps 4 and 7).
//
// Entries ascend by record. So the entries of one lock are neighbours, and locks ascend too. The first entry of a lock
// is its head. The head keeps what is known of the lock.
//
// Thread safety: only the thread that runs a transaction uses its entries. After a barrier, another thread may take
// over. Source: PR-STM, section 3.1 (read set, write set, lock set). Deviation: one log for the three.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/ticketed.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Flags of an entry. The kHead flags describe a lock, and are kept at the head of its entries.
enum EntryFlag : std::uint8_t {
  kEntryRead = 1,       // the cell is what was read, or what was written since then
  kEntryWritten = 2,    // the cell is to be written
  kHeadMayWrite = 4,    // an operation, of any list, may write a record of the lock
  kHeadVersion = 8,     // the version counts: the transaction read under it
  kHeadWrites = 16,     // a record of the lock is to be written
  kHeadPrelocked = 32,  // by this transaction
  kHeadLocked = 64,     // by this transaction
};

template <Platform P>
class TransactionLog {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE explicit TransactionLog(const TicketedArguments<Space>& arguments) : a_(arguments) {}

  // From now on this is the log of transaction t.
  KILOKV_HOST_DEVICE void open(std::uint32_t t) {
    transaction_ = t;
    guard_begin_ = t == 0 ? 0 : a_.batch.guard_end[t - 1];
    guard_end_ = a_.batch.guard_end[t];
    operation_begin_ = t == 0 ? 0 : a_.batch.else_end[t - 1];
    begin_ = 2 * guard_begin_ + operation_begin_;
    end_ = begin_ + a_.entry_count[t];
  }
  // Makes the entries. Called once in each batch.
  KILOKV_HOST_DEVICE void build(std::uint32_t t) {
    a_.entry_count[t] = 0;
    open(t);
    for_uses([&](std::uint32_t, std::uint32_t record) { a_.entry_record[end_++] = record; });
    sort();
    end_ = unique();
    a_.entry_count[t] = end_ - begin_;
    for (std::uint32_t e = begin_; e < end_; ++e) {
      a_.entry_flags[e] = 0;
      a_.entry_head[e] = e > begin_ && lock_of(e - 1) == lock_of(e) ? a_.entry_head[e - 1] : e;
    }
    for_uses([&](std::uint32_t use, std::uint32_t record) { a_.use_entry[use] = find(record); });
    for (std::uint32_t i = operation_begin_; i < operation_end(); ++i) {
      const std::uint32_t e = entry_of_operation(i);
      const bool writes = a_.batch.op_kind[i] != static_cast<std::uint8_t>(OpKind::get);
      if (writes && record(e) != a_.absent_record) add(head(e), kHeadMayWrite);
    }
  }
  // Forgets what a run left in the log.
  KILOKV_HOST_DEVICE void clear() {
    for (std::uint32_t e = begin_; e < end_; ++e) remove(e, static_cast<std::uint8_t>(~kHeadMayWrite));
  }

  KILOKV_HOST_DEVICE std::uint32_t transaction() const { return transaction_; }
  KILOKV_HOST_DEVICE std::uint32_t begin() const { return begin_; }
  KILOKV_HOST_DEVICE std::uint32_t end() const { return end_; }
  KILOKV_HOST_DEVICE std::uint32_t operation_end() const { return a_.batch.else_end[transaction_]; }
  // `use`: the number that the interpreter gives to a use of a record by a guard, counted over the batch.
  KILOKV_HOST_DEVICE std::uint32_t entry_of_guard(std::uint32_t use) const {
    return a_.use_entry[operation_begin_ + use];
  }
  KILOKV_HOST_DEVICE std::uint32_t entry_of_operation(std::uint32_t operation) const {
    return a_.use_entry[2 * guard_end_ + operation];
  }
  KILOKV_HOST_DEVICE std::uint32_t record(std::uint32_t e) const { return a_.entry_record[e]; }
  KILOKV_HOST_DEVICE std::uint32_t head(std::uint32_t e) const { return a_.entry_head[e]; }
  KILOKV_HOST_DEVICE std::uint32_t lock_of(std::uint32_t e) const {
    return a_.entry_record[e] / a_.tuning.records_per_lock;
  }
  KILOKV_HOST_DEVICE bool has(std::uint32_t e, std::uint8_t flags) const { return (a_.entry_flags[e] & flags) != 0; }
  KILOKV_HOST_DEVICE void add(std::uint32_t e, std::uint8_t flags) {
    a_.entry_flags[e] = static_cast<std::uint8_t>(a_.entry_flags[e] | flags);
  }
  KILOKV_HOST_DEVICE void remove(std::uint32_t e, std::uint8_t flags) {
    a_.entry_flags[e] = static_cast<std::uint8_t>(a_.entry_flags[e] & ~flags);
  }
  KILOKV_HOST_DEVICE std::uint64_t version(std::uint32_t head) const { return a_.entry_version[head]; }
  KILOKV_HOST_DEVICE void set_version(std::uint32_t head, std::uint64_t version) { a_.entry_version[head] = version; }
  KILOKV_HOST_DEVICE Cell cell(std::uint32_t e) const {
    return {a_.entry_cell[2 * std::uint64_t{e}], a_.entry_cell[2 * std::uint64_t{e} + 1]};
  }
  KILOKV_HOST_DEVICE void set_cell(std::uint32_t e, Cell cell) {
    a_.entry_cell[2 * std::uint64_t{e}] = cell.word;
    a_.entry_cell[2 * std::uint64_t{e} + 1] = cell.tag;
  }

  // Calls f(head) for each lock that has all the flags, in ascending order, until f returns false. Returns whether f
  // never returned false.
  template <class F>
  KILOKV_HOST_DEVICE bool for_heads(std::uint8_t flags, const F& f) const {
    for (std::uint32_t e = begin_; e < end_; ++e) {
      if (a_.entry_head[e] == e && (a_.entry_flags[e] & flags) == flags && !f(e)) return false;
    }
    return true;
  }
  // Whether all the transaction's records under this lock are absent keys that no operation of the batch may create.
  // Then the lock need not be taken.
  KILOKV_HOST_DEVICE bool is_idle(std::uint32_t head) const {
    return record(head) == a_.absent_record && (head + 1 == end_ || a_.entry_head[head + 1] != head);
  }

  // Whether an operand is the transaction's own commit version. Then the transaction can run only when this version is
  // known.
  KILOKV_HOST_DEVICE bool uses_commit_version() const {
    for (std::uint32_t i = operation_begin_; i < operation_end(); ++i) {
      if (a_.batch.op_operand[i] == static_cast<std::uint8_t>(Operand::commit_version)) return true;
    }
    return false;
  }

  // Loads the record from memory. Other threads may change it at the same time.
  KILOKV_HOST_DEVICE Cell load(P& p, std::uint32_t e) const {
    const auto at = a_.cells + 2 * std::uint64_t{record(e)};
    return {p.load(at, Order::relaxed, Scope::device), p.load(at + 1, Order::relaxed, Scope::device)};
  }
  // Stores all that is to be written. Other threads may read it at the same time.
  KILOKV_HOST_DEVICE void store_written(P& p) const {
    for (std::uint32_t e = begin_; e < end_; ++e) {
      if (!has(e, kEntryWritten)) continue;
      const auto at = a_.cells + 2 * std::uint64_t{record(e)};
      const Cell written = cell(e);
      p.store(at, written.word, Order::relaxed, Scope::device);
      p.store(at + 1, written.tag, Order::relaxed, Scope::device);
    }
  }

  // The transaction ran as if its rank were `ran_as`. Replaces the commit version of `ran_as` by that of `rank`, in its
  // results and in its entries to be written.
  KILOKV_HOST_DEVICE void stamp(Outcome outcome, std::uint32_t ran_as, std::uint32_t rank) {
    stamp_results(outcome, ran_as, rank);
    const Version version = a_.batch.first_version + rank;
    for (std::uint32_t e = begin_; e < end_; ++e) {
      if (!has(e, kEntryWritten)) continue;
      const Cell written = cell(e);
      set_cell(e, {written.word, make_tag(version, type_of(written.tag))});
    }
  }
  // The same for the results only.
  KILOKV_HOST_DEVICE void stamp_results(Outcome outcome, std::uint32_t ran_as, std::uint32_t rank) {
    a_.results.rank[transaction_] = rank;
    const Version before = a_.batch.first_version + ran_as;
    const Version version = a_.batch.first_version + rank;
    const std::uint32_t middle = a_.batch.then_end[transaction_];
    const bool ran_else = outcome == Outcome::guard_failed;
    for (std::uint32_t i = ran_else ? middle : operation_begin_; i < (ran_else ? operation_end() : middle); ++i) {
      const Cell cell = a_.results.op_cell[i];
      if (version_of(cell.tag) == before) a_.results.op_cell[i] = {cell.word, make_tag(version, type_of(cell.tag))};
    }
  }

 private:
  // Calls f(use, record) for each use of a record.
  template <class F>
  KILOKV_HOST_DEVICE void for_uses(const F& f) const {
    for (std::uint32_t g = guard_begin_; g < guard_end_; ++g) {
      const std::uint32_t use = operation_begin_ + 2 * g;
      const std::uint32_t key = a_.batch.guard_key[g], other = a_.batch.guard_other[g];
      if (key != kNone) f(use, a_.record_of_key[key]);
      if (other != kNone) f(use + 1, a_.record_of_key[other]);
    }
    for (std::uint32_t i = operation_begin_; i < operation_end(); ++i) {
      f(2 * guard_end_ + i, a_.record_of_key[a_.batch.op_key[i]]);
    }
  }
  KILOKV_HOST_DEVICE void sort() {
    const std::uint32_t count = end_ - begin_;
    if (count > kInsertionMax) return heap_sort(count);
    for (std::uint32_t e = begin_ + 1; e < end_; ++e) {
      const std::uint32_t record = a_.entry_record[e];
      std::uint32_t to = e;
      for (; to > begin_ && a_.entry_record[to - 1] > record; --to) a_.entry_record[to] = a_.entry_record[to - 1];
      a_.entry_record[to] = record;
    }
  }
  KILOKV_HOST_DEVICE void heap_sort(std::uint32_t count) {
    for (std::uint32_t i = count / 2; i-- > 0;) sift_down(i, count);
    for (std::uint32_t size = count; size-- > 1;) {
      const std::uint32_t greatest = a_.entry_record[begin_];
      a_.entry_record[begin_] = a_.entry_record[begin_ + size];
      a_.entry_record[begin_ + size] = greatest;
      sift_down(0, size);
    }
  }
  KILOKV_HOST_DEVICE void sift_down(std::uint32_t at, std::uint32_t size) {
    const std::uint32_t record = a_.entry_record[begin_ + at];
    for (std::uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && a_.entry_record[begin_ + child + 1] > a_.entry_record[begin_ + child]) ++child;
      if (a_.entry_record[begin_ + child] <= record) break;
      a_.entry_record[begin_ + at] = a_.entry_record[begin_ + child];
      at = child;
    }
    a_.entry_record[begin_ + at] = record;
  }
  // Removes equal neighbours. Returns the new end.
  KILOKV_HOST_DEVICE std::uint32_t unique() {
    std::uint32_t kept = begin_;
    for (std::uint32_t e = begin_; e < end_; ++e) {
      if (kept == begin_ || a_.entry_record[kept - 1] != a_.entry_record[e])
        a_.entry_record[kept++] = a_.entry_record[e];
    }
    return kept;
  }
  KILOKV_HOST_DEVICE std::uint32_t find(std::uint32_t record) const {
    std::uint32_t low = begin_;
    std::uint32_t high = end_ - 1;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (a_.entry_record[middle] < record) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  static constexpr std::uint32_t kInsertionMax = 24;  // uses; more are sorted by heap sort

  const TicketedArguments<Space>& a_;
  std::uint32_t transaction_ = 0;
  std::uint32_t guard_begin_ = 0, guard_end_ = 0, operation_begin_ = 0;
  std::uint32_t begin_ = 0, end_ = 0;  // entries
};

// The rules. A mutation (docs/papers.md, section 1) is this struct with one rule taken away.
struct LogRules : TicketedRules {
  static constexpr bool kFindsOwnWrites = true;  // a read sees the transaction's own write
  static constexpr bool kLogsReads = true;       // a second read gives what the first read gave
};

// How a transaction reads and writes records, through its log. This is the Access of the interpreter
// (txn/interpreter.hpp). Reader has:
//   Cell fetch(entry)  reads the record of the entry for the first time
//   bool stopped()     whether a record could not be read
template <Platform P, class Reader, class Rules = LogRules>
class LoggedAccess {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE LoggedAccess(const TicketedArguments<Space>& arguments, TransactionLog<P>* log, Reader* reader)
      : a_(arguments), log_(log), reader_(reader) {}

  KILOKV_HOST_DEVICE Cell read(std::uint32_t) const { return read_entry(log_->entry_of_operation(operation_)); }
  KILOKV_HOST_DEVICE Cell read_of_guard(std::uint32_t, std::uint32_t use) const {
    return read_entry(log_->entry_of_guard(use));
  }
  KILOKV_HOST_DEVICE bool stopped() const { return reader_->stopped(); }
  KILOKV_HOST_DEVICE void write(std::uint32_t, Cell cell) {
    const std::uint32_t e = log_->entry_of_operation(operation_);
    log_->set_cell(e, cell);
    log_->add(e, kEntryWritten);
    log_->add(log_->head(e), kHeadWrites);
  }
  KILOKV_HOST_DEVICE void begin(std::uint32_t) {}
  // The transaction ends with this. So nothing asks any more for what it read before it wrote.
  KILOKV_HOST_DEVICE void undo() {
    for (std::uint32_t e = log_->begin(); e < log_->end(); ++e) log_->remove(e, kEntryWritten | kHeadWrites);
  }
  KILOKV_HOST_DEVICE void ahead(std::uint32_t operation) { operation_ = operation; }
  KILOKV_HOST_DEVICE static constexpr bool defers(std::uint32_t) { return false; }
  KILOKV_HOST_DEVICE std::uint64_t value_word(std::uint32_t value) const { return a_.value_word[value]; }
  KILOKV_HOST_DEVICE bool bytes_equal(Cell cell, std::uint32_t value) const { return a_.bytes_equal(cell, value); }
  // Batches with ranges do not run here.
  KILOKV_HOST_DEVICE bool range_unchanged(std::uint32_t, Version) const { return false; }
  KILOKV_HOST_DEVICE void range_get(std::uint32_t, Version, bool) {}
  KILOKV_HOST_DEVICE bool delete_range(std::uint32_t, Version) { return false; }

 private:
  KILOKV_HOST_DEVICE Cell read_entry(std::uint32_t e) const {
    const int logged = (Rules::kLogsReads ? kEntryRead : 0) | (Rules::kFindsOwnWrites ? kEntryWritten : 0);
    if (log_->has(e, static_cast<std::uint8_t>(logged))) return log_->cell(e);
    const Cell cell = reader_->fetch(e);
    if (reader_->stopped() || log_->has(e, kEntryWritten)) return cell;
    log_->set_cell(e, cell);
    log_->add(e, kEntryRead);
    return cell;
  }

  const TicketedArguments<Space>& a_;
  TransactionLog<P>* log_;
  Reader* reader_;
  std::uint32_t operation_ = 0;  // the operation that runs
};

}  // namespace kilokv::engine
