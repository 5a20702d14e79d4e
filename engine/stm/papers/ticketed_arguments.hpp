// What the strategies that are not deterministic are given: those that find an order while they run, and take a ticket
// for it (stm/papers/ticketed.hpp). Trivially copyable.
//
// A transaction's uses of records are its guards' keys, two to a guard, and its operations' keys. With G guards and m
// operations in the batch, transaction t has the uses [first(t), first(t + 1)) of 2G + m, where first(t) is twice its
// first guard plus its first operation; within, guards come first. Its entries, one for each record that it may touch,
// stand at the beginning of the same stretch, ascending by record: they are its footprint, and its log.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

// What a thread counts. Not every strategy has all of these.
struct TicketedCounts {
  std::uint64_t decided = 0;      // transactions that it decided; postponed ones not
  std::uint64_t attempts = 0;     // runs of a transaction, those under locks included
  std::uint64_t conflicts = 0;    // attempts that ended because of another transaction
  std::uint64_t under_locks = 0;  // attempts that locked everything first
  std::uint64_t steals = 0;       // pre-locks taken from a transaction of lower priority
  std::uint64_t stolen = 0;       // attempts that ended because one of theirs was taken
  std::uint64_t postponed = 0;    // times that a WAIT guard postponed one
  std::uint64_t retried = 0;      // times that one was tried again at once because of a WAIT guard
  std::uint64_t wasted = 0;       // tickets of attempts that ended in a conflict
  std::uint64_t hazards = 0;      // attempts that waited for one with an earlier ticket
  std::uint64_t limits = 0;       // changes of the concurrency limit
  // Of transactions on the stage of `local`:
  std::uint64_t staged = 0;            // that were decided there
  std::uint64_t restarts = 0;          // attempts that ended because another lane was in the way
  std::uint64_t aliases = 0;           // of these, about as many where it was not at the same record
  std::uint64_t warp_serialized = 0;   // lanes that had to go alone in their group
  std::uint64_t block_serialized = 0;  // of these, in the block

  // The group's: every lane of it must call.
  template <Platform P>
  KILOKV_HOST_DEVICE TicketedCounts of_group(P& p) const {
    return {p.sum(decided),  p.sum(attempts), p.sum(conflicts),       p.sum(under_locks),
            p.sum(steals),   p.sum(stolen),   p.sum(postponed),       p.sum(retried),
            p.sum(wasted),   p.sum(hazards),  p.sum(limits),          p.sum(staged),
            p.sum(restarts), p.sum(aliases),  p.sum(warp_serialized), p.sum(block_serialized)};
  }
  KILOKV_HOST_DEVICE void add(const TicketedCounts& other) {
    decided += other.decided;
    attempts += other.attempts;
    conflicts += other.conflicts;
    under_locks += other.under_locks;
    steals += other.steals;
    stolen += other.stolen;
    postponed += other.postponed;
    retried += other.retried;
    wasted += other.wasted;
    hazards += other.hazards;
    limits += other.limits;
    staged += other.staged;
    restarts += other.restarts;
    aliases += other.aliases;
    warp_serialized += other.warp_serialized;
    block_serialized += other.block_serialized;
  }
};

// Words that all threads share; all zero at the start.
enum TicketedWord : std::uint32_t {
  kTicketedPasses,                                      // out; 0: given up, see idle_sweeps_max
  kTicketedStopped,                                     // a thread has given up
  kTicketedTickets,                                     // [kWaitPassesMax] tickets given out in each range
  kTicketedPhases = kTicketedTickets + kWaitPassesMax,  // three phases in turn, kPhaseWords each
  kTicketedWords = kTicketedPhases + 3 * 3,
};
// Of a phase: transactions left, transactions postponed, whether a thread has given up.
enum PhaseWord : std::uint32_t { kPhaseLeft, kPhasePostponed, kPhaseStopped, kPhaseWords };
static_assert(kPhaseWords == 3);

