// `ordered`: runs the specification of a batch (docs/transactions.md, section 7) in parallel, on any number of threads.
// Its results are those of `serial`, bit for bit. It works in deterministic rounds, like deterministic reservations (Lu
// et al., "Aria", VLDB 2020; docs/papers.md, section 8):
//
//   reserve  Every undecided transaction enters its place at each record that it may read, write or add to. The record
//            keeps the lowest place.
//   decide   A transaction runs, in place, if no older undecided transaction may write what it reads or writes, or may
//            read what it writes. ADDs to a record commute: older adders do not stop an adder.
//
// A transaction that is still undecided reserves for the next round at once, in a second set of words. So one barrier
// for each round is enough.
//
// Deviations from Aria:
//   - A transaction that must wait stays in the batch and goes on in the next round.
//   - The order is fixed. It is the order of the batch.
//   - A transaction waits for older readers of what it writes. Otherwise T2 could overtake a T1 that reads what T2
//     writes, while T1 waits for T0 (docs/papers.md, gap 10).
//   - ADDs, and passes.
//
// Passes overlap. The place of a transaction is pass x n + position, as its rank is. A transaction that is postponed
// moves to a later place. The next pass opens when one transaction of the last open pass was decided. The transactions
// of the new pass reserve in the following round, and may run from the round after that on, as soon as no older
// transaction stops them. So the passes are those of the specification, which end when a pass finishes none.
//
// ADDs. An ADD counts as an adder if its delta is known before it runs, and if its transaction uses the record only
// once. Adders of one record run at the same time and in any order, as atomic additions. This needs two conditions: the
// record is an integer or absent, and its value plus the sum of all the batch's deltas, each by its absolute value,
// cannot overflow. Then no partial sum can overflow, in any order. Otherwise the adders are chained: each waits for the
// older ones. The value that an adder leaves is computed after the batch, in rank order (BatchResults::kDelta). A
// transaction that needs the value is a reader. It waits for the older adders, and younger adders wait for it.
//
// Tail. Where a round decides few transactions (chains on hot records), those that may run in this round are cut into
// chains. Two chains have no record in common that a transaction of one of them may change. One group walks each chain,
// pass by pass and place by place. All chains are walked at the same time. Two transactions that share such a record
// take over the lower of their two chain numbers. This is done in sweeps with a barrier between them, until nothing
// changes. The first thread runs all of them one by one instead, if there would be too many sweeps, if few transactions
// are left, or if the tuning says so (OrderedTuning).
//
// Watchdog. Each round decides or postpones a transaction, or opens a pass. A round that does none of this can only
// come from a bug, or from memory that does not hold what was stored there. Such rounds must not go on forever: after a
// few of them in a row (OrderedTuning) all threads give the batch up.
//
// Reservations are tagged with their epoch (the number of the round). Later epochs have lower tags, so nothing is
// cleared between rounds or batches. Rounds use two sets of words in turn: one decides the round, while reservations
// are made in the other. All memory is that of OrderedArguments, and nothing is allocated. Batches with ranges do not
// run here, because ranges do not name records.
//
// Thread safety: each thread of the grid makes one OrderedRun and calls run() once. Nothing else may touch the memory
// of the arguments meanwhile.
#pragma once

#include <cstdint>

#include "engine/base/bits.hpp"
#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/ordered_arguments.hpp"
#include "engine/txn/interpreter.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// The rules. A mutation (docs/papers.md, section 1) is this struct with one rule taken away.
struct OrderedRules {
  static constexpr bool kOlderReader = true;          // a writer waits for older readers (gap 10)
  static constexpr bool kTagsReads = true;            // reservations of readers carry their epoch
  static constexpr bool kBarrierBeforeDecide = true;  // all have reserved before any transaction is decided
  static constexpr bool kBarrierBehindRound = true;   // all have decided and reserved again before the next round
  static constexpr bool kTwoSets = true;              // no thread reserves in the words that decide the round
  static constexpr bool kJoinsFirst = true;           // the transactions of a pass reserve before they run
  static constexpr bool kPlacesByPass = true;         // a transaction that is postponed gets a place in the next pass
  static constexpr bool kBoundsDeltas = true;         // adders of a record that could overflow are chained
  static constexpr bool kReadersJoin = true;          // readers join the chain of those that change what they read
  static constexpr bool kAddersJoin = true;           // adders that do not commute at a record join one chain
  static constexpr bool kJoinsUntilStill = true;      // chains that have a record in common become one
  static constexpr bool kWalksByPass = true;          // earlier passes of a chain are walked first
  static constexpr bool kMeetsBeforeWalk = true;      // a group's lanes meet after they looked for positions to walk
  static constexpr bool kMeetsBehindWalk = true;      // and meet again before they look the next time
};

