// `prstm`: PR-STM, priority rule based software transactional memory, with semantic postponement.
//
// An attempt runs the transaction on invisible reads, then
//   pre-locks  the locks of what it writes. A pre-lock may be stolen by a transaction of higher priority (a lower
//              position), until it is locked;
//   locks      them: fails where one was stolen;
//   validates  that no lock under which it read has changed or is locked, which ends most conflicts before they cost
//              a ticket;
//   takes its ticket, and validates again;
//   writes back, and frees each lock with its next version.
// One that writes nothing needs only the ticket and what follows; one that is postponed only the validation.
//
// After a few such tries, where no ticket may be wasted, or where it uses its own commit version, a transaction locks
// all that it may touch, reads too, by the same rule, and then runs: nothing can come between. So the transactions that
// conflict again and again are decided by priority, also in lockstep.
//
// Why the order is serial. (1) Writers of one lock exclude each other; freeing and locking order their tickets. (2) Who
// reads what another wrote has seen its lock freed, hence its ticket. (3) Let R read under a lock and W write there,
// W's ticket before R's. W had locked before its ticket, R validates after its own, and each ticket is an acquire and a
// release on one word: so R sees W's lock, or what W left, and fails. Whoever stays is ordered by its ticket.
//
// Why stealing is safe: a pre-lock protects nothing. It is taken, stolen, locked and given back by compare-and-swap
// alone, so that who lost it can neither lock nor free it.
//
// Progress: of the transactions that lock everything, the first keeps its pre-locks, for nobody may steal them, and
// claims what it finds locked; lower priorities look at the claim before each swap, and let the lock alone. A thread
// that looked before the claim was made may still come in between, but once: before its next swap it looks again. So a
// second look behind the swap is not needed. Whoever has the lock waits for nobody. So the first commits once the
// holder of each of its locks, and those that came in between, have made their last few steps, whatever the others do,
// also in lockstep. Lower priorities wait for higher ones alone, and keep their pre-locks meanwhile: given back and
// taken again, they could make the swaps of a higher priority fail for ever.
//
// Claims are hints, for progress and never for safety: all their accesses are relaxed. A higher priority's claim
// replaces a lower one's, never the other way round. Only who locks everything claims; it drops the claim when it has
// pre-locked the lock, and before that it is neither decided nor postponed, so that a batch leaves none.
//
// Source: PR-STM, sections 3.1 to 3.3, Algorithms 1 and 2. Deviations, with the gaps of docs/papers.md, section 1, that
// they close:
//   - reads load the lock word before the value; the validations check it again (1)
//   - reads are validated while the write locks are held, behind the ticket; a locked read is a conflict, decided by
//     priority on a later try, when reads are locked, too (2)
//   - lock words of 64 bits (3, stm/papers/lock_word.hpp); one log, each record and each lock once (4, 7,
//     stm/papers/transaction_log.hpp)
//   - every outcome is validated, a semantic conflict as well (5)
//   - a locked lock can be claimed, for else the highest priority could find it locked again and again; the claim is a
//     word of its own, so that a lock is freed by a store
//   - a free lock is pre-locked and locked in one step, but by those that lock everything: half the swaps where nobody
//     competes
//   - the priority is the transaction's, not the thread's
//   - locks are taken in ascending order, which costs nothing here and saves thefts
//   - writes stay in the log until the commit, as in the paper, and bear the version of the ticket
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/lock_word.hpp"
#include "engine/stm/papers/ticketed.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/stm/papers/transaction_log.hpp"
#include "engine/txn/interpreter.hpp"

