// `gpustm`: GPU-STM, as far as the PR-STM paper describes it, to compare with. It has sorted locks, and validation by
// timestamps and then by value. A semantic conflict is retried at once, up to 100 times, before it is given up.
//
// A transaction notes the clock when it begins: this is its time. When it reads under a lock with a later timestamp, it
// validates all reads so far by value, and sets its time to the present clock. To commit, it locks all that it has read
// or will write, in ascending order. If a lock is busy, it gives all of them back and tries again. Under the locks it
// compares timestamps. Where a timestamp is later than its own time, it compares values. Then it takes its ticket,
// writes back, and frees what it wrote with the next time of the clock.
//
// Lock word: timestamp << 1 | locked. A value is compared by its tag. No two writes have the same tag, because the tag
// has the version. Clients see versions, so two equal values of different versions are not the same.
//
// Deadlock-free and livelock-free: a transaction that fails to lock holds nothing, and of those that compete for a lock
// the first one gets it.
//
// Source: Xu et al., "Software Transactional Memory for GPU Architectures" (CGO 2014), as PR-STM's sections 2 and 4.1
// describe it. Deviations, all in its favour:
//   - Locks ascend without sorting in each attempt, because footprints are static and are sorted once.
//   - A record that was only read keeps its timestamp.
//   - A transaction that writes nothing commits by a ticket and a validation, without locks.
//   - Values are compared where a lock covers more than what was read.
//   - A transaction that was given up is tried again in the next pass, if the pass has finished others, because nothing
//     may be left that could run.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/ticketed.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/stm/papers/transaction_log.hpp"
#include "engine/txn/interpreter.hpp"

namespace kilokv::engine {

enum class GpustmProbe : std::uint32_t {
  busy,                // another transaction has the lock
  read_found_changed,  // the lock word changed while the record was read
  moved_on,            // the timestamp is later, but the values are those that were read
  values_differ,       // the timestamp is later, and a value has changed
  late_read_only,      // a read was invalidated between the ticket and the validation
  gave_up,             // it has used all its tries
  probes,
};

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed.
struct GpustmRules : LogRules {
  static constexpr bool kValidatesByTime = true;  // under the locks
  static constexpr bool kValidatesReadOnly = true;
  static constexpr Order kClockOrder = Order::acquire;  // of the load that gives a transaction its time
  static constexpr Order kTimeOrder = Order::release;   // of the addition that gives a writer its own
  static constexpr Order kReadFence = Order::acquire;
  static constexpr Order kCompareOrder = Order::acquire;
  static constexpr Order kLockOrder = Order::acquire;
  static constexpr Order kTicketOrder = Order::acquire_release;
  static constexpr Order kWriteFence = Order::release;
  static constexpr Order kFreeOrder = Order::release;
};

template <Platform P, class RulesOf = GpustmRules>
class Gpustm {
 public:
  using Space = typename P::Space;
  using Arguments = TicketedArguments<Space>;
  using Rules = RulesOf;
  static constexpr Window kWindow = Window::one;
  static constexpr std::uint8_t kSemanticTries = 100;

  KILOKV_HOST_DEVICE Gpustm(P& platform, const Arguments& arguments) : p_(platform), a_(arguments), log_(arguments) {}

  KILOKV_HOST_DEVICE void prepare(std::uint32_t position, std::uint32_t t) {
    log_.build(t);
    a_.tries[position] = 0;
  }

  KILOKV_HOST_DEVICE Attempt attempt(std::uint32_t position, std::uint32_t t, AttemptPlace place) {
    ++counts_.attempts;
    place_ = place;
    log_.open(t);
    log_.clear();
    stopped_ = false;
    under_locks_ = place.must_lock || log_.uses_commit_version();
    const Attempt attempt = under_locks_ ? run_under_locks() : run_optimistically();
    if (attempt != Attempt::postponed || under_locks_) return attempt;  // under locks each try costs a ticket
    const auto tries = static_cast<std::uint8_t>(a_.tries[position] + 1);
    a_.tries[position] = tries;
    if (tries < kSemanticTries) {
      ++counts_.retried;
      return Attempt::again;
    }
    a_.tries[position] = 0;
    probe(GpustmProbe::gave_up);
    return attempt;
  }

