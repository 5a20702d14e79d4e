// What the strategies get that are not deterministic. They find an order while they run, and take tickets for it
// (stm/papers/ticketed.hpp). Trivially copyable.
//
// A transaction uses records by its guards' keys (two uses for each guard) and by its operations' keys. With G guards
// and m operations in the batch, there are U = 2G + m uses. Transaction t has the uses from first(t) up to first(t +
// 1), where first(t) is twice the number of its first guard plus the number of its first operation. Its guards' uses
// come first. The entries of a transaction, one for each record that it may touch, are at the beginning of the same
// stretch, ascending by record. They are its footprint and its log.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

// What a thread counts. Not every strategy has all of these.
struct TicketedCounts {
  std::uint64_t decided = 0;      // transactions that it decided, without the postponed ones
  std::uint64_t attempts = 0;     // runs of a transaction, also those under locks
  std::uint64_t conflicts = 0;    // attempts that ended because of another transaction
  std::uint64_t under_locks = 0;  // attempts that locked everything first
  std::uint64_t steals = 0;       // pre-locks taken from a transaction of lower priority
  std::uint64_t stolen = 0;       // attempts that ended because a pre-lock of theirs was taken
  std::uint64_t postponed = 0;    // times that a WAIT guard postponed a transaction
  std::uint64_t retried = 0;      // times that a transaction was tried again at once because of a WAIT guard
  std::uint64_t wasted = 0;       // tickets of attempts that ended in a conflict
  std::uint64_t hazards = 0;      // attempts that waited for a transaction with an earlier ticket
  std::uint64_t limits = 0;       // changes of the concurrency limit
  // These count transactions on the stage of `local`:
  std::uint64_t staged = 0;            // transactions that were decided there
  std::uint64_t restarts = 0;          // attempts that ended because another lane was in the way
  std::uint64_t aliases = 0;           // those of them, roughly, that met an alias and not the same record
  std::uint64_t warp_serialized = 0;   // lanes that had to run alone in their group
  std::uint64_t block_serialized = 0;  // those of them that had to run alone in the block

  // The sums over the group. Every lane of the group must call this.
  template <Platform P>
  KILOKV_HOST_DEVICE TicketedCounts of_group(P& p) const {
    TicketedCounts sums;
    for_each([&](auto count) { sums.*count = p.sum(this->*count); });
    return sums;
  }
  KILOKV_HOST_DEVICE void add(const TicketedCounts& other) {
    for_each([&](auto count) { this->*count += other.*count; });
  }

  // Calls f with each member.
  template <class F>
  KILOKV_HOST_DEVICE static constexpr void for_each(const F& f) {
    using Counts = TicketedCounts;
    f(&Counts::decided), f(&Counts::attempts), f(&Counts::conflicts), f(&Counts::under_locks);
    f(&Counts::steals), f(&Counts::stolen), f(&Counts::postponed), f(&Counts::retried);
    f(&Counts::wasted), f(&Counts::hazards), f(&Counts::limits), f(&Counts::staged);
    f(&Counts::restarts), f(&Counts::aliases), f(&Counts::warp_serialized), f(&Counts::block_serialized);
  }
};
constexpr std::size_t ticketed_counts() {
  std::size_t number = 0;
  TicketedCounts::for_each([&](auto) { ++number; });
  return number;
}
static_assert(ticketed_counts() * sizeof(std::uint64_t) == sizeof(TicketedCounts), "for_each() lacks a member");

// Words that all threads share. All are zero at the start.
enum TicketedWord : std::uint32_t {
  // Out; 0: the batch was given up (TicketedTuning::idle_sweeps_max).
  kTicketedPasses,
  kTicketedStopped,                                     // a thread has given up
  kTicketedTickets,                                     // [kWaitPassesMax] tickets taken in each range
  kTicketedPhases = kTicketedTickets + kWaitPassesMax,  // three sets of PhaseWord, used in turn
  kTicketedWords = kTicketedPhases + 3 * 3,
};
// What a phase leaves: the transactions that are left, those that were postponed, and whether a thread has given up.
enum PhaseWord : std::uint32_t { kPhaseLeft, kPhasePostponed, kPhaseStopped, kPhaseWords };
static_assert(kPhaseWords == 3);

struct TicketedTuning {
  std::uint32_t records_per_lock = 1;
  std::uint32_t optimistic_tries = 2;  // tries of a transaction before it locks everything that it may touch
  // A watchdog. A thread gives the batch up after more sweeps in a row than this in which it decides nothing and no
  // thread takes a ticket. Only a bug can cause this, and then the program must not hang.
  std::uint32_t idle_sweeps_max = 1u << 25;
  std::uint32_t transactions_per_thread = 0;  // 0: automatic, the executor chooses
};

