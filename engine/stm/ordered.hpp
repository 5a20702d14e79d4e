// `ordered`: the specification of a batch (DESIGN section 2) in parallel, bit for bit what `serial` gives, on any
// number of threads. Deterministic rounds inside each pass, after deterministic reservations (Yu et al., "Aria", VLDB
// 2020):
//
//   reserve  every undecided transaction enters its position at each record that it may read, write or add to: the
//            lowest position stays
//   decide   one runs, in place, when no older undecided one may write what it reads or writes, or may read what it
//            writes. ADDs to a record commute: older adders do not stop an adder
//
// with a barrier behind each. The oldest undecided one always runs, so that a pass ends. Deviations from Aria: who must
// wait stays in the batch and goes on in the next round; the order is the batch's, fixed; the rule of the older reader
// (without it T2 could overtake a T1 that reads what T2 writes, while T1 waits for T0); ADDs.
//
// ADDs. One counts as an adder where its delta is known before it runs, and its record stands once in the transaction.
// Adders of one record run in any order and at once, as atomic additions, when the record is an integer or absent and
// base and sum of all the batch's deltas, taken by size, cannot overflow: then no partial sum can, in any order.
// Otherwise they are chained: an adder waits for the older ones. What an adder leaves is settled behind the batch
// (BatchResults::kDelta), in rank order; who asks for the value is a reader, and waits for the older adders, while
// younger ones wait for it.
//
// Tail: where a round decides few (a chain on a hot record), the first thread runs the rest of the pass one by one.
//
// Reservations are tagged by epoch (a round), later ones lower, so that nothing is cleared between rounds or batches.
// Memory is that of OrderedArguments; nothing is allocated. Ranges are not for it: they name no records.
//
// Thread safety: each thread of the grid makes one OrderedRun and calls run() once; nothing else may touch the
// arguments' memory meanwhile.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/txn/interpreter.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// When the rest of a pass runs one by one: a round has decided fewer than `decided_min`, or fewer than 1 in `divisor`
// of those that it had (0: never).
struct OrderedTuning {
  std::uint32_t decided_min = 0;
  std::uint32_t divisor = 0;
};

// What a thread counts.
struct OrderedCounts {
  std::uint64_t decided = 0, reservations = 0, chained_adds = 0, postponed = 0;
};

// Words that all threads share; all zero at the start.
enum OrderedWord : std::uint32_t {
  kWordDecided,    // transactions that left a round, postponed ones included, so far
  kWordPostponed,  // of these
  kWordPasses,     // out
  kWordRounds,     // out
  kWordTail,       // out
  kOrderedWords,
};

// The roles of a transaction at a record, as they are reserved: the words of a record.
enum class Role : std::uint8_t { read, write, add };
inline constexpr std::uint32_t kRoles = 3;

// With n transactions, m operations and d records:
template <class Space>
struct OrderedArguments : BatchArguments<Space> {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> reservations = {};  // [kRoles x d] of older epochs
  Pointer<std::uint64_t> delta_sums = {};    // [d] zero at the start
  Pointer<std::uint8_t> op_adds = {};        // [m] scratch: 1: an adder
  Pointer<std::uint64_t> undo = {};          // [2m] scratch: what each write replaced
  Pointer<std::uint32_t> pass_of = {};       // [n] scratch: the pass that a position waits for
  Pointer<std::uint32_t> undecided = {};     // [position_room(n, threads, width)] scratch
  Pointer<std::uint64_t> words = {};         // [kOrderedWords]
  Pointer<OrderedCounts> counts = {};        // [threads] out
  std::uint32_t first_epoch = 0;             // this batch's rounds are the epochs behind it
  std::uint64_t delta_max = 0;               // an ADD of more is not an adder; all together: < 2^63
  OrderedTuning tuning;
};

// More epochs than a batch of n transactions can use.
constexpr std::uint64_t ordered_epochs_max(std::uint64_t n) { return n * kWaitPassesMax + kWaitPassesMax + 1; }

// The largest delta that may count as an adder, where a batch has so many operations.
constexpr std::uint64_t ordered_delta_max(std::uint64_t operations) {
  return (std::uint64_t{1} << 62) / (operations + 1);
}