  // For LoggedAccess: reads a record for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    if (under_locks_ || log_.record(e) == a_.absent_record) return log_.load(p_, e);
    const auto lock = lock_at(e);
    // The loads of the clock order these reads. A lock with a timestamp up to time_ was freed before time_ was loaded.
    // Later timestamps are not accepted.
    std::uint64_t word = p_.load(lock, Order::relaxed, Scope::device);
    while (!is_locked(word) && time_of(word) > time_) {
      if (!move_on()) return stop(GpustmProbe::values_differ);
      word = p_.load(lock, Order::relaxed, Scope::device);  // meanwhile it may have changed once more
    }
    if (is_locked(word)) return stop(GpustmProbe::busy);
    const Cell cell = log_.load(p_, e);
    if (Rules::kReadFence != Order::relaxed) p_.fence(Rules::kReadFence, Scope::device);
    if (p_.load(lock, Order::relaxed, Scope::device) != word) return stop(GpustmProbe::read_found_changed);
    a_.entry_tag[e] = cell.tag;
    log_.add(log_.head(e), kHeadVersion);
    return cell;
  }
  KILOKV_HOST_DEVICE bool stopped() const { return stopped_; }

  // What the thread has counted, in addition to what TicketedRun counts.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  using Access = LoggedAccess<P, Gpustm, Rules>;

  KILOKV_HOST_DEVICE static constexpr bool is_locked(std::uint64_t word) { return (word & 1) != 0; }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t time_of(std::uint64_t word) { return word >> 1; }

