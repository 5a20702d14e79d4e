// `prstm`: PR-STM, priority rule based software transactional memory, with semantic postponement.
//
// An attempt has these steps:
//   run         The transaction reads invisibly: its reads change nothing in shared memory. Its writes stay in its log.
//   pre-lock    It pre-locks the locks of what it writes. Until a pre-lock is locked, a transaction of higher priority
//               (a lower position) may steal it.
//   lock        It locks them. This fails where a pre-lock was stolen.
//   validate    It checks that no lock under which it read has changed or is locked. This ends most conflicts before
//               they cost a ticket.
//   ticket      It takes its ticket, and validates again.
//   write back  It writes, and frees each lock with its next version.
// A transaction that writes nothing takes no lock. A transaction that is postponed needs only a validation, and no
// ticket.
//
// A transaction locks all that it may touch before it runs, in three cases:
//   - after a few failed tries;
//   - where no ticket may be wasted;
//   - where it uses its own commit version.
// It locks reads too, by the same rule. Then nothing can come between its reads and its writes. So transactions that
// conflict again and again are decided by priority, also in lockstep.
//
// Why the order is serial.
//   (1) Writers of one lock exclude each other. Freeing and locking order their tickets.
//   (2) A transaction that reads what another one wrote has seen the writer's lock freed. So it has seen the writer's
//       ticket too, and its own ticket is later.
//   (3) Let R read under a lock that W writes under, let R miss W's write, and let W's ticket be before R's. W locked
//       before it took its ticket. R validates after it took its own. Each ticket is an acquire and a release on one
//       word. So R sees W's lock, or what W left there, and fails. The transactions that do not fail are therefore
//       ordered by their tickets.
//
// Why stealing is safe: a pre-lock protects nothing. It is taken, stolen, locked and given back by compare-and-swap
// only. So a transaction that has lost a pre-lock can neither lock nor free it.
//
// Progress. Take the transaction of highest priority among those that lock everything. It keeps its pre-locks, because
// no transaction may steal them, and it claims what it finds locked. Transactions of lower priority look at the claim
// before each swap, and leave the lock alone. A thread that looked before the claim was made can still take the lock,
// but only once: before its next swap it looks again. So no second look after the swap is needed. A transaction that
// has a lock waits for nothing. So the first transaction commits when the holder of each of its locks, and those that
// came in between, have made their last few steps. This holds whatever the others do, also in lockstep. Otherwise
// transactions wait only for those of higher priority. They keep their pre-locks meanwhile. If they gave them back and
// took them again, they could make the swaps of a higher priority fail forever.
//
// Claims are hints, for progress and never for safety: all their accesses are relaxed. A claim of higher priority
// replaces one of lower priority, never the other way round. Only a transaction that locks everything makes claims. It
// drops a claim when it has pre-locked the lock. Before that it is neither decided nor postponed, so a batch leaves no
// claims.
//
// Source: PR-STM, sections 3.1 to 3.3, Algorithms 1 and 2. Deviations that close gaps (docs/papers.md, section 1; the
// numbers of the gaps are in brackets):
//   - Reads load the lock word before the value. The validations check the word again (1).
//   - Reads are validated while the write locks are held, after the ticket was taken. A locked read is a conflict. On a
//     later try, when reads are locked too, priority decides it (2).
//   - Lock words have 64 bits (3, stm/papers/lock_word.hpp). There is one log, with each record and each lock once (4,
//     7, stm/papers/transaction_log.hpp).
//   - Every outcome is validated, a semantic conflict too (5).
// Deviations that close no gap:
//   - A locked lock can be claimed. Otherwise the highest priority could find it locked again and again. The claim is a
//     word of its own, so that a lock is freed by a store.
//   - A free lock is pre-locked and locked in one step, except by transactions that lock everything. This halves the
//     swaps where nothing competes.
//   - The priority is the transaction's, not the thread's.
//   - Locks are taken in ascending order. This costs nothing here, and fewer pre-locks are stolen.
//   - Writes stay in the log until the commit, as in the paper, and have the version of the ticket.
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
  prelock_refused,       // a higher priority has the pre-lock
  prelock_kept,          // the pre-lock is from an earlier attempt that waited
  claim_refused,         // a higher priority is to have the lock next
  claim_taken_over,      // from a lower priority
  lock_held_by_lower,    // a lower priority has locked it, which cannot be stolen
  lock_found_stolen,     // a pre-lock was gone when it was to be locked
  release_found_stolen,  // a pre-lock was gone when it was to be given back
  read_found_locked,
  reread_other_version,     // another record of a lock was read at another version
  early_validation_failed,  // a read was invalidated before the ticket
  late_validation_failed,   // a read was invalidated between the early validation and the late one
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(PrstmProbe::probes) <= kProbes);

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed. Numbers in brackets are
// gaps.
struct PrstmRules : LogRules {
  using Word = LockWord;
  static constexpr bool kLockFirst = true;              // (1) the lock word is loaded before the value
  static constexpr bool kLockedReadConflicts = true;    // (2) a locked read is a conflict
  static constexpr bool kValidatesBehindTicket = true;  // (2) reads are validated after the ticket was taken
  static constexpr bool kValidatesEveryOutcome = true;  // (5) every outcome is validated
  static constexpr bool kWastesTickets = false;         // true: every ticket of an optimistic attempt is wasted
  static constexpr bool kRunsOnce = true;               // (6) an attempt runs the transaction once
  static constexpr bool kLocksOnce = true;              // (7) a lock that covers several records is taken once
  static constexpr bool kFreesBySwap = true;            // a pre-lock is given back only if it is still there
  static constexpr bool kStealsPrelocksOnly = true;     // what is locked is never stolen
  static constexpr bool kClaims = true;                 // what is locked is claimed
  static constexpr bool kRespectsClaims = true;         // what a higher priority has claimed is left alone
  static constexpr bool kClaimsByPriority = true;       // no claim replaces that of a higher priority
  static constexpr bool kDropsClaims = true;            // a claim is dropped when the lock is pre-locked
  static constexpr bool kHasPriorities = true;          // false: the transaction that comes first keeps a pre-lock
  static constexpr Order kReadOrder = Order::acquire;   // of the lock word, before the value
  // Between the values and the validation of one that is postponed.
  static constexpr Order kWaitFence = Order::acquire;
  static constexpr Order kLockOrder = Order::acquire;  // of the swap that locks
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
    Attempt attempt = run();
    if (!Rules::kRunsOnce && attempt == Attempt::decided) {
      log_.clear();
      under_locks_ = true;
      attempt = run();
    }
    const std::uint8_t tries = a_.tries[position];
    if (attempt == Attempt::conflict && tries < kTriesMax) a_.tries[position] = static_cast<std::uint8_t>(tries + 1);
    return attempt;
  }

  // For LoggedAccess: reads a record for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    if (under_locks_ || log_.record(e) == a_.absent_record) return log_.load(p_, e);
    const auto lock = lock_at(e);
    const std::uint32_t head = log_.head(e);
    if (!Rules::kLockFirst) {  // as in Algorithm 1
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

  // What the thread has counted, in addition to what TicketedRun counts.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  using Access = LoggedAccess<P, Prstm, Rules>;
  static constexpr std::uint8_t kTriesMax = 255;

  // run_transaction() is called in one place, because each call is inlined, and it is most of a kernel. In a warp,
  // lanes that have locks and lanes that have none may run it together.
  KILOKV_HOST_DEVICE Attempt run() {
    std::uint32_t rank = no_rank();
    if (under_locks_) {
      ++counts_.under_locks;
      if (!lock_all(0)) return Attempt::conflict;
      rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
      if (rank == kNone) return give_up(Attempt::exhausted);
    }
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), rank);
    if (!under_locks_) return end_optimistically(outcome);
    write_back();
    return outcome == Outcome::postponed ? Attempt::postponed : Attempt::decided;
  }

  // After the run of a transaction that has no lock and no rank.
  KILOKV_HOST_DEVICE Attempt end_optimistically(Outcome outcome) {
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
    log_.stamp(outcome, no_rank(), rank);
    write_back();
    return Attempt::decided;
  }
  // The rank of no transaction of the batch.
  KILOKV_HOST_DEVICE std::uint32_t no_rank() const { return kWaitPassesMax * a_.batch.size; }

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

  // Pre-locks, and then locks, all locks with these flags (0: all that need it). Returns false if it failed. Then the
  // transaction has none of these locks. But if it locks everything and must wait, it keeps its pre-locks.
  KILOKV_HOST_DEVICE bool lock_all(std::uint8_t flags) {
    const bool has_all = for_locks(flags, [&](std::uint32_t head) { return prelock(head); });
    if (!has_all && under_locks_) return false;
    if (has_all && for_locks(flags, [&](std::uint32_t head) { return lock(head); })) return true;
    free_all(0);
    return false;
  }
  template <class F>
  KILOKV_HOST_DEVICE bool for_locks(std::uint8_t flags, const F& f) {
    if (!Rules::kLocksOnce) {  // once for each record that is written
      for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
        if (!log_.has(e, kEntryWritten) && flags != 0) continue;
        if (!f(log_.head(e))) return false;
      }
      return true;
    }
    return log_.for_heads(flags, [&](std::uint32_t head) { return log_.is_idle(head) || f(head); });
  }

  // Returns false if it has no pre-lock. Then it may have claimed the lock.
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
          // The lock is free: pre-lock and lock in one step.
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
  // Claims a lock that is locked, to have it next.
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
  // Whether everything that was read without an own lock is unchanged and not locked.
  KILOKV_HOST_DEVICE bool is_valid() const {
    return log_.for_heads(kHeadVersion, [&](std::uint32_t head) {
      if (log_.has(head, kHeadLocked)) return true;
      const std::uint64_t word = p_.load(lock_at(head), Order::relaxed, Scope::device);
      if (Rules::kLockedReadConflicts && Word::is_locked(word)) return false;
      return Word::version(word) == log_.version(head);
    });
  }

  // The same for a transaction that takes no ticket. A ticket would order its reads before this check; here a fence
  // does.
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
  // Frees all locks and gives back all pre-locks. The versions of locks whose records were written grow by `step`.
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
  // Of the current attempt:
  std::uint32_t position_ = 0;
  AttemptPlace place_;
  bool under_locks_ = false;  // the transaction has all locks before it runs
  bool stopped_ = false;
};

}  // namespace kilokv::engine
