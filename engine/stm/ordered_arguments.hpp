// What the threads of `ordered` (stm/ordered.hpp) share in a batch: tuning, counts, words, and where the columns are.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

// When rounds give way to a tail, and how the tail runs (stm/ordered.hpp). The defaults turn tails off.
struct OrderedTuning {
  // A tail begins where fewer transactions than this are left, or where a round moved fewer than this.
  std::uint32_t decided_min = 0;
  // It also begins where a round moved fewer than 1 in `divisor` of the transactions that could run. 0: never for this.
  std::uint32_t divisor = 0;
  // Whether groups walk the chains of the tail side by side. If not, the first thread runs the whole tail.
  bool walks = false;
  // The first thread looks at every position of the batch. So rounds go on instead of a tail where fewer than
  // `decided_min` are left of a batch of more than this.
  std::uint32_t few_of_max = kNone;
  // A watchdog: after more rounds in a row than this without progress, the batch is given up. A tail may still come to
  // its end.
  std::uint32_t idle_rounds_max = 8;
};

// What a thread counts.
struct OrderedCounts {
  std::uint64_t decided = 0;       // transactions
  std::uint64_t reservations = 0;  // words that a transaction asked for, over all rounds
  std::uint64_t chained_adds = 0;  // times that an adder had to wait for older adders (stm/ordered.hpp)
  std::uint64_t postponed = 0;     // times that a WAIT guard postponed a transaction
  std::uint64_t tail = 0;          // transactions that ran one by one, in tails
  std::uint64_t walked = 0;        // those of them that ran in chains, side by side

  // The sums over the group. Every lane of the group must call this.
  template <Platform P>
  KILOKV_HOST_DEVICE OrderedCounts of_group(P& p) const {
    return {p.sum(decided), p.sum(reservations), p.sum(chained_adds), p.sum(postponed), p.sum(tail), p.sum(walked)};
  }
  KILOKV_HOST_DEVICE void add(const OrderedCounts& other) {
    decided += other.decided;
    reservations += other.reservations;
    chained_adds += other.chained_adds;
    postponed += other.postponed;
    tail += other.tail;
    walked += other.walked;
  }
};

// Words that all threads share. All are zero at the start.
enum OrderedWord : std::uint32_t {
  kWordPasses,   // out; 0: the batch was given up (OrderedTuning::idle_rounds_max)
  kWordRounds,   // out
  kWordJoined,   // the last sweep in which a thread joined two chains
  kWordRoundOf,  // three sets of RoundWord, used in turn
  kOrderedWords = kWordRoundOf + 12,
};
// What a round leaves: numbers of transactions, and a pass.
enum RoundWord : std::uint32_t {
  kRoundMoved,     // decided or postponed in this round
  kRoundReady,     // undecided, and may run in the next round
  kRoundWaiting,   // undecided, and may not run in the next round
  kRoundFinished,  // 1 + the latest pass of which this round decided a transaction
  kRoundWords,
};
static_assert(kOrderedWords == kWordRoundOf + 3 * kRoundWords);

// The roles that a transaction can have at a record. A record has a reservation word for each role, once for even
// rounds and once for odd ones. One more word says to which chain of a tail the record belongs.
enum class Role : std::uint8_t { read, write, add };
inline constexpr std::uint32_t kRoles = 3;
inline constexpr std::uint32_t kChainWord = 2 * kRoles;
inline constexpr std::uint32_t kReservationWords = kChainWord + 1;
// A reservation of these bytes belongs to no epoch.
inline constexpr std::uint8_t kNoReservation = 0xFF;

// In the comments on the columns, the batch has n transactions, m operations and d records.
template <class Space>
struct OrderedArguments : BatchArguments<Space> {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> reservations = {};  // [kReservationWords x d] in: of older epochs
  Pointer<std::uint64_t> delta_sums = {};    // [d] zero at the start
  Pointer<std::uint8_t> op_adds = {};        // [m] scratch: 1: the operation is an adder
  Pointer<std::uint64_t> undo = {};          // [2m] scratch: what each write replaced
  Pointer<std::uint32_t> pass_of = {};       // [n] scratch: the pass that a position waits for
  Pointer<std::uint32_t> chain_of = {};      // [n] scratch: the chain of a position, in the current walk
  Pointer<std::uint32_t> undecided = {};     // [position_room(n, threads, width)] scratch
  Pointer<std::uint64_t> words = {};         // [kOrderedWords]
  Pointer<OrderedCounts> counts = {};        // [groups] out
  std::uint32_t first_epoch = 0;             // the rounds of this batch are the epochs after it
  std::uint64_t delta_max = 0;               // a larger ADD is no adder. The sum of all adders' deltas stays below 2^63
  OrderedTuning tuning;

  // Lists the columns (base/section.hpp).
  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    BatchArguments<Space>::for_columns(shape, column);
    column(reservations, kReservationWords * shape.records, Section::kept, kNoReservation);
    column(delta_sums, shape.records, Section::zeroed);
    column(op_adds, shape.operations, Section::scratch);
    column(undo, 2 * shape.operations, Section::scratch);
    column(pass_of, shape.transactions, Section::scratch);
    column(chain_of, shape.transactions, Section::scratch);
    column(undecided, shape.undecided, Section::scratch);
    column(words, kOrderedWords, Section::returned);
    column(counts, shape.threads.groups, Section::returned);
  }
};

// More epochs than a batch of n transactions can use: each round moves at least one transaction, or opens a pass.
constexpr std::uint64_t ordered_epochs_max(std::uint64_t n) { return n * kWaitPassesMax + kWaitPassesMax + 2; }
// The epochs that a batch has used. The last round may have made reservations for one round more.
constexpr std::uint64_t ordered_epochs_used(std::uint64_t rounds) { return rounds + 1; }

// The largest delta that an adder may have in a batch of this many operations. All deltas together then stay below
// 2^62.
constexpr std::uint64_t ordered_delta_max(std::uint64_t operations) {
  return (std::uint64_t{1} << 62) / (operations + 1);
}

}  // namespace kilokv::engine