namespace kilokv::engine {

// Rare places, for the simulator (platform/concept.hpp).
enum class PrstmProbe : std::uint32_t {
  prelock_stolen,        // from a lower priority
  prelock_refused,       // a higher priority has it
  prelock_kept,          // from an earlier attempt that waited
  claim_refused,         // a higher priority is to have it next
  claim_taken_over,      // from a lower priority
  lock_held_by_lower,    // by one of lower priority, which cannot be stolen from any more
  lock_found_stolen,     // a pre-lock was gone when it was to be locked
  release_found_stolen,  // or when it was to be given back
  read_found_locked,
  reread_other_version,     // another record of a lock was read at another version
  early_validation_failed,  // a read was invalidated before the ticket
  late_validation_failed,   // and between the validation and the commit
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(PrstmProbe::probes) <= kProbes);

// What a planted bug takes away or puts in, for the tests of the tests.
struct PrstmRules : LogRules {
  using Word = LockWord;
  static constexpr bool kLockFirst = true;              // (1) the lock word is loaded before the value
  static constexpr bool kLockedReadConflicts = true;    // (2)
  static constexpr bool kValidatesBehindTicket = true;  // (2)
  static constexpr bool kValidatesEveryOutcome = true;  // (5)
  static constexpr bool kWastesTickets = false;         // every optimistic one's
  static constexpr bool kRunsOnce = true;               // (6)
  static constexpr bool kLocksOnce = true;              // (7)
  static constexpr bool kFreesBySwap = true;            // a pre-lock is given back only if it is still there
  static constexpr bool kStealsPrelocksOnly = true;     // never what is locked
  static constexpr bool kClaims = true;                 // what is locked, to have it next
  static constexpr bool kRespectsClaims = true;         // what a higher priority claimed is let alone
  static constexpr bool kClaimsByPriority = true;       // no claim replaces that of a higher priority
  static constexpr bool kDropsClaims = true;            // when it has what it claimed
  static constexpr bool kHasPriorities = true;          // else whoever comes first keeps a pre-lock
  static constexpr Order kReadOrder = Order::acquire;   // of the lock word, before the value
  static constexpr Order kWaitFence = Order::acquire;   // between the values and the validation of one that waits
  static constexpr Order kLockOrder = Order::acquire;   // of the swap that locks
  static constexpr Order kTicketOrder = Order::acquire_release;
  static constexpr Order kWriteFence = Order::release;  // between the lock and the values
  static constexpr Order kFreeOrder = Order::release;   // of the store that frees
};

template <Platform P, class RulesOf = PrstmRules>
class Prstm {
 public:
  using Space = typename P::Space;
  using Arguments = TicketedArguments<Space>;
  using Rules = RulesOf;
  using Word = typename Rules::Word;
  static constexpr Window kWindow = Window::all;

  KILOKV_HOST_DEVICE Prstm(P& platform, const Arguments& arguments) : p_(platform), a_(arguments), log_(arguments) {}

  KILOKV_HOST_DEVICE void prepare(std::uint32_t position, std::uint32_t t) {
    log_.build(t);
    a_.tries[position] = log_.uses_commit_version() ? kTriesMax : 0;
  }

  KILOKV_HOST_DEVICE Attempt attempt(std::uint32_t position, std::uint32_t t, AttemptPlace place) {
    ++counts_.attempts;
    position_ = position;
    place_ = place;
    log_.open(t);
    log_.clear();
    stopped_ = false;
    under_locks_ =
        place.must_lock || a_.tries[position] == kTriesMax || a_.tries[position] >= a_.tuning.optimistic_tries;
    Attempt attempt = under_locks_ ? run_under_locks() : run_optimistically();
    if (!Rules::kRunsOnce && attempt == Attempt::decided) {
      log_.clear();
      under_locks_ = true;
      attempt = run_under_locks();
    }
    const std::uint8_t tries = a_.tries[position];
    if (attempt == Attempt::conflict && tries < kTriesMax) a_.tries[position] = static_cast<std::uint8_t>(tries + 1);
    return attempt;
  }

  // For the access: a record, read for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    if (under_locks_ || log_.record(e) == a_.absent_record) return log_.load(p_, e);
    const auto lock = lock_at(e);
    const std::uint32_t head = log_.head(e);
    if (!Rules::kLockFirst) {  // as Algorithm 1 has it
      const Cell cell = log_.load(p_, e);
      log_.set_version(head, Word::version(p_.load(lock, Order::acquire, Scope::device)));
      log_.add(head, kHeadVersion);
      return cell;
    }
    const std::uint64_t word = p_.load(lock, Rules::kReadOrder, Scope::device);
    if (Word::is_locked(word)) {
      probe(PrstmProbe::read_found_locked);
      return stop();
    }
    if (Rules::kLogsReads && log_.has(head, kHeadVersion) && log_.version(head) != Word::version(word)) {
      probe(PrstmProbe::reread_other_version);
      return stop();
    }
    log_.set_version(head, Word::version(word));
    log_.add(head, kHeadVersion);
    return log_.load(p_, e);
  }
  KILOKV_HOST_DEVICE bool stopped() const { return stopped_; }

  // What the thread has counted, beside what TicketedRun does.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  using Access = LoggedAccess<P, Prstm, Rules>;
  static constexpr std::uint8_t kTriesMax = 255;