struct TicketedTuning {
  std::uint32_t records_per_lock = 1;
  std::uint32_t optimistic_tries = 2;  // of a transaction, before it locks everything that it may touch
  // A watchdog: a thread that has so many sweeps in a row in which it decides nothing, and nobody takes a ticket, gives
  // the batch up. It cannot happen but by a bug, and must not hang then.
  std::uint32_t idle_sweeps_max = 1u << 25;
  std::uint32_t transactions_per_thread = 0;  // 0: as the executor finds best
};

inline constexpr auto kRecordsPerLockSetting = number_setting<&TicketedTuning::records_per_lock>(
    "records-per-lock", "Number of records that one lock covers.", 1, 1u << 20);
inline constexpr auto kTransactionsPerThreadSetting = number_setting<&TicketedTuning::transactions_per_thread>(
    "transactions-per-thread", "Number of transactions that one thread runs as a group; 0 is automatic.", 0, 1u << 20);
// Of all of them, and of those that have locks.
inline constexpr SettingOf<TicketedTuning> kTicketedSettings[] = {kTransactionsPerThreadSetting};
inline constexpr SettingOf<TicketedTuning> kLockingSettings[] = {kRecordsPerLockSetting, kTransactionsPerThreadSetting};

// What all of them are given. One that needs more derives its own arguments from these, with a tuning of its own
// (stm/papers/kilo_arguments.hpp, stm/papers/local_arguments.hpp), and names them as Protocol::Arguments.
//
// With n transactions, G guards, m operations, U = 2G + m uses and d records that the batch names, each once:
template <class Space>
struct TicketedArguments : BatchArguments<Space> {
  static constexpr bool kLeavesDeltas = false;

  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<const std::uint32_t> class_end = {};  // [classes] positions: those of one precedence end here
  Pointer<std::uint64_t> locks = {};            // [lock_words_of(d) at least] free, unclaimed, before and behind
  Pointer<std::uint64_t> clock = {};            // [1] never runs backwards: not below any lock's version
  Pointer<std::uint32_t> use_entry = {};        // [U] scratch, all from here on
  Pointer<std::uint32_t> entry_record = {};     // [U]
  Pointer<std::uint32_t> entry_head = {};       // [U] the first entry of the same lock: what is known of the lock
  Pointer<std::uint32_t> entry_count = {};      // [n]
  Pointer<std::uint64_t> entry_cell = {};       // [2U] what was read or is to be written: word and tag
  Pointer<std::uint64_t> entry_version = {};    // [U] of the head's lock
  Pointer<std::uint64_t> entry_tag = {};        // [U] as it was first read, where the strategy asks for it
  Pointer<std::uint8_t> entry_flags = {};       // [U]
  Pointer<std::uint8_t> tries = {};             // [n] by position
  Pointer<std::uint32_t> pass_of = {};          // [n] the pass that a position waits for
  Pointer<std::uint32_t> undecided = {};        // [position_room(n, threads, width)]
  Pointer<std::uint64_t> words = {};            // [kTicketedWords]
  Pointer<TicketedCounts> counts = {};          // [groups] out
  std::uint32_t classes = 0;
  std::uint32_t threads = 1;  // of the launch
  TicketedTuning tuning;
};

// Owners' bits in a lock word (stm/papers/lock_word.hpp): a batch has no more transactions than these can tell apart.
inline constexpr std::uint64_t kTicketedTransactionsMax = std::uint64_t{1} << 24;

constexpr std::uint64_t locks_of(std::uint64_t records, std::uint32_t records_per_lock) {
  return (records + records_per_lock - 1) / records_per_lock;
}
// `prstm` has a claim beside each lock word (stm/papers/lock_word.hpp); the others use half of them.
inline constexpr std::uint64_t kWordsPerLock = 2;
constexpr std::uint64_t lock_words_of(std::uint64_t records, std::uint32_t records_per_lock) {
  return kWordsPerLock * locks_of(records, records_per_lock);
}

}  // namespace kilokv::engine