// How one transaction reads and writes records. This is the Access of the interpreter (txn/interpreter.hpp).
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
  KILOKV_HOST_DEVICE void begin(std::uint32_t operation) { first_ = operation; }
  // Goes backwards, so that a record that was written twice gets its oldest image back. The operation that runs has
  // written nothing.
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
    operation_ = operation;
    adds_ = a_.op_adds[operation] != 0;
  }
  KILOKV_HOST_DEVICE bool defers(std::uint32_t operation) const { return a_.op_adds[operation] != 0; }
  KILOKV_HOST_DEVICE std::uint64_t value_word(std::uint32_t value) const { return a_.value_word[value]; }
  KILOKV_HOST_DEVICE bool bytes_equal(Cell cell, std::uint32_t value) const { return a_.bytes_equal(cell, value); }
  // Batches with ranges do not run here.
  KILOKV_HOST_DEVICE bool range_unchanged(std::uint32_t, Version) const { return false; }
  KILOKV_HOST_DEVICE void range_get(std::uint32_t, Version, bool) {}
  KILOKV_HOST_DEVICE bool delete_range(std::uint32_t, Version) { return false; }

 private:
  P& p_;
  const OrderedArguments<Space>& a_;
  std::uint32_t first_ = 0;      // the first operation of the list that runs
  std::uint32_t operation_ = 0;  // the operation that runs
  bool adds_ = false;            // the operation is an adder: others may add at the same time
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

  // Fills every column of the results, except the cells of adders. Fills the cells, words and counts. If it gives the
  // batch up, the number of passes is 0, and everything else is unspecified.
  KILOKV_HOST_DEVICE void run() {
    Round round{.ready = size_, .open = size_};
    bool few = size_ < a_.tuning.decided_min;
    for_own_positions([&](std::uint32_t position) {
      prepare(position);
      if (!few) reserve(position, 0);
      a_.undecided[own_slot(undecided_++)] = position;
    });
    if (Rules::kBarrierBeforeDecide) p_.grid_barrier();
    while (round.open > 0) {
      const Round before = round;
      const std::uint32_t opened = runs_ + reserves_;
      round = run_round(before, few);
      idle_ = stood_still(before, round, opened) ? idle_ + 1 : 0;
      if (idle_ > a_.tuning.idle_rounds_max) return;  // all threads return: they have learned the same
      few = is_few(before, round, few);
    }
    const std::uint32_t passes = round.waiting > 0 ? open() + 1 : finished_;
    for_own_positions([&](std::uint32_t position) { expire(position, passes); });
    const OrderedCounts counts = counts_.of_group(p_);
    if (p_.lane() == 0) a_.counts[p_.group()] = counts;
    if (p_.thread() != 0) return;
    p_.put(a_.words + kWordPasses, passes);
    p_.put(a_.words + kWordRounds, epoch_ - a_.first_epoch);
  }

 private:
  static constexpr std::uint32_t kDone = kNone;
  // Uses of a transaction that may have adders. The limit keeps the search for them short: it compares all pairs.
  static constexpr std::uint32_t kUsesMax = 64;
  static constexpr std::uint32_t kJoinSweepsMax = 16;  // to join chains
  static constexpr std::uint32_t kWalkersMax = 1024;   // because each walker looks at every position

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

  // Calls f(role, record) for everything that transaction t may read, write or add to, until f returns false. Returns
  // whether f never returned false.
  template <class F>
  KILOKV_HOST_DEVICE bool for_uses(std::uint32_t t, const F& f) const {
    for (std::uint32_t g = t == 0 ? 0 : a_.batch.guard_end[t - 1]; g < a_.batch.guard_end[t]; ++g) {
      const std::uint32_t key = a_.batch.guard_key[g], other = a_.batch.guard_other[g];
      if (key != kNone && !f(Role::read, record_of(key))) return false;
      if (other != kNone && !f(Role::read, record_of(other))) return false;
    }
    const Operations operations = operations_of(t);
    for (std::uint32_t i = operations.begin; i < operations.end; ++i) {
      const std::uint32_t record = record_of(a_.batch.op_key[i]);
      if (!f(role_of(i, record), record)) return false;
    }
    return true;
  }
  // The absent record stands for keys that are absent and that no operation of the batch may create. A DELETE of such a
  // key writes nothing, so it counts as a read.
  KILOKV_HOST_DEVICE Role role_of(std::uint32_t operation, std::uint32_t record) const {
    if (a_.batch.op_kind[operation] == static_cast<std::uint8_t>(OpKind::get)) return Role::read;
    if (record == a_.absent_record) return Role::read;
    return a_.op_adds[operation] != 0 ? Role::add : Role::write;
  }

  // Finds the adders of one transaction, before the first round.
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
    p_.put(a_.chain_of + position, 0);
  }
  // The size of the ADD's delta, or an upper bound of it. It is above any limit if it is not known before the ADD runs.
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

  // What all threads learn at the end of a round.
  struct Round {
    std::uint32_t moved = 0;    // decided or postponed
    std::uint32_t ready = 0;    // undecided, and may run in the next round
    std::uint32_t waiting = 0;  // undecided, and may not run in the next round
    std::uint32_t open = 0;     // undecided, of passes that are open
  };

  // Runs the thread's undecided transactions that may run, or the tail. Those that are left reserve for the next round.
  KILOKV_HOST_DEVICE Round run_round(const Round& before, bool in_tail) {
    ++epoch_;
    Round own;
    std::uint32_t finished = 0;
    if (in_tail) {
      finish(is_walked(before) ? walk_chains() : run_tail(before));
      p_.grid_barrier();
      reserves_ = learn_open();
    }
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < undecided_; ++i) {
      const std::uint32_t position = a_.undecided[own_slot(i)];
      std::uint32_t pass = p_.get(a_.pass_of + position);
      if (pass == kDone) continue;
      if (!in_tail && pass <= runs_ && may_run(position, pass)) {
        ++own.moved;
        if (run_one(position, pass)) {
          finished = later(finished, pass + 1);
          continue;
        }
        ++pass;
      }
      const bool joins = pass <= reserves_;
      ++(joins ? own.ready : own.waiting);
      if (joins && (Rules::kJoinsFirst || pass <= runs_)) reserve(position, pass);
      a_.undecided[own_slot(left++)] = position;
    }
    undecided_ = left;
    return end_round(own, finished);
  }
  // All threads meet. Three sets of words are used in turn. A thread that is already in the next round adds to the next
  // set. That set was cleared before the barrier, and no thread reads it from its last use any more.
  KILOKV_HOST_DEVICE Round end_round(const Round& own, std::uint32_t finished) {
    const auto words = words_of(epoch_);
    const auto next = words_of(epoch_ + 1);
    const auto add = [&](RoundWord word, std::uint32_t count) {
      const std::uint64_t of_group = p_.sum(count);
      if (p_.lane() == 0 && of_group > 0) p_.fetch_add(words + word, of_group, Order::relaxed, Scope::device);
    };
    add(kRoundMoved, own.moved);
    add(kRoundReady, own.ready);
    add(kRoundWaiting, own.waiting);
    finish(finished);
    if (p_.thread() == 0) {
      for (std::uint32_t i = 0; i < kRoundWords; ++i) p_.store(next + i, 0, Order::relaxed, Scope::device);
    }
    if (Rules::kBarrierBehindRound) p_.grid_barrier();
    const auto word = [&](RoundWord i) {
      return static_cast<std::uint32_t>(p_.load(words + i, Order::relaxed, Scope::device));
    };
    runs_ = reserves_;
    reserves_ = learn_open();
    Round round{word(kRoundMoved), word(kRoundReady), word(kRoundWaiting)};
    round.open = round.ready + (reserves_ > runs_ ? round.waiting : 0);
    return round;
  }
  KILOKV_HOST_DEVICE auto words_of(std::uint32_t epoch) const {
    return a_.words + (kWordRoundOf + (epoch - a_.first_epoch) % 3 * kRoundWords);
  }
  // Tells the other threads 1 + the latest pass of which a transaction was finished in this round. They learn it after
  // a barrier (learn_open()). One lane of the group tells it for all lanes that have the same number.
  KILOKV_HOST_DEVICE void finish(std::uint32_t finished) {
    const std::uint32_t lanes = p_.ballot(finished > finished_);
    if (lanes == 0) return;
    const std::uint64_t first = p_.broadcast(finished, lowest_bit(lanes));
    if (finished <= finished_ || (finished == first && p_.lane() != lowest_bit(lanes))) return;
    p_.fetch_max(words_of(epoch_) + kRoundFinished, finished, Order::relaxed, Scope::device);
  }
  KILOKV_HOST_DEVICE std::uint32_t learn_open() {
    const std::uint64_t finished = p_.load(words_of(epoch_) + kRoundFinished, Order::relaxed, Scope::device);
    finished_ = later(finished_, static_cast<std::uint32_t>(finished));
    return open();
  }
  KILOKV_HOST_DEVICE static std::uint32_t later(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }
  // The last pass that may run. It is the one after the latest pass that has finished a transaction. If the batch ends
  // while some wait for a later pass, this pass has run and is counted, though it finished none.
  KILOKV_HOST_DEVICE std::uint32_t open() const { return finished_ < kWaitPassesMax ? finished_ : kWaitPassesMax - 1; }
  KILOKV_HOST_DEVICE std::uint32_t own_slot(std::uint32_t i) const { return p_.thread() + i * p_.threads(); }
  KILOKV_HOST_DEVICE bool is_few(const Round& before, const Round& round, bool was_tail) const {
    const std::uint32_t left = round.ready + round.waiting;
    if (left < a_.tuning.decided_min && size_ > a_.tuning.few_of_max) return false;
    if (round.open < a_.tuning.decided_min) return true;
    if (was_tail || before.ready == 0 || round.ready == 0) return false;
    return round.moved < a_.tuning.decided_min ||
           (a_.tuning.divisor != 0 && round.moved < before.ready / a_.tuning.divisor);
  }

  // Whether the round has neither decided nor postponed a transaction, nor opened a pass, though the batch must go on.
  // `opened`: runs_ + reserves_ before the round. This must not happen: of the transactions that may run, nothing can
  // stop the oldest. (A tail does not count transactions as moved. If it has postponed all, no pass opens, and the
  // batch ends.)
  KILOKV_HOST_DEVICE bool stood_still(const Round& before, const Round& round, std::uint32_t opened) const {
    return round.open > 0 && round.moved == 0 && round.ready + round.waiting == before.ready + before.waiting &&
           runs_ + reserves_ == opened;
  }

  KILOKV_HOST_DEVICE static std::uint64_t tag(std::uint32_t place, std::uint32_t epoch) {
    return static_cast<std::uint64_t>(~epoch) << 32 | place;
  }
  KILOKV_HOST_DEVICE std::uint32_t place_of(std::uint32_t position, std::uint32_t pass) const {
    return (Rules::kPlacesByPass ? pass : 0) * size_ + position;
  }
  KILOKV_HOST_DEVICE auto reservation(std::uint32_t record, Role role, std::uint32_t epoch) const {
    const std::uint32_t set = Rules::kTwoSets ? epoch % 2 : 0;
    const std::uint32_t word = set * kRoles + static_cast<std::uint32_t>(role);
    return a_.reservations + (static_cast<std::uint64_t>(record) * kReservationWords + word);
  }
  // Reserves for the next round.
  KILOKV_HOST_DEVICE void reserve(std::uint32_t position, std::uint32_t pass) {
    const std::uint32_t epoch = epoch_ + 1;
    const std::uint32_t place = place_of(position, pass);
    for_uses(transaction_at(position), [&](Role role, std::uint32_t record) {
      const std::uint64_t mine = !Rules::kTagsReads && role == Role::read ? place : tag(place, epoch);
      const auto word = reservation(record, role, epoch);
      if (p_.load(word, Order::relaxed, Scope::device) > mine) {
        p_.fetch_min(word, mine, Order::relaxed, Scope::device);
      }
      ++counts_.reservations;
      return true;
    });
  }

  KILOKV_HOST_DEVICE bool has_older(std::uint32_t record, Role role, std::uint64_t mine) const {
    return p_.load(reservation(record, role, epoch_), Order::relaxed, Scope::device) < mine;
  }
  KILOKV_HOST_DEVICE bool may_run(std::uint32_t position, std::uint32_t pass) {
    const std::uint64_t mine = tag(place_of(position, pass), epoch_);
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
  // Whether no sum of the batch's deltas can take the record out of its range. Other adders may be changing the record
  // meanwhile. The check is still right: delta_sums covers what they have added and what they will add.
  KILOKV_HOST_DEVICE bool commutes(std::uint32_t record) const {
    const auto cell = a_.cells + 2 * static_cast<std::uint64_t>(record);
    if (type_of(p_.load(cell + 1, Order::relaxed, Scope::device)) == ValueType::bytes) return false;
    if (!Rules::kBoundsDeltas) return true;
    const std::uint64_t word = p_.load(cell, Order::relaxed, Scope::device);
    const std::uint64_t size = word >> 63 != 0 ? 0 - word : word;
    return size + p_.load(a_.delta_sums + record, Order::relaxed, Scope::device) < std::uint64_t{1} << 63;
  }

  // Returns whether the transaction is decided. If not, it was postponed.
  KILOKV_HOST_DEVICE bool run_one(std::uint32_t position, std::uint32_t pass) {
    const std::uint32_t t = transaction_at(position);
    OrderedAccess<P> access(p_, a_);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, t, place_of(position, pass));
    if (outcome == Outcome::postponed) {
      ++counts_.postponed;
      p_.put(a_.pass_of + position, pass + 1);
      return false;
    }
    ++counts_.decided;
    p_.put(a_.pass_of + position, kDone);
    if (a_.results.wrote[t] != 0) apply_deltas(t, outcome);
    return true;
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
  // Cuts the transactions that may run into chains. Returns whether they can be walked now. All threads return the
  // same.
  KILOKV_HOST_DEVICE bool is_walked(const Round& before) {
    if (!a_.tuning.walks || walkers() == 1 || before.ready + before.waiting < a_.tuning.decided_min) return false;
    for (std::uint32_t i = 0; i < kJoinSweepsMax; ++i) {
      ++sweep_;
      if (join_chains()) p_.fetch_max(a_.words + kWordJoined, sweep_, Order::relaxed, Scope::device);
      p_.grid_barrier();
      // A thread that is ahead may already have noted the next sweep. Then this sweep was not the last one either.
      if (p_.load(a_.words + kWordJoined, Order::relaxed, Scope::device) < sweep_) return true;
      if (!Rules::kJoinsUntilStill) return true;
    }
    return false;
  }
  KILOKV_HOST_DEVICE std::uint32_t walkers() const {
    const std::uint32_t each = (p_.block_threads() + P::kGroupWidth - 1) / P::kGroupWidth;
    const std::uint32_t groups = p_.threads() / p_.block_threads() * each;
    return groups < kWalkersMax ? groups : kWalkersMax;
  }
  // One sweep over the thread's own transactions. Each takes over the lowest chain number of its records, and its
  // records take over this number. Returns whether any record changed its number.
  KILOKV_HOST_DEVICE bool join_chains() {
    bool changed = false;
    for (std::uint32_t i = 0; i < undecided_; ++i) {
      const std::uint32_t position = a_.undecided[own_slot(i)];
      if (p_.get(a_.pass_of + position) > runs_) continue;  // also if it is kDone
      const std::uint32_t t = transaction_at(position);
      std::uint64_t lowest = tag(position, epoch_);
      for_uses(t, [&](Role role, std::uint32_t record) {
        if (!is_chained(role, record)) return true;
        const std::uint64_t chain = p_.load(chain_word(record), Order::relaxed, Scope::device);
        lowest = chain < lowest ? chain : lowest;
        return true;
      });
      for_uses(t, [&](Role role, std::uint32_t record) {
        if (!is_chained(role, record)) return true;
        changed |= p_.fetch_min(chain_word(record), lowest, Order::relaxed, Scope::device) > lowest;
        return true;
      });
      p_.put(a_.chain_of + position, static_cast<std::uint32_t>(lowest));
    }
    return changed;
  }
  KILOKV_HOST_DEVICE auto chain_word(std::uint32_t record) const {
    return a_.reservations + (static_cast<std::uint64_t>(record) * kReservationWords + kChainWord);
  }
  // Whether the order matters in which the transactions that may run come to the record. All of them have reserved for
  // this round.
  KILOKV_HOST_DEVICE bool is_chained(Role role, std::uint32_t record) const {
    if (!Rules::kReadersJoin && role == Role::read) return false;
    if (is_reserved(record, Role::write)) return true;
    if (!is_reserved(record, Role::add)) return false;
    return is_reserved(record, Role::read) || (Rules::kAddersJoin && !commutes(record));
  }
  KILOKV_HOST_DEVICE bool is_reserved(std::uint32_t record, Role role) const {
    return has_older(record, role, tag(kNone, epoch_));
  }
  // Walks the group's chains. Each lane looks at another position, and the first lane runs what they find. Returns the
  // same as run_tail().
  KILOKV_HOST_DEVICE std::uint32_t walk_chains() {
    std::uint32_t finished = 0;
    if (p_.group() >= walkers()) return finished;
    const std::uint32_t group_lanes = bits_in(p_.ballot(true));
    for (std::uint32_t pass = 0; pass <= runs_; ++pass) {
      for (std::uint32_t first = 0; first < size_; first += group_lanes) {
        const std::uint32_t position = first + p_.lane();
        const bool is_own = position < size_ && p_.get(a_.chain_of + position) % walkers() == p_.group() &&
                            is_walked_in(position, pass);
        std::uint32_t lanes = p_.ballot(is_own);
        if (lanes == 0) continue;
        if (Rules::kMeetsBeforeWalk) p_.group_barrier();  // the first lane changes what all have looked at
        for (; p_.lane() == 0 && lanes != 0; lanes &= lanes - 1) {
          finished = later(finished, walk(first + lowest_bit(lanes)));
        }
      }
      if (!Rules::kWalksByPass) break;
      if (Rules::kMeetsBehindWalk) p_.group_barrier();  // then they look at what it has postponed
    }
    return finished;
  }
  // Whether to walk a position of the group's own chains in this pass.
  KILOKV_HOST_DEVICE bool is_walked_in(std::uint32_t position, std::uint32_t pass) const {
    const std::uint32_t own = p_.get(a_.pass_of + position);
    return Rules::kWalksByPass ? own == pass : own <= runs_;
  }
  KILOKV_HOST_DEVICE std::uint32_t walk(std::uint32_t position) {
    const std::uint32_t pass = p_.get(a_.pass_of + position);
    ++counts_.tail;
    ++counts_.walked;
    return run_one(position, pass) ? pass + 1 : 0;
  }

  // The first thread runs the transactions that may run, pass by pass. If few are left, it runs all of them. Returns 1
  // + the latest pass of which it decided one; 0 if it decided none.
  KILOKV_HOST_DEVICE std::uint32_t run_tail(const Round& before) {
    if (p_.thread() != 0) return 0;
    std::uint32_t left = before.ready + before.waiting;
    std::uint32_t finished = 0;
    std::uint32_t first = kWaitPassesMax;
    for (std::uint32_t position = 0; position < size_; ++position) {
      const std::uint32_t pass = p_.get(a_.pass_of + position);
      first = pass < first ? pass : first;
    }
    const auto last = [&] { return left < a_.tuning.decided_min ? later(open(), finished) : runs_; };
    for (std::uint32_t pass = first; left > 0 && pass <= last() && pass < kWaitPassesMax; ++pass) {
      for (std::uint32_t position = 0; left > 0 && position < size_; ++position) {
        if (p_.get(a_.pass_of + position) != pass) continue;
        ++counts_.tail;
        if (!run_one(position, pass)) continue;
        finished = later(finished, pass + 1);
        --left;
      }
    }
    return finished;
  }

  KILOKV_HOST_DEVICE void expire(std::uint32_t position, std::uint32_t passes) {
    if (p_.get(a_.pass_of + position) == kDone) return;
    const std::uint32_t t = transaction_at(position);
    a_.results.rank[t] = passes * size_ + position;
    if (a_.expires[t] != 0) a_.results.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
  }

  P& p_;
  const OrderedArguments<Space>& a_;
  const std::uint32_t size_;
  const std::uint32_t tile_;
  std::uint32_t epoch_;          // the number of the round
  std::uint32_t undecided_ = 0;  // how many transactions of the thread are undecided
  std::uint32_t finished_ = 0;   // 1 + the latest pass that has finished one, as all threads know it
  std::uint32_t runs_ = 0;       // the last pass whose transactions have reserved, and may run
  std::uint32_t reserves_ = 0;   // the last pass whose transactions reserve for the next round
  std::uint32_t idle_ = 0;       // rounds in a row without progress
  std::uint64_t sweep_ = 0;      // sweeps that join chains, counted over this batch
  OrderedCounts counts_;
};

}  // namespace kilokv::engine
