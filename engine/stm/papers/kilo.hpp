// `kilo`: KILO TM in software. Transactions run on invisible reads, which change nothing in shared memory. They take a
// commit ID, and commit in the order of these IDs. They are validated by value. The last writer history says for which
// transactions one has to wait.
//
// The commit ID is the ticket. The lanes of a group that come to this point together take theirs by one addition. An
// attempt has these steps:
//   begin       The concurrency limit must allow it (stm/papers/concurrency_limit.hpp).
//   run         The transaction runs into its log, and compares what it read with what is there. This ends most
//               conflicts before they cost an ID.
//   enter       It takes its ID, announces what it has read and will write, and enters the commit units
//               (stm/papers/commit_units.hpp). There it learns its hazard: the youngest earlier transaction that may
//               have written one of its records.
//   wait        It waits until all transactions up to the hazard have ended.
//   validate    It compares everything that it read with what is there, by value: word and tag. If this fails, the ID
//               is wasted, and the transaction is tried again.
//   write back  It writes, ends, and leaves.
// The transaction does not block a thread while it waits, because in lockstep no lane would make progress then. Its
// attempt returns to the sweep, and goes on in the next one. A transaction that only reads, fails, or is postponed
// takes the same steps, and writes nothing (docs/papers.md, gap 5).
//
// A transaction takes its ID first in three cases:
//   - after a few failed tries;
//   - where no ticket may be wasted;
//   - where it uses its own commit version.
// It announces all that it may touch as written, waits for its hazard, and then runs. Nothing can come between. So it
// needs no validation, and it cannot fail.
//
// Why the order is serial. Let K have an ID and touch a record.
//   (1) A transaction that has an earlier ID and writes the record has entered before K. K's hazard is not older than
//       this transaction. So it has ended before K validates, or runs.
//   (2) A transaction that has a later ID and writes the record enters after K. If K writes the record too, or has
//       announced it as written, the later one waits for K. If K only read it, the later one may write it at once. But
//       K read the record before it had its ID, and so before the later one entered.
//   (3) So K read what earlier transactions wrote. If this is still there after the wait, it is what the last of them
//       left. No two writes of a record have the same tag. So where word and tag are those that were read, nothing was
//       written since. No read is torn either. A writer stores tags before words, and a validator loads words before
//       tags. So the tag that was read is beside the word that it was written with, and not beside an equal word of a
//       later transaction.
//
// A false hazard is one more transaction with an earlier ID to wait for. The wait is for all up to the hazard, not for
// the hazard alone. So it does not matter whose stamp the hazard is (docs/papers.md, gap 9).
//
// Progress. A transaction that has an ID waits only for those with earlier IDs. It waits until they have entered, which
// any thread that comes by does for them, and until they have ended. The earliest one waits for none. So some
// transaction ends, also in lockstep. A transaction with a later ID may write records of an earlier one before these
// are validated, and so make the earlier one fail. But for each such failure a transaction was decided. After a few of
// them the earlier one announces everything first, and then it does not fail.
//
// Source: KILO TM, sections 4 and 4.5. Deviations:
//   - The speculative validation comes before the ID, not after it. The validation after the hazards is always made.
//   - A commit is not delayed by earlier ones that share no record with it: each transaction goes through the stages by
//     itself.
//   - The log belongs to the transaction, and has each record once (stm/papers/transaction_log.hpp). What the units
//     read of it is laid out by ticket, so that the data of neighbours are side by side.
//   - Tags are validated beside values, so that a value that came back is no match.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/commit_units.hpp"
#include "engine/stm/papers/concurrency_limit.hpp"
#include "engine/stm/papers/ticketed.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/stm/papers/transaction_log.hpp"
#include "engine/txn/interpreter.hpp"