  KILOKV_HOST_DEVICE Attempt run_optimistically() {
    const std::uint32_t no_rank = kWaitPassesMax * a_.batch.size;  // the rank of no transaction of the batch
    time_ = p_.load(a_.clock, Rules::kClockOrder, Scope::device);
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), no_rank);
    if (stopped_) return Attempt::conflict;
    if (outcome == Outcome::postponed) return Attempt::postponed;  // all reads are of one time
    if (a_.results.wrote[log_.transaction()] == 0) return commit_read_only(outcome, no_rank);
    if (!lock_all(kHeadVersion | kHeadWrites)) return Attempt::conflict;
    if (Rules::kValidatesByTime && !has_same_values_where_later()) {
      probe(GpustmProbe::values_differ);
      free_all(0);
      return Attempt::conflict;
    }
    const std::uint32_t rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
    if (rank == kNone) {
      free_all(0);
      return Attempt::exhausted;
    }
    log_.stamp(outcome, no_rank, rank);
    write_back();
    return Attempt::decided;
  }

  KILOKV_HOST_DEVICE Attempt commit_read_only(Outcome outcome, std::uint32_t no_rank) {
    const std::uint32_t rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
    if (rank == kNone) return Attempt::exhausted;
    if (Rules::kValidatesReadOnly && !has_same_values()) {
      probe(GpustmProbe::late_read_only);
      ++counts_.wasted;
      return Attempt::conflict;
    }
    log_.stamp(outcome, no_rank, rank);
    return Attempt::decided;
  }

  KILOKV_HOST_DEVICE Attempt run_under_locks() {
    ++counts_.under_locks;
    if (!lock_all(0)) return Attempt::conflict;
    const std::uint32_t rank = take_rank(p_, a_, place_.range, Rules::kTicketOrder);
    if (rank == kNone) {
      free_all(0);
      return Attempt::exhausted;
    }
    Access access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, log_.transaction(), rank);
    write_back();
    return outcome == Outcome::postponed ? Attempt::postponed : Attempt::decided;
  }

  KILOKV_HOST_DEVICE Cell stop(GpustmProbe why) {
    probe(why);
    stopped_ = true;
    return {};
  }
  KILOKV_HOST_DEVICE auto lock_at(std::uint32_t e) const { return a_.locks + log_.lock_of(e); }

  // Moves the transaction's time on to the present, if all reads so far still hold. Returns whether they do.
  KILOKV_HOST_DEVICE bool move_on() {
    const std::uint64_t now = p_.load(a_.clock, Rules::kClockOrder, Scope::device);
    if (!has_same_values()) return false;
    time_ = now;
    probe(GpustmProbe::moved_on);
    return true;
  }
  // Whether all that was read is unchanged. For a transaction without locks.
  KILOKV_HOST_DEVICE bool has_same_values() const {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (!was_read(e)) continue;
      // The tag that is found is not older than the lock word. If it is newer, it is another tag.
      if (is_locked(p_.load(lock_at(e), Rules::kCompareOrder, Scope::device)) || tag_at(e) != a_.entry_tag[e])
        return false;
    }
    return true;
  }
  // The same under the locks, where a timestamp is later than the transaction's time.
  KILOKV_HOST_DEVICE bool has_same_values_where_later() const {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (was_read(e) && log_.version(log_.head(e)) > time_ && tag_at(e) != a_.entry_tag[e]) return false;
    }
    return true;
  }
  KILOKV_HOST_DEVICE bool was_read(std::uint32_t e) const {
    return log_.has(e, kEntryRead) && log_.record(e) != a_.absent_record;
  }
  KILOKV_HOST_DEVICE Tag tag_at(std::uint32_t e) const {
    return p_.load(a_.cells + (2 * std::uint64_t{log_.record(e)} + 1), Order::relaxed, Scope::device);
  }

  // Locks every lock that has one of the flags (0: all that need it). If it returns false, the transaction has none of
  // them.
  KILOKV_HOST_DEVICE bool lock_all(std::uint8_t flags) {
    const bool has_all = log_.for_heads(0, [&](std::uint32_t head) {
      return log_.is_idle(head) || (flags != 0 && !log_.has(head, flags)) || lock(head);
    });
    if (!has_all) free_all(0);
    return has_all;
  }
  KILOKV_HOST_DEVICE bool lock(std::uint32_t head) {
    const auto at = lock_at(head);
    const std::uint64_t word = p_.load(at, Order::relaxed, Scope::device);
    if (is_locked(word) || p_.compare_exchange(at, word, word | 1, Rules::kLockOrder, Scope::device) != word) {
      probe(GpustmProbe::busy);
      return false;
    }
    log_.set_version(head, time_of(word));
    log_.add(head, kHeadLocked);
    return true;
  }

  KILOKV_HOST_DEVICE void write_back() {
    if (Rules::kWriteFence != Order::relaxed) p_.fence(Rules::kWriteFence, Scope::device);
    log_.store_written(p_);
    const bool wrote = a_.results.wrote[log_.transaction()] != 0;
    free_all(wrote ? p_.fetch_add(a_.clock, std::uint64_t{1}, Rules::kTimeOrder, Scope::device) + 1 : 0);
  }
  // Frees all locks. Those of written records get this time.
  KILOKV_HOST_DEVICE void free_all(std::uint64_t time) {
    log_.for_heads(kHeadLocked, [&](std::uint32_t head) {
      const std::uint64_t kept = time != 0 && log_.has(head, kHeadWrites) ? time : log_.version(head);
      p_.store(lock_at(head), kept << 1, Rules::kFreeOrder, Scope::device);
      log_.remove(head, kHeadLocked);
      return true;
    });
  }
  KILOKV_HOST_DEVICE void probe(GpustmProbe probe) const {
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(probe));
  }

  P& p_;
  const Arguments& a_;
  TicketedCounts counts_;
  TransactionLog<P> log_;
  // Of the current attempt:
  AttemptPlace place_;
  std::uint64_t time_ = 0;
  bool under_locks_ = false;  // the transaction has all locks before it runs
  bool stopped_ = false;
};

}  // namespace kilokv::engine