// What a planted bug takes away, for the tests of the tests.
struct OrderedRules {
  static constexpr bool kOlderReader = true;          // who writes waits for older readers
  static constexpr bool kTagsReads = true;            // readers' reservations carry their epoch
  static constexpr bool kBarrierBeforeDecide = true;  // all have reserved before anybody decides
  static constexpr bool kBoundsDeltas = true;         // adders of a record that could overflow are chained
};

// One transaction's way to the records, as the interpreter wants it (txn/interpreter.hpp).
template <Platform P>
class OrderedAccess {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE OrderedAccess(P& platform, const OrderedArguments<Space>& arguments)
      : p_(platform), a_(arguments) {}

  KILOKV_HOST_DEVICE Cell read(std::uint32_t key) const {
    const auto cell = a_.cells + 2 * static_cast<std::uint64_t>(a_.record_of_key[key]);
    if (adds_) return {p_.load(cell, Order::relaxed, Scope::device), p_.load(cell + 1, Order::relaxed, Scope::device)};
    return {p_.get(cell), p_.get(cell + 1)};
  }
  KILOKV_HOST_DEVICE Cell read_of_guard(std::uint32_t key, std::uint32_t) const { return read(key); }
  KILOKV_HOST_DEVICE static constexpr bool stopped() { return false; }
  KILOKV_HOST_DEVICE void write(std::uint32_t key, Cell cell) {
    const auto at = a_.cells + 2 * static_cast<std::uint64_t>(a_.record_of_key[key]);
    const auto undo = a_.undo + 2 * static_cast<std::uint64_t>(operation_);
    undo[0] = p_.get(at);
    undo[1] = p_.get(at + 1);
    p_.put(at, cell.word);
    p_.put(at + 1, cell.tag);
  }
  KILOKV_HOST_DEVICE void begin() {}
  // Backwards, so that of a record that was written twice the older image stays. The operation that runs wrote nothing.
  KILOKV_HOST_DEVICE void undo() {
    for (std::uint32_t i = operation_; i-- > first_;) {
      if ((a_.results.op_flags[i] & (BatchResults::kWrote | BatchResults::kDelta)) != BatchResults::kWrote) continue;
      const auto at = a_.cells + 2 * static_cast<std::uint64_t>(a_.record_of_key[a_.batch.op_key[i]]);
      const auto undo = a_.undo + 2 * static_cast<std::uint64_t>(i);
      p_.put(at, undo[0]);
      p_.put(at + 1, undo[1]);
    }
  }
  KILOKV_HOST_DEVICE void ahead(std::uint32_t operation) {
    if (first_ == kNone) first_ = operation;
    operation_ = operation;
    adds_ = a_.op_adds[operation] != 0;
  }
  KILOKV_HOST_DEVICE bool defers(std::uint32_t operation) const { return a_.op_adds[operation] != 0; }
  KILOKV_HOST_DEVICE std::uint64_t value_word(std::uint32_t value) const { return a_.value_word[value]; }
  KILOKV_HOST_DEVICE bool bytes_equal(Cell cell, std::uint32_t value) const { return a_.bytes_equal(cell, value); }
  // Batches with ranges do not come here.
  KILOKV_HOST_DEVICE bool range_unchanged(std::uint32_t, Version) const { return false; }
  KILOKV_HOST_DEVICE void range_get(std::uint32_t, Version) {}
  KILOKV_HOST_DEVICE bool delete_range(std::uint32_t, Version) { return false; }

 private:
  P& p_;
  const OrderedArguments<Space>& a_;
  std::uint32_t first_ = kNone;  // operation of the list that runs
  std::uint32_t operation_ = 0;  // that runs
  bool adds_ = false;            // it is an adder: others may add at the same time
};

template <Platform P, class Rules = OrderedRules>
class OrderedRun {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE OrderedRun(P& platform, const OrderedArguments<Space>& arguments)
      : p_(platform),
        a_(arguments),
        size_(arguments.batch.size),
        tile_(position_tile(size_, platform.threads(), P::kGroupWidth)),
        epoch_(arguments.first_epoch) {}