  KILOKV_HOST_DEVICE Attempt run_optimistically() {
    const std::uint32_t no_rank = kWaitPassesMax * a_.batch.size;  // of no transaction of the batch
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), no_rank);
    if (stopped_) return Attempt::conflict;
    const bool validates = Rules::kValidatesEveryOutcome || outcome == Outcome::committed;
    if (outcome == Outcome::postponed) return !validates || is_valid_now() ? Attempt::postponed : Attempt::conflict;
    if (!lock_all(kHeadWrites)) return Attempt::conflict;
    const bool must_validate = validates && reads_unlocked();
    if (must_validate && !is_valid()) {
      probe(PrstmProbe::early_validation_failed);
      return give_up(Attempt::conflict);
    }
    const std::uint32_t rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
    if (rank == kNone) return give_up(Attempt::exhausted);
    if (Rules::kWastesTickets || (Rules::kValidatesBehindTicket && must_validate && !is_valid())) {
      probe(PrstmProbe::late_validation_failed);
      ++counts_.wasted;
      return give_up(Attempt::conflict);
    }
    log_.stamp(outcome, no_rank, rank);
    write_back();
    return Attempt::decided;
  }

  KILOKV_HOST_DEVICE Attempt run_under_locks() {
    ++counts_.under_locks;
    if (!lock_all(0)) return Attempt::conflict;
    const std::uint32_t rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
    if (rank == kNone) return give_up(Attempt::exhausted);
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), rank);
    write_back();
    return outcome == Outcome::postponed ? Attempt::postponed : Attempt::decided;
  }

  KILOKV_HOST_DEVICE Cell stop() {
    stopped_ = true;
    return {};
  }
  KILOKV_HOST_DEVICE auto lock_at(std::uint32_t e) const {
    return a_.locks + kWordsPerLock * std::uint64_t{log_.lock_of(e)};
  }
  template <class Pointer>
  KILOKV_HOST_DEVICE static Pointer claim_at(Pointer lock) {
    return lock + 1;
  }

  // Pre-locks, then locks, all locks with these flags (0: all that need it). False: it has none of them, or, if it
  // locks everything and waits for one, only pre-locks.
  KILOKV_HOST_DEVICE bool lock_all(std::uint8_t flags) {
    const bool has_all = for_locks(flags, [&](std::uint32_t head) { return prelock(head); });
    if (!has_all && under_locks_) return false;
    if (has_all && for_locks(flags, [&](std::uint32_t head) { return lock(head); })) return true;
    free_all(0);
    return false;
  }
  template <class F>
  KILOKV_HOST_DEVICE bool for_locks(std::uint8_t flags, const F& f) {
    if (!Rules::kLocksOnce) {  // one for each record that is written
      for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
        if (!log_.has(e, kEntryWritten) && flags != 0) continue;
        if (!f(log_.head(e))) return false;
      }
      return true;
    }
    return log_.for_heads(flags, [&](std::uint32_t head) { return log_.is_idle(head) || f(head); });
  }

  // False: refused, or claimed at most.
  KILOKV_HOST_DEVICE bool prelock(std::uint32_t head) {
    const auto at = lock_at(head);
    for (;;) {
      const std::uint64_t word = p_.load(at, Order::relaxed, Scope::device);
      const std::uint64_t version = Word::version(word);
      if (log_.has(head, kHeadVersion) && version != log_.version(head)) return false;
      if (Word::is_locked(word) && (Rules::kStealsPrelocksOnly || Word::owner(word) <= position_)) {
        if (Word::owner(word) > position_) probe(PrstmProbe::lock_held_by_lower);
        if (under_locks_ && Rules::kClaims) claim(at);
        return false;
      }
      if (Word::is_prelocked(word) && Word::owner(word) == (position_ & Word::kOwnerMax)) {
        probe(PrstmProbe::prelock_kept);
      } else if (Word::is_prelocked(word) && (!Rules::kHasPriorities || Word::owner(word) < position_)) {
        probe(PrstmProbe::prelock_refused);
        return false;
      } else {
        const std::uint64_t claimed = p_.load(claim_at(at), Order::relaxed, Scope::device);
        if (Rules::kRespectsClaims && LockClaim::is_before(claimed, position_)) {
          probe(PrstmProbe::claim_refused);
          return false;
        }
        if (!under_locks_ && !Word::is_prelocked(word)) {
          // Nobody competes for it: both steps in one.
          const std::uint64_t locked = Word::locked(version, position_);
          if (p_.compare_exchange(at, word, locked, Rules::kLockOrder, Scope::device) != word) continue;
          log_.set_version(head, version);
          log_.add(head, kHeadLocked);
          return true;
        }
        if (!swap(at, word, Word::prelocked(version, position_))) continue;
        if (Word::is_prelocked(word)) {
          ++counts_.steals;
          probe(PrstmProbe::prelock_stolen);
        }
        if (Rules::kDropsClaims && claimed == LockClaim::of(position_)) swap(claim_at(at), claimed, LockClaim::kNone);
      }
      log_.set_version(head, version);
      log_.add(head, kHeadPrelocked);
      return true;
    }
  }
  // To have what is locked next.
  template <class Pointer>
  KILOKV_HOST_DEVICE void claim(Pointer lock) const {
    const auto at = claim_at(lock);
    const std::uint64_t mine = LockClaim::of(position_);
    std::uint64_t claimed = p_.load(at, Order::relaxed, Scope::device);
    if (claimed == mine || (Rules::kClaimsByPriority && LockClaim::is_before(claimed, position_))) return;
    claimed = Rules::kClaimsByPriority ? p_.fetch_max(at, mine, Order::relaxed, Scope::device)
                                       : p_.exchange(at, mine, Order::relaxed, Scope::device);
    if (claimed != LockClaim::kNone && claimed < mine) probe(PrstmProbe::claim_taken_over);
  }
  template <class Pointer>
  KILOKV_HOST_DEVICE bool swap(Pointer at, std::uint64_t from, std::uint64_t to) const {
    return p_.compare_exchange(at, from, to, Order::relaxed, Scope::device) == from;
  }
  KILOKV_HOST_DEVICE bool lock(std::uint32_t head) {
    if (Rules::kLocksOnce && log_.has(head, kHeadLocked)) return true;
    const std::uint64_t version = log_.version(head);
    const std::uint64_t mine = Word::prelocked(version, position_);
    const std::uint64_t locked = Word::locked(version, position_);
    if (p_.compare_exchange(lock_at(head), mine, locked, Rules::kLockOrder, Scope::device) != mine) {
      ++counts_.stolen;
      probe(PrstmProbe::lock_found_stolen);
      return false;
    }
    log_.remove(head, kHeadPrelocked);
    log_.add(head, kHeadLocked);
    return true;
  }

  KILOKV_HOST_DEVICE bool reads_unlocked() const {
    return !log_.for_heads(kHeadVersion, [&](std::uint32_t head) { return log_.has(head, kHeadLocked); });
  }
  // Whether everything that was read without a lock of one's own is as it was, and nobody is at it.
  KILOKV_HOST_DEVICE bool is_valid() const {
    return log_.for_heads(kHeadVersion, [&](std::uint32_t head) {
      if (log_.has(head, kHeadLocked)) return true;
      const std::uint64_t word = p_.load(lock_at(head), Order::relaxed, Scope::device);
      if (Rules::kLockedReadConflicts && Word::is_locked(word)) return false;
      return Word::version(word) == log_.version(head);
    });
  }

  // The same of one that takes no ticket, which would order its reads before this.
  KILOKV_HOST_DEVICE bool is_valid_now() const {
    if (Rules::kWaitFence != Order::relaxed) p_.fence(Rules::kWaitFence, Scope::device);
    return is_valid();
  }

  KILOKV_HOST_DEVICE void write_back() {
    if (Rules::kWriteFence != Order::relaxed) p_.fence(Rules::kWriteFence, Scope::device);
    log_.store_written(p_);
    free_all(1);
  }
  KILOKV_HOST_DEVICE Attempt give_up(Attempt attempt) {
    free_all(0);
    return attempt;
  }
  // Frees all that it has; what was written steps to the next version.
  KILOKV_HOST_DEVICE void free_all(std::uint64_t step) {
    log_.for_heads(0, [&](std::uint32_t head) {
      if (log_.has(head, kHeadLocked)) {
        const std::uint64_t version = log_.version(head) + (log_.has(head, kHeadWrites) ? step : 0);
        p_.store(lock_at(head), Word::free(version), Rules::kFreeOrder, Scope::device);
      } else if (log_.has(head, kHeadPrelocked)) {
        give_back(head, log_.version(head));
      }
      log_.remove(head, kHeadLocked | kHeadPrelocked);
      return true;
    });
  }
  KILOKV_HOST_DEVICE void give_back(std::uint32_t head, std::uint64_t version) {
    if (!Rules::kFreesBySwap) return p_.store(lock_at(head), Word::free(version), Order::relaxed, Scope::device);
    if (!swap(lock_at(head), Word::prelocked(version, position_), Word::free(version))) {
      probe(PrstmProbe::release_found_stolen);
    }
  }

  KILOKV_HOST_DEVICE void probe(PrstmProbe probe) const {
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(probe));
  }

  P& p_;
  const Arguments& a_;
  TicketedCounts counts_;
  TransactionLog<P> log_;
  // Of the attempt.
  std::uint32_t position_ = 0;
  AttemptPlace place_;
  bool under_locks_ = false;  // it has all locks before it runs
  bool stopped_ = false;
};

}  // namespace kilokv::engine