namespace kilokv::engine {

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed.
struct KiloRules : LogRules {
  static constexpr std::uint32_t kWays = kHistoryWays;
  static constexpr bool kAliasesDelay = true;  // gap 9
  static constexpr bool kEvictsToFilter = true;
  static constexpr bool kFilterKeepsYoungest = true;
  static constexpr bool kInOrderOfRanks = true;  // a unit stops at a slot that is not announced yet
  static constexpr bool kWaitsForHazard = true;
  static constexpr bool kValidatesBehindHazard = true;
  static constexpr bool kValidatesWords = true;       // words are compared too, not only tags
  static constexpr bool kClaimsReads = true;          // if it runs after its hazard, it announces reads as writes
  static constexpr bool kCommitsEveryOutcome = true;  // gap 5: also if it is postponed
  static constexpr bool kKeepsLimit = true;
  static constexpr bool kWastesTickets = false;  // true: every ID of an optimistic attempt is wasted
  static constexpr Order kAnnounceOrder = Order::release;
  static constexpr Order kSlotOrder = Order::acquire;  // of a thread that passes the slot
  static constexpr Order kTakeOrder = Order::acquire;  // of taking a unit
  static constexpr Order kLeaveOrder = Order::release;
  static constexpr Order kPassedOrder = Order::acquire;
  static constexpr Order kEndOrder = Order::release;
  static constexpr Order kEndedOrder = Order::acquire;  // of a thread that moves `retired` on
  static constexpr Order kRetireOrder = Order::release;
  static constexpr Order kRetiredOrder = Order::acquire;
  static constexpr Order kWriteFence = Order::release;  // between the stores of tags and of words
  static constexpr Order kReadFence = Order::acquire;   // between the loads of words and of tags that validate
  static constexpr Order kBeginOrder = Order::acquire;  // of the concurrency limit
  static constexpr Order kLeaveLimitOrder = Order::release;
};

template <Platform P, class RulesOf = KiloRules>
class Kilo {
 public:
  using Space = typename P::Space;
  using Arguments = KiloArguments<Space>;
  using Rules = RulesOf;
  static constexpr Window kWindow = Window::one;
  static constexpr bool kRanksTogether = true;  // one addition for a group's ranks

  KILOKV_HOST_DEVICE Kilo(P& platform, const Arguments& arguments)
      : p_(platform), a_(arguments), log_(arguments), units_(platform, arguments), limit_(platform, arguments) {}

  KILOKV_HOST_DEVICE void prepare(std::uint32_t position, std::uint32_t t) {
    log_.build(t);
    a_.tries[position] = log_.uses_commit_version() ? kTriesMax : 0;
  }

  // Begins a transaction, or goes on with the thread's transaction that waits.
  KILOKV_HOST_DEVICE Attempt attempt(std::uint32_t position, std::uint32_t t, AttemptPlace place) {
    if (stage_ != Stage::none) return go_on();
    if (!limit_.begin()) {
      probe(KiloProbe::limit_reached);
      return Attempt::held_back;
    }
    ++counts_.attempts;
    position_ = position;
    range_ = place.range;
    const std::uint8_t tries = a_.tries[position];
    claims_all_ = place.must_lock || tries == kTriesMax || tries >= a_.tuning.optimistic_tries;
    log_.open(t);
    log_.clear();
    if (!claims_all_) return run_ahead();
    ++counts_.under_locks;
    probe(KiloProbe::claimed_all);
    return Attempt::wants_rank;
  }
  KILOKV_HOST_DEVICE Attempt go_on(std::uint32_t rank) {
    if (rank == kNone) return leave(Attempt::exhausted);
    announce(rank);
    stage_ = Stage::enters;
    return go_on();
  }

  // The result of each lane's attempt; held_back for a lane that made none.
  KILOKV_HOST_DEVICE void swept(Attempt attempt) {
    const bool failed = attempt == Attempt::conflict;
    const LimitChange change = limit_.learn(has_ended(attempt) || failed, failed);
    if (change == LimitChange::none) return;
    ++counts_.limits;
    probe(change == LimitChange::lowered ? KiloProbe::limit_lowered : KiloProbe::limit_raised);
  }

  // For LoggedAccess: reads a record for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    const Cell cell = log_.load(p_, e);
    a_.entry_version[e] = cell.word;  // other strategies keep a lock's version here; kilo keeps the word that it read
    a_.entry_tag[e] = cell.tag;
    return cell;
  }
  KILOKV_HOST_DEVICE static constexpr bool stopped() { return false; }

  // What the thread has counted, in addition to what TicketedRun counts.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  using Access = LoggedAccess<P, Kilo, Rules>;
  enum class Stage : std::uint8_t { none, enters, waits };  // how far the thread's transaction is that has an ID
  static constexpr std::uint8_t kTriesMax = 255;