inline constexpr auto kRecordsPerLockSetting = number_setting<&TicketedTuning::records_per_lock>(
    "records-per-lock", "Number of records that one lock covers.", 1, 1u << 20);
inline constexpr auto kTransactionsPerThreadSetting = number_setting<&TicketedTuning::transactions_per_thread>(
    "transactions-per-thread", "Number of transactions that one thread runs as a group; 0 is automatic.", 0, 1u << 20);
// The settings of all these strategies, and of those that have locks.
inline constexpr SettingOf<TicketedTuning> kTicketedSettings[] = {kTransactionsPerThreadSetting};
inline constexpr SettingOf<TicketedTuning> kLockingSettings[] = {kRecordsPerLockSetting, kTransactionsPerThreadSetting};

constexpr std::uint64_t locks_of(std::uint64_t records, std::uint32_t records_per_lock) {
  return (records + records_per_lock - 1) / records_per_lock;
}
// `prstm` has a claim beside each lock word (stm/papers/lock_word.hpp). The other strategies use half of the words.
inline constexpr std::uint64_t kWordsPerLock = 2;
constexpr std::uint64_t lock_words_of(std::uint64_t records, std::uint32_t records_per_lock) {
  return kWordsPerLock * locks_of(records, records_per_lock);
}

// What all these strategies get. A strategy that needs more derives its own arguments from these, with a tuning of its
// own (stm/papers/kilo_arguments.hpp, stm/papers/local_arguments.hpp), and names them as Protocol::Arguments.
//
// In the comments on the columns, the batch has n transactions, G guards, m operations, U = 2G + m uses and d records.
// Each record is counted once.
template <class Space>
struct TicketedArguments : BatchArguments<Space> {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<const std::uint32_t> class_end = {};  // [classes] where the positions of one precedence end
  Pointer<std::uint64_t> locks = {};            // [lock_words_of(d) or more] free and unclaimed, before and after
  Pointer<std::uint64_t> clock = {};            // [1] only grows: never below the version of any lock
  Pointer<std::uint32_t> use_entry = {};        // [U] scratch, as all that follow
  Pointer<std::uint32_t> entry_record = {};     // [U]
  Pointer<std::uint32_t> entry_head = {};       // [U] the first entry of the same lock, which describes the lock
  Pointer<std::uint32_t> entry_count = {};      // [n]
  Pointer<std::uint64_t> entry_cell = {};       // [2U] what was read or is to be written: word and tag
  Pointer<std::uint64_t> entry_version = {};    // [U] at the head: the version of the lock
  Pointer<std::uint64_t> entry_tag = {};        // [U] the tag of the first read, for strategies that need it
  Pointer<std::uint8_t> entry_flags = {};       // [U]
  Pointer<std::uint8_t> tries = {};             // [n] by position
  Pointer<std::uint32_t> pass_of = {};          // [n] the pass that a position waits for
  Pointer<std::uint32_t> undecided = {};        // [position_room(n, threads, width)]
  Pointer<std::uint64_t> words = {};            // [kTicketedWords]
  Pointer<TicketedCounts> counts = {};          // [groups] out
  std::uint32_t classes = 0;
  std::uint32_t threads = 1;  // threads of the launch
  TicketedTuning tuning;

  // Lists the columns (base/section.hpp). Requires: the classes and the tuning are filled.
  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    BatchArguments<Space>::for_columns(shape, column);
    const std::size_t n = shape.transactions, uses = shape.uses();
    column(class_end, classes, Section::sent);
    column(locks, lock_words_of(shape.records, tuning.records_per_lock), Section::kept);
    column(clock, 1, Section::kept);
    column(use_entry, uses, Section::scratch);
    column(entry_record, uses, Section::scratch);
    column(entry_head, uses, Section::scratch);
    column(entry_count, n, Section::scratch);
    column(entry_cell, 2 * uses, Section::scratch);
    column(entry_version, uses, Section::scratch);
    column(entry_tag, uses, Section::scratch);
    column(entry_flags, uses, Section::scratch);
    column(tries, n, Section::scratch);
    column(pass_of, n, Section::scratch);
    column(undecided, shape.undecided, Section::scratch);
    column(words, kTicketedWords, Section::returned);
    column(counts, shape.threads.groups, Section::returned);
  }
};

// A batch has at most as many transactions as the owner's bits of a lock word can tell apart
// (stm/papers/lock_word.hpp).
inline constexpr std::uint64_t kTicketedTransactionsMax = std::uint64_t{1} << 24;

}  // namespace kilokv::engine