  // Fills every column of the results that it views, but for the cells of adders; the cells; words and counts.
  KILOKV_HOST_DEVICE void run() {
    for_own_positions([&](std::uint32_t position) { prepare(position); });
    p_.grid_barrier();
    std::uint32_t passes = 0;
    std::uint32_t waiting = size_;
    std::uint32_t finished = size_;
    while (waiting > 0 && finished > 0 && passes < kWaitPassesMax) {
      const std::uint32_t postponed = run_pass(passes, waiting);
      finished = waiting - postponed;
      waiting = postponed;
      ++passes;
    }
    for_own_positions([&](std::uint32_t position) { expire(position, passes); });
    a_.counts[p_.thread()] = counts_;
    if (p_.thread() != 0) return;
    p_.put(a_.words + kWordPasses, passes);
    p_.put(a_.words + kWordRounds, rounds_);
    p_.put(a_.words + kWordTail, tail_);
  }

 private:
  static constexpr std::uint32_t kDone = kNone;
  static constexpr std::uint32_t kUsesMax =
      64;  // of a transaction that may have adders: each use is compared with each

  struct Operations {
    std::uint32_t begin, end;
  };

  template <class F>
  KILOKV_HOST_DEVICE void for_own_positions(const F& f) const {
    for (std::uint32_t first = p_.thread() * tile_; first < size_; first += p_.threads() * tile_) {
      const std::uint32_t end = first + tile_ < size_ ? first + tile_ : size_;
      for (std::uint32_t position = first; position < end; ++position) f(position);
    }
  }
  KILOKV_HOST_DEVICE std::uint32_t transaction_at(std::uint32_t position) const { return a_.transaction_at(position); }
  KILOKV_HOST_DEVICE Operations operations_of(std::uint32_t t) const {
    return {t == 0 ? 0 : a_.batch.else_end[t - 1], a_.batch.else_end[t]};
  }
  KILOKV_HOST_DEVICE std::uint32_t record_of(std::uint32_t key) const { return a_.record_of_key[key]; }

  // Calls f(role, record) for what transaction t may read, write or add to, until it returns false; whether all did
  // not.
  template <class F>
  KILOKV_HOST_DEVICE bool for_uses(std::uint32_t t, const F& f) const {
    for (std::uint32_t g = t == 0 ? 0 : a_.batch.guard_end[t - 1]; g < a_.batch.guard_end[t]; ++g) {
      if (!f(Role::read, record_of(a_.batch.guard_key[g]))) return false;
      const std::uint32_t other = a_.batch.guard_other[g];
      if (other != kNone && !f(Role::read, record_of(other))) return false;
    }
    const Operations operations = operations_of(t);
    for (std::uint32_t i = operations.begin; i < operations.end; ++i) {
      const std::uint32_t record = record_of(a_.batch.op_key[i]);
      if (!f(role_of(i, record), record)) return false;
    }
    return true;
  }
  // A DELETE of what is not there, and which nobody may create, writes nothing.
  KILOKV_HOST_DEVICE Role role_of(std::uint32_t operation, std::uint32_t record) const {
    if (a_.batch.op_kind[operation] == static_cast<std::uint8_t>(OpKind::get)) return Role::read;
    if (record == a_.absent_record) return Role::read;
    return a_.op_adds[operation] != 0 ? Role::add : Role::write;
  }

  // Before the first round.
  KILOKV_HOST_DEVICE void prepare(std::uint32_t position) {
    const std::uint32_t t = transaction_at(position);
    const Operations operations = operations_of(t);
    const std::uint32_t guards = a_.batch.guard_end[t] - (t == 0 ? 0 : a_.batch.guard_end[t - 1]);
    const bool small = 2 * guards + (operations.end - operations.begin) <= kUsesMax;
    for (std::uint32_t i = operations.begin; i < operations.end; ++i) a_.op_adds[i] = 0;
    for (std::uint32_t i = operations.begin; small && i < operations.end; ++i) {
      if (a_.batch.op_kind[i] != static_cast<std::uint8_t>(OpKind::add)) continue;
      const std::uint64_t size = delta_size(i);
      const std::uint32_t record = record_of(a_.batch.op_key[i]);
      if (size > a_.delta_max || !stands_once(t, record)) continue;
      a_.op_adds[i] = 1;
      p_.fetch_add(a_.delta_sums + record, size, Order::relaxed, Scope::device);
    }
    p_.put(a_.pass_of + position, 0);
  }
  // The most that the ADD may change its record by; above any limit where that is not known.
  KILOKV_HOST_DEVICE std::uint64_t delta_size(std::uint32_t operation) const {
    std::int64_t delta = 0;
    switch (static_cast<Operand>(static_cast<std::uint8_t>(a_.batch.op_operand[operation]))) {
      case Operand::integer: delta = a_.batch.op_value[operation]; break;
      case Operand::batch_time: delta = a_.batch.time_us; break;
      case Operand::commit_version: return a_.batch.first_version + (std::uint64_t{kWaitPassesMax} + 1) * size_;
      default: return ~std::uint64_t{0};
    }
    return delta < 0 ? 0 - static_cast<std::uint64_t>(delta) : static_cast<std::uint64_t>(delta);
  }
  KILOKV_HOST_DEVICE bool stands_once(std::uint32_t t, std::uint32_t record) const {
    std::uint32_t times = 0;
    for_uses(t, [&](Role, std::uint32_t used) {
      times += used == record ? 1 : 0;
      return times < 2;
    });
    return times == 1;
  }