  // Runs the transaction up to the ID.
  KILOKV_HOST_DEVICE Attempt run_ahead() {
    Access access(a_, &log_, this);
    outcome_ = run_transaction(a_.batch, a_.results, access, log_.transaction(), no_rank());
    if (!is_valid()) {
      probe(KiloProbe::early_validation_failed);
      return leave(Attempt::conflict);
    }
    if (outcome_ == Outcome::postponed && !Rules::kCommitsEveryOutcome) return leave(Attempt::postponed);
    return Attempt::wants_rank;
  }
  KILOKV_HOST_DEVICE void announce(std::uint32_t rank) {
    rank_ = rank;
    units_.open(range_, rank, log_.begin());
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (log_.record(e) == a_.absent_record) continue;
      if (claims_all_ || log_.has(e, kEntryRead | kEntryWritten)) units_.add(log_.record(e), is_to_be_written(e));
    }
    units_.announce();
  }
  KILOKV_HOST_DEVICE bool is_to_be_written(std::uint32_t e) const {
    if (!claims_all_) return log_.has(e, kEntryWritten);
    return Rules::kClaimsReads || log_.has(log_.head(e), kHeadMayWrite);
  }
  // The rank of no transaction of the batch.
  KILOKV_HOST_DEVICE std::uint32_t no_rank() const { return kWaitPassesMax * a_.batch.size; }

  // Goes on after the ID, as far as possible without waiting.
  KILOKV_HOST_DEVICE Attempt go_on() {
    if (stage_ == Stage::enters) {
      if (!units_.enter()) return Attempt::in_flight;
      stage_ = Stage::waits;
      if (!units_.has_retired(units_.hazard())) {
        ++counts_.hazards;
        probe(KiloProbe::hazard_deferred);
      }
    }
    if (Rules::kWaitsForHazard && !units_.has_retired(units_.hazard())) return Attempt::in_flight;
    stage_ = Stage::none;
    const Attempt attempt = claims_all_ ? run_behind_hazard() : commit();
    units_.end();
    return leave(attempt);
  }
  KILOKV_HOST_DEVICE Attempt commit() {
    if (Rules::kWastesTickets || (Rules::kValidatesBehindHazard && !is_valid())) {
      probe(KiloProbe::revalidation_failed);
      ++counts_.wasted;
      return Attempt::conflict;
    }
    if (outcome_ == Outcome::postponed) return Attempt::postponed;
    if (a_.results.wrote[log_.transaction()] == 0) probe(KiloProbe::read_only_commit);
    log_.stamp(outcome_, no_rank(), rank_);
    store_written();
    return Attempt::decided;
  }
  KILOKV_HOST_DEVICE Attempt run_behind_hazard() {
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), rank_);
    store_written();
    return outcome == Outcome::postponed ? Attempt::postponed : Attempt::decided;
  }
  KILOKV_HOST_DEVICE Attempt leave(Attempt attempt) {
    const std::uint8_t tries = a_.tries[position_];
    if (attempt == Attempt::conflict && tries + 1 < kTriesMax) {
      a_.tries[position_] = static_cast<std::uint8_t>(tries + 1);
    }
    limit_.end();
    return attempt;
  }

  // Whether all that was read is still there. It loads words before tags, so that a word of a later transaction would
  // come with its own tag.
  KILOKV_HOST_DEVICE bool is_valid() const {
    if (Rules::kValidatesWords && !for_read([&](std::uint32_t e) { return load(e, 0) == a_.entry_version[e]; })) {
      return false;
    }
    if (Rules::kReadFence != Order::relaxed) p_.fence(Rules::kReadFence, Scope::device);
    return for_read([&](std::uint32_t e) { return load(e, 1) == a_.entry_tag[e]; });
  }
  // Calls f(entry) for all that was read, until f returns false. Returns whether f never returned false.
  template <class F>
  KILOKV_HOST_DEVICE bool for_read(const F& f) const {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (log_.has(e, kEntryRead) && log_.record(e) != a_.absent_record && !f(e)) return false;
    }
    return true;
  }
  KILOKV_HOST_DEVICE void store_written() const {
    for_written([&](std::uint32_t e) { store(e, 1, log_.cell(e).tag); });
    if (Rules::kWriteFence != Order::relaxed) p_.fence(Rules::kWriteFence, Scope::device);
    for_written([&](std::uint32_t e) { store(e, 0, log_.cell(e).word); });
  }
  template <class F>
  KILOKV_HOST_DEVICE void for_written(const F& f) const {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (log_.has(e, kEntryWritten)) f(e);
    }
  }
  // `part` of the record's cell: 0 is its word, 1 is its tag.
  KILOKV_HOST_DEVICE std::uint64_t load(std::uint32_t e, std::uint32_t part) const {
    return p_.load(a_.cells + (2 * std::uint64_t{log_.record(e)} + part), Order::relaxed, Scope::device);
  }
  KILOKV_HOST_DEVICE void store(std::uint32_t e, std::uint32_t part, std::uint64_t value) const {
    p_.store(a_.cells + (2 * std::uint64_t{log_.record(e)} + part), value, Order::relaxed, Scope::device);
  }

  KILOKV_HOST_DEVICE void probe(KiloProbe probe) const {
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(probe));
  }

  P& p_;
  const Arguments& a_;
  TicketedCounts counts_;
  TransactionLog<P> log_;
  CommitUnits<P, Rules> units_;
  ConcurrencyLimit<P, Rules> limit_;
  // Of the thread's transaction:
  Stage stage_ = Stage::none;
  bool claims_all_ = false;  // it announces everything, and runs after its hazard
  Outcome outcome_ = Outcome::undecided;
  std::uint32_t position_ = 0, range_ = 0, rank_ = 0;
};

}  // namespace kilokv::engine
