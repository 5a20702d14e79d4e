// What the threads of `ordered` (stm/ordered.hpp) share in a batch: tuning, counts, words, and the columns' places.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

// When a tail comes: fewer than `decided_min` are left or were decided in a round, or fewer than 1 in `divisor` of
// those that it had (0: never). Whether its chains are walked side by side, or all by the first thread, which looks at
// the whole batch: where fewer than `decided_min` are left of a batch of more than `few_of_max`, rounds go on instead.
struct OrderedTuning {
  std::uint32_t decided_min = 0;
  std::uint32_t divisor = 0;
  bool walks = false;
  std::uint32_t few_of_max = kNone;
  // A watchdog: after more rounds in a row that get nowhere the batch is given up. A tail may still come to its end.
  std::uint32_t idle_rounds_max = 8;
};

// What a thread counts.
struct OrderedCounts {
  std::uint64_t decided = 0;       // transactions
  std::uint64_t reservations = 0;  // words that somebody asked for, of all rounds
  std::uint64_t chained_adds = 0;  // ADDs that could commute but for the overflow bound, the type, or an order
  std::uint64_t postponed = 0;     // times that a WAIT guard postponed a transaction
  std::uint64_t tail = 0;          // transactions that ran one by one, where rounds would decide too few
  std::uint64_t walked = 0;        // of these: in chains that share no record, side by side

  // The group's: every lane of it must call.
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

// Words that all threads share; all zero at the start.
enum OrderedWord : std::uint32_t {
  kWordPasses,   // out; 0: given up, see idle_rounds_max
  kWordRounds,   // out
  kWordJoined,   // the last sweep in which somebody joined two chains
  kWordRoundOf,  // three sets of RoundWord, by turns
  kOrderedWords = kWordRoundOf + 12,
};
// What a round leaves.
enum RoundWord : std::uint32_t {
  kRoundMoved,     // decided or postponed in it
  kRoundReady,     // undecided that may run in the next one
  kRoundWaiting,   // undecided that may not
  kRoundFinished,  // 1 + the latest pass of which one was decided in it
  kRoundWords,
};
static_assert(kOrderedWords == kWordRoundOf + 3 * kRoundWords);

// The roles of a transaction at a record, as they are reserved: the words of a record, for even rounds and for odd, and
// one that says to which chain it belongs in a tail.
enum class Role : std::uint8_t { read, write, add };
inline constexpr std::uint32_t kRoles = 3;
inline constexpr std::uint32_t kChainWord = 2 * kRoles;
inline constexpr std::uint32_t kReservationWords = kChainWord + 1;

// With n transactions, m operations and d records:
template <class Space>
struct OrderedArguments : BatchArguments<Space> {
  static constexpr bool kLeavesDeltas = true;  // as the cells of adders (BatchResults::kDelta)

  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> reservations = {};  // [kReservationWords x d] of older epochs
  Pointer<std::uint64_t> delta_sums = {};    // [d] zero at the start
  Pointer<std::uint8_t> op_adds = {};        // [m] scratch: 1: an adder
  Pointer<std::uint64_t> undo = {};          // [2m] scratch: what each write replaced
  Pointer<std::uint32_t> pass_of = {};       // [n] scratch: the pass that a position waits for
  Pointer<std::uint32_t> chain_of = {};      // [n] scratch: the chain of a position, in the walk at hand
  Pointer<std::uint32_t> undecided = {};     // [position_room(n, threads, width)] scratch
  Pointer<std::uint64_t> words = {};         // [kOrderedWords]
  Pointer<OrderedCounts> counts = {};        // [groups] out
  std::uint32_t first_epoch = 0;             // this batch's rounds are the epochs behind it
  std::uint64_t delta_max = 0;               // an ADD of more is not an adder; all together: < 2^63
  OrderedTuning tuning;
};

// More epochs than a batch of n transactions can use: each round moves one of them at least, or opens a pass.
constexpr std::uint64_t ordered_epochs_max(std::uint64_t n) { return n * kWaitPassesMax + kWaitPassesMax + 2; }
// What a batch has used: reservations may be made for one round more than there are.
constexpr std::uint64_t ordered_epochs_used(std::uint64_t rounds) { return rounds + 1; }

// The largest delta that may count as an adder, where a batch has so many operations.
constexpr std::uint64_t ordered_delta_max(std::uint64_t operations) {
  return (std::uint64_t{1} << 62) / (operations + 1);
}

}  // namespace kilokv::engine