  // Runs those that wait for this pass, `size` of all threads; returns how many were postponed.
  KILOKV_HOST_DEVICE std::uint32_t run_pass(std::uint32_t pass, std::uint32_t size) {
    std::uint32_t undecided = 0;
    for_own_positions([&](std::uint32_t position) {
      if (p_.get(a_.pass_of + position) == pass) a_.undecided[own_slot(undecided++)] = position;
    });
    while (size > 0) {
      ++epoch_;
      ++rounds_;
      for (std::uint32_t i = 0; i < undecided; ++i) reserve(a_.undecided[own_slot(i)]);
      if (Rules::kBarrierBeforeDecide) p_.grid_barrier();
      undecided = decide_all(pass, undecided);
      p_.grid_barrier();
      const std::uint64_t decided = p_.load(a_.words + kWordDecided, Order::relaxed, Scope::device) - decided_;
      decided_ += decided;
      const bool few = is_few(decided, size);
      size -= static_cast<std::uint32_t>(decided);
      if (size == 0 || !few) continue;
      tail_ += size;
      if (p_.thread() == 0) run_tail(pass);
      p_.grid_barrier();
      break;
    }
    const std::uint64_t postponed = p_.load(a_.words + kWordPostponed, Order::relaxed, Scope::device) - postponed_;
    postponed_ += postponed;
    return static_cast<std::uint32_t>(postponed);
  }
  KILOKV_HOST_DEVICE std::uint32_t own_slot(std::uint32_t i) const { return p_.thread() + i * p_.threads(); }
  KILOKV_HOST_DEVICE bool is_few(std::uint64_t decided, std::uint32_t size) const {
    return decided < a_.tuning.decided_min || (a_.tuning.divisor != 0 && decided < size / a_.tuning.divisor);
  }

  KILOKV_HOST_DEVICE std::uint64_t tag(std::uint32_t position) const {
    return static_cast<std::uint64_t>(~epoch_) << 32 | position;
  }
  KILOKV_HOST_DEVICE auto reservation(std::uint32_t record, Role role) const {
    return a_.reservations + (static_cast<std::uint64_t>(record) * kRoles + static_cast<std::uint32_t>(role));
  }
  KILOKV_HOST_DEVICE void reserve(std::uint32_t position) {
    for_uses(transaction_at(position), [&](Role role, std::uint32_t record) {
      const std::uint64_t mine = !Rules::kTagsReads && role == Role::read ? position : tag(position);
      const auto word = reservation(record, role);
      if (p_.load(word, Order::relaxed, Scope::device) > mine) {
        p_.fetch_min(word, mine, Order::relaxed, Scope::device);
      }
      ++counts_.reservations;
      return true;
    });
  }

