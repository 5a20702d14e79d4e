// `kilo`: KILO TM in software. Transactions run on invisible reads, take a commit ID, and commit in the order of these:
// validation is by value, and whom one has to wait for is told by the last writer history.
//
// The commit ID is the ticket; the lanes of a group that come to it together take theirs by one addition. An attempt
//   begins     if the concurrency limit lets it (stm/papers/concurrency_limit.hpp);
//   runs       into its log, and compares what it read with what is there, which ends most conflicts before they cost
//              an ID;
//   takes its ID, announces what it has read and will write, and enters the commit units (stm/papers/commit_units.hpp),
//   where
//              it learns its hazard: the youngest that may have written one of its records before it;
//   waits      until all up to the hazard have ended;
//   validates  by value, word and tag, everything that it read;
//   writes back, ends, and leaves. One that fails has wasted its ID, and is tried again.
// It waits nowhere within an attempt, for in lockstep nobody would get on: it comes back to the sweep, and goes on in
// the next one. Who reads only, fails, or is postponed goes the same way, and writes nothing (docs/papers.md, gap 5).
//
// After a few such tries, where no ticket may be wasted, or where it uses its own commit version, a transaction takes
// its ID first, announces all that it may touch as to be written, waits for its hazard, and then runs: nothing can come
// between, so that it needs no validation, and cannot fail.
//
// Why the order is serial. Let K have an ID and touch a record. (1) Whoever has an earlier ID and writes the record has
// entered before K: K's hazard is not older than that one, and so that one has ended before K validates, or runs. (2)
// Whoever has a later ID and writes the record enters after K, and if K writes it, too, or has announced so, waits for
// K. If K only read it, the later one may write it at once; but what K read, it read before it had its ID, and so
// before the later one entered. (3) So what K read is of earlier ones; and where it is what is there behind the wait,
// it is what the last of them left. For no two writes of a record have one tag: where word and tag are those that were
// read, nothing was written since. Nor was anything torn: who writes stores tags before words, who validates loads
// words before tags, so that the tag that was read stands beside the word that it was written with, and not beside an
// equal one of somebody later.
//
// A false hazard is one more to wait for, with an earlier ID. Because the wait is for all up to the hazard, not for the
// hazard alone, it matters not whose it is (docs/papers.md, gap 9).
//
// Progress. Who has an ID waits only for those with earlier ones: that they enter, which whoever comes by does for
// them, and that they end. The earliest waits for nobody. So somebody ends, in lockstep, too. A later ID may make an
// earlier one fail whose records it writes before they are validated; but each such failure is paid for by a
// transaction that was decided, and after a few of them it announces everything first, and then it does not fail.
//
// Source: KILO TM, sections 4 and 4.5. Deviations:
//   - the speculative validation comes before the ID, not behind it; the one behind the hazards is always made
//   - a commit is not held up by earlier ones that it shares no record with: stages are the transaction's own
//   - the log is of the transaction, each record once (stm/papers/transaction_log.hpp); what the units read of it is
//   laid out
//     by ticket, so that neighbours' lie side by side
//   - tags are validated beside values, so that a value that came back is no match
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

// What a planted bug takes away or puts in, for the tests of the tests.
struct KiloRules : LogRules {
  static constexpr std::uint32_t kWays = kHistoryWays;
  static constexpr bool kAliasesDelay = true;  // gap 9
  static constexpr bool kEvictsToFilter = true;
  static constexpr bool kFilterKeepsYoungest = true;
  static constexpr bool kInOrderOfRanks = true;  // units pass nobody over who is not announced yet
  static constexpr bool kWaitsForHazard = true;
  static constexpr bool kValidatesBehindHazard = true;
  static constexpr bool kValidatesWords = true;       // not tags alone
  static constexpr bool kClaimsReads = true;          // of one that runs behind its hazard
  static constexpr bool kCommitsEveryOutcome = true;  // gap 5: of one that is postponed, too
  static constexpr bool kKeepsLimit = true;
  static constexpr bool kWastesTickets = false;  // every optimistic one's
  static constexpr Order kAnnounceOrder = Order::release;
  static constexpr Order kSlotOrder = Order::acquire;  // of who passes the slot
  static constexpr Order kTakeOrder = Order::acquire;  // of a unit
  static constexpr Order kLeaveOrder = Order::release;
  static constexpr Order kPassedOrder = Order::acquire;
  static constexpr Order kEndOrder = Order::release;
  static constexpr Order kEndedOrder = Order::acquire;  // of who moves `retired` on
  static constexpr Order kRetireOrder = Order::release;
  static constexpr Order kRetiredOrder = Order::acquire;
  static constexpr Order kWriteFence = Order::release;  // between the tags that it writes and the words
  static constexpr Order kReadFence = Order::acquire;   // between the words that it validates and the tags
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
  static constexpr bool kRanksTogether = true;  // one addition for a group's

  KILOKV_HOST_DEVICE Kilo(P& platform, const Arguments& arguments)
      : p_(platform), a_(arguments), log_(arguments), units_(platform, arguments), limit_(platform, arguments) {}

  KILOKV_HOST_DEVICE void prepare(std::uint32_t position, std::uint32_t t) {
    log_.build(t);
    a_.tries[position] = log_.uses_commit_version() ? kTriesMax : 0;
  }

  // Begins a transaction, or goes on with the one that waits.
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

  // What came of the group's attempts; of a lane that made none: held_back.
  KILOKV_HOST_DEVICE void swept(Attempt attempt) {
    const bool failed = attempt == Attempt::conflict;
    const LimitChange change = limit_.learn(has_ended(attempt) || failed, failed);
    if (change == LimitChange::none) return;
    ++counts_.limits;
    probe(change == LimitChange::lowered ? KiloProbe::limit_lowered : KiloProbe::limit_raised);
  }

  // For the access: a record, read for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    const Cell cell = log_.load(p_, e);
    a_.entry_version[e] = cell.word;  // a lock's version with others; here the word as it was read
    a_.entry_tag[e] = cell.tag;
    return cell;
  }
  KILOKV_HOST_DEVICE static constexpr bool stopped() { return false; }

  // What the thread has counted, beside what TicketedRun does.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  using Access = LoggedAccess<P, Kilo, Rules>;
  enum class Stage : std::uint8_t { none, enters, waits };  // of the thread's transaction that has an ID
  static constexpr std::uint8_t kTriesMax = 255;

  // Up to the ID.
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
  // Of no transaction of the batch.
  KILOKV_HOST_DEVICE std::uint32_t no_rank() const { return kWaitPassesMax * a_.batch.size; }

  // Behind the ID: as far as it comes.
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

  // Whether all that was read is what is there: words first, so that one that a later transaction has put there has its
  // tag beside it.
  KILOKV_HOST_DEVICE bool is_valid() const {
    if (Rules::kValidatesWords && !for_read([&](std::uint32_t e) { return load(e, 0) == a_.entry_version[e]; })) {
      return false;
    }
    if (Rules::kReadFence != Order::relaxed) p_.fence(Rules::kReadFence, Scope::device);
    return for_read([&](std::uint32_t e) { return load(e, 1) == a_.entry_tag[e]; });
  }
  // Calls f(entry) for all that was read, until it returns false; whether none did.
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
  // A part of the record's cell: 0: its word, 1: its tag.
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
  // Of the thread's transaction.
  Stage stage_ = Stage::none;
  bool claims_all_ = false;  // it runs behind its hazard
  Outcome outcome_ = Outcome::undecided;
  std::uint32_t position_ = 0, range_ = 0, rank_ = 0;
};

}  // namespace kilokv::engine
