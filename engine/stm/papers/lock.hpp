// `lock`: fine-grained locks in key order, as somebody would write them by hand. It is what the transactional memories
// are measured against. A transaction locks its whole footprint, which is known before it runs. Then it takes its
// ticket, runs in place, and frees the locks.
//
// The lock word counts readers. While a writer has the lock, the word is kWriter instead. A transaction locks as a
// reader where none of its operations may write a record of the lock.
//
// Deadlock-free: every transaction takes its locks in ascending order, and a thread has one transaction at a time. This
// also holds in lockstep. A lock that is busy ends the attempt. The transaction keeps the locks that it has, and goes
// on from there in its next attempt. So no lane waits within an iteration, and the lane that has the lock makes
// progress in the same iteration.
//
// Source: the fine-grained locking that KILO TM is compared with (KILO TM, section 6), in software. Deviations: readers
// share a lock. The key order is the order of the batch's records.
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

enum class LockProbe : std::uint32_t {
  busy,         // another transaction has the lock
  shared,       // a reader came beside another reader
  kept_others,  // went on with the locks of an earlier attempt
  probes,
};

// The rules. A mutation (docs/papers.md, section 1) is this struct with one rule taken away.
struct LockRules : LogRules {
  static constexpr bool kInOrder = true;  // locks are taken in ascending order
  static constexpr bool kReadersLock = true;
  static constexpr Order kLockOrder = Order::acquire;
  static constexpr Order kFreeOrder = Order::release;
};

template <Platform P, class RulesOf = LockRules>
class Locking {
 public:
  using Space = typename P::Space;
  using Arguments = TicketedArguments<Space>;
  using Rules = RulesOf;
  static constexpr Window kWindow = Window::one;

  KILOKV_HOST_DEVICE Locking(P& platform, const Arguments& arguments) : p_(platform), a_(arguments), log_(arguments) {}

  KILOKV_HOST_DEVICE void prepare(std::uint32_t, std::uint32_t t) { log_.build(t); }

  KILOKV_HOST_DEVICE Attempt attempt(std::uint32_t, std::uint32_t t, AttemptPlace place) {
    log_.open(t);
    if (!lock_all()) return Attempt::conflict;
    ++counts_.attempts;
    const std::uint32_t rank = take_rank(p_, a_, place.range, Order::relaxed);  // always there: a pass has one for each
    LoggedAccess<P, Locking, Rules> access(a_, &log_, this);
    const Outcome outcome = run_transaction(a_.batch, a_.results, access, t, rank);
    write_back();
    free_all();
    log_.clear();
    return outcome == Outcome::postponed ? Attempt::postponed : Attempt::decided;
  }

  // For LoggedAccess: reads a record for the first time.
  KILOKV_HOST_DEVICE Cell fetch(std::uint32_t e) {
    const auto at = a_.cells + 2 * std::uint64_t{log_.record(e)};
    return {p_.get(at), p_.get(at + 1)};
  }
  KILOKV_HOST_DEVICE static constexpr bool stopped() { return false; }

  // What the thread has counted, in addition to what TicketedRun counts.
  KILOKV_HOST_DEVICE const TicketedCounts& counts() const { return counts_; }

 private:
  static constexpr std::uint64_t kWriter = std::uint64_t{1} << 63;

  KILOKV_HOST_DEVICE auto lock_at(std::uint32_t e) const { return a_.locks + log_.lock_of(e); }

  // Goes on from where the last attempt ended.
  KILOKV_HOST_DEVICE bool lock_all() {
    if (!Rules::kInOrder && log_.transaction() % 2 != 0) {
      for (std::uint32_t e = log_.end(); e-- > log_.begin();) {
        if (log_.head(e) == e && !lock(e)) return false;
      }
      return true;
    }
    return log_.for_heads(0, [&](std::uint32_t head) { return lock(head); });
  }
  KILOKV_HOST_DEVICE bool lock(std::uint32_t head) {
    if (log_.has(head, kHeadLocked)) {
      p_.probe(number(LockProbe::kept_others));
      return true;
    }
    if (log_.is_idle(head)) return true;
    const bool writes = log_.has(head, kHeadMayWrite);
    if (!writes && !Rules::kReadersLock) return true;
    const auto at = lock_at(head);
    const std::uint64_t word = p_.load(at, Order::relaxed, Scope::device);
    if (writes ? word != 0 : (word & kWriter) != 0) {
      p_.probe(number(LockProbe::busy));
      return false;
    }
    if (!writes && word != 0) p_.probe(number(LockProbe::shared));
    const std::uint64_t mine = writes ? kWriter : word + 1;
    if (p_.compare_exchange(at, word, mine, Rules::kLockOrder, Scope::device) != word) return false;
    log_.add(head, kHeadLocked);
    return true;
  }
  KILOKV_HOST_DEVICE void write_back() {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (!log_.has(e, kEntryWritten)) continue;
      const Cell cell = log_.cell(e);
      const auto at = a_.cells + 2 * std::uint64_t{log_.record(e)};
      p_.put(at, cell.word);
      p_.put(at + 1, cell.tag);
    }
  }
  KILOKV_HOST_DEVICE void free_all() {
    log_.for_heads(kHeadLocked, [&](std::uint32_t head) {
      if (log_.has(head, kHeadMayWrite)) {
        p_.store(lock_at(head), 0, Rules::kFreeOrder, Scope::device);
      } else {
        p_.fetch_add(lock_at(head), ~std::uint64_t{0}, Rules::kFreeOrder, Scope::device);
      }
      return true;
    });
  }
  KILOKV_HOST_DEVICE static constexpr std::uint32_t number(LockProbe probe) {
    return kProtocolProbes + static_cast<std::uint32_t>(probe);
  }

  P& p_;
  const Arguments& a_;
  TicketedCounts counts_;
  TransactionLog<P> log_;
};

}  // namespace kilokv::engine