  // Runs those of the thread's undecided ones that may run now; returns how many are left.
  KILOKV_HOST_DEVICE std::uint32_t decide_all(std::uint32_t pass, std::uint32_t undecided) {
    std::uint32_t left = 0;
    const std::uint64_t postponed = counts_.postponed;
    for (std::uint32_t i = 0; i < undecided; ++i) {
      const std::uint32_t position = a_.undecided[own_slot(i)];
      if (may_run(position)) {
        run_one(position, pass);
      } else {
        a_.undecided[own_slot(left++)] = position;
      }
    }
    if (left == undecided) return left;
    p_.fetch_add(a_.words + kWordDecided, undecided - left, Order::relaxed, Scope::device);
    if (counts_.postponed > postponed) {
      p_.fetch_add(a_.words + kWordPostponed, counts_.postponed - postponed, Order::relaxed, Scope::device);
    }
    return left;
  }
  KILOKV_HOST_DEVICE bool has_older(std::uint32_t record, Role role, std::uint64_t mine) const {
    return p_.load(reservation(record, role), Order::relaxed, Scope::device) < mine;
  }
  KILOKV_HOST_DEVICE bool may_run(std::uint32_t position) {
    const std::uint64_t mine = tag(position);
    return for_uses(transaction_at(position), [&](Role role, std::uint32_t record) {
      if (has_older(record, Role::write, mine)) return false;
      if (role == Role::read) return !has_older(record, Role::add, mine);
      if (Rules::kOlderReader && has_older(record, Role::read, mine)) return false;
      if (!has_older(record, Role::add, mine)) return true;
      if (role == Role::write) return false;
      if (commutes(record)) return true;
      ++counts_.chained_adds;
      return false;
    });
  }
  // Whether no sum of any of the batch's deltas leaves the record's range. Other adders may be at it: then the sum
  // still covers what they have added, and what they will.
  KILOKV_HOST_DEVICE bool commutes(std::uint32_t record) const {
    const auto cell = a_.cells + 2 * static_cast<std::uint64_t>(record);
    if (type_of(p_.load(cell + 1, Order::relaxed, Scope::device)) == ValueType::bytes) return false;
    if (!Rules::kBoundsDeltas) return true;
    const std::uint64_t word = p_.load(cell, Order::relaxed, Scope::device);
    const std::uint64_t size = word >> 63 != 0 ? 0 - word : word;
    return size + p_.load(a_.delta_sums + record, Order::relaxed, Scope::device) < std::uint64_t{1} << 63;
  }

  KILOKV_HOST_DEVICE void run_one(std::uint32_t position, std::uint32_t pass) {
    const std::uint32_t t = transaction_at(position);
    OrderedAccess<P> access(p_, a_);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, t, pass * size_ + position);
    if (outcome == Outcome::postponed) {
      ++counts_.postponed;
      p_.put(a_.pass_of + position, pass + 1);
      return;
    }
    ++counts_.decided;
    p_.put(a_.pass_of + position, kDone);
    if (a_.results.wrote[t] != 0) apply_deltas(t, outcome);
  }
  KILOKV_HOST_DEVICE void apply_deltas(std::uint32_t t, Outcome outcome) {
    const Operations all = operations_of(t);
    const std::uint32_t middle = a_.batch.then_end[t];
    const Operations ran =
        outcome == Outcome::guard_failed ? Operations{middle, all.end} : Operations{all.begin, middle};
    for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
      if ((a_.results.op_flags[i] & BatchResults::kDelta) == 0) continue;
      const Cell delta = a_.results.op_cell[i];
      const auto cell = a_.cells + 2 * static_cast<std::uint64_t>(record_of(a_.batch.op_key[i]));
      p_.fetch_add(cell, delta.word, Order::relaxed, Scope::device);
      p_.fetch_max(cell + 1, delta.tag, Order::relaxed, Scope::device);
    }
  }
  // The first thread alone. The words of the rounds stay: others may still read them.
  KILOKV_HOST_DEVICE void run_tail(std::uint32_t pass) {
    const std::uint64_t postponed = counts_.postponed;
    for (std::uint32_t position = 0; position < size_; ++position) {
      if (p_.get(a_.pass_of + position) == pass) run_one(position, pass);
    }
    p_.fetch_add(a_.words + kWordPostponed, counts_.postponed - postponed, Order::relaxed, Scope::device);
  }

  KILOKV_HOST_DEVICE void expire(std::uint32_t position, std::uint32_t passes) {
    if (p_.get(a_.pass_of + position) == kDone) return;
    const std::uint32_t t = transaction_at(position);
    a_.results.rank[t] = passes * size_ + position;
    if (a_.last_try[t] != 0) a_.results.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
  }

  P& p_;
  const OrderedArguments<Space>& a_;
  const std::uint32_t size_;
  const std::uint32_t tile_;
  std::uint32_t epoch_;
  std::uint64_t decided_ = 0, postponed_ = 0;  // of the shared words, as far as all threads have seen them
  std::uint32_t rounds_ = 0, tail_ = 0;
  OrderedCounts counts_;
};

}  // namespace kilokv::engine
