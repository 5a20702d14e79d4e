// The frame of the strategies that find their order while they run (`prstm`, `lock`, `gpustm`, `kilo`, `local`):
// passes, precedence classes, tickets, the transaction table, and the end of a batch.
//
// Tickets. A transaction takes a ticket when nothing that it depends on can come before it any more. Ticket k of the
// batch's r-th range has rank r x n + k. So ranks follow the one serial order, and a transaction's version is known
// before it writes anything. Every decided transaction needs a ticket. An attempt that takes a ticket and then fails
// has wasted the ticket. When the n tickets of a range are used up, the pass goes on in the next range, as soon as all
// transactions that have a ticket have ended. In the last range no ticket is wasted: there, a transaction locks all
// that it may touch before it takes its ticket.
//
// Passes. Postponed transactions wait for the next pass, as in the specification (docs/transactions.md, sections 7.2
// and 7.6). A pass finishes one precedence class before it begins the next, with a barrier in between. The passes end
// when no transaction waits, when a pass has finished none, or when the ranges are used up. Each range that wasted
// tickets have used up leaves one pass less. If a pass has finished none, nothing was written in it. So the guards that
// postponed transactions are still false after it.
//
// Progress depends on the protocol. Threads try their own undecided transactions in turn until all are decided. The
// protocol makes sure that some attempt succeeds.
//
// Protocol<P> is the part of one strategy. Each thread has one. TicketedRun makes it from the platform and the
// arguments. Its members:
//   Arguments                    what it gets: TicketedArguments, or more (stm/papers/ticketed_arguments.hpp)
//   Rules                        TicketedRules, or a struct derived from it that also has the protocol's rules
//   kWindow                      how many of its transactions a thread tries in turn: all of them, or one until it is
//                                decided
//   prepare(position, t)         called once in a batch, before the first attempt of transaction t
//   attempt(position, t, place)  makes one attempt, and returns an Attempt
//   counts()                     what it has counted, in addition to TicketedRun. It has counters of its own. If it
//                                kept a pointer to those of TicketedRun, a GPU could not hold that object in registers
//   kRanksTogether (optional)    The lanes of a group sweep in step, with one transaction each. The lanes that want a
//                                rank get theirs by one addition. go_on(rank) makes the rest of the attempt; the rank
//                                is kNone if none is left. Then swept(attempt) is called for each lane, with the result
//                                of its attempt.
//   kHasStage (optional)         It deals transactions to threads itself, with for_own(class, f) and own_slot(i). It is
//                                told when each class begins, begin_half(class), and when all have ended, finish(). A
//                                barrier separates these calls from the attempts before them.
//
// Thread safety: each thread of the grid makes one TicketedRun and calls run() once. Nothing else may touch the memory
// of the arguments meanwhile.
//
// Source: PR-STM, section 3.4 and Algorithm 3 (the global transaction table). Deviations:
//   - A thread owns positions, not a block of the table, so that a batch spreads over any number of threads.
//   - Passes are those of the specification, so that postponement ends (docs/papers.md, gap 11).
//   - An attempt is made once in an iteration (docs/papers.md, gap 6).
#pragma once

#include <cstdint>

#include "engine/base/bits.hpp"
#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

enum class Attempt : std::uint8_t {
  decided,
  postponed,   // its WAIT guard was false, on a state that was really there
  conflict,    // another transaction is in the way: try again
  held_back,   // another transaction is in the way, and it did not begin
  in_flight,   // it has a ticket and waits for an earlier ticket: it goes on, also if the range has none left
  exhausted,   // the range has no ticket left
  again,       // try again at once
  wants_rank,  // it wants a rank and goes on with it at once: only with kRanksTogether
};

KILOKV_HOST_DEVICE constexpr bool has_ended(Attempt attempt) {
  return attempt == Attempt::decided || attempt == Attempt::postponed;
}

// The rules. A mutation (docs/papers.md, section 1) is this struct with one constant changed.
struct TicketedRules {
  static constexpr bool kSeesEndOfRange = true;  // a thread without progress looks whether the range is used up
  static constexpr bool kLastRangeLocks = true;  // no ticket is wasted in the last range
  static constexpr bool kInFlightStays = true;   // a transaction that has a ticket ends in its range
  static constexpr bool kStopsWhenIdle = true;   // a pass that has finished none is the last one (gap 11)
};

// Rare places, for the simulator (platform/concept.hpp). The numbers of protocols' own probes begin at kProtocolProbes.
enum class TicketedProbe : std::uint32_t {
  class_boundary,   // a class begins after an earlier class has run
  range_exhausted,  // a pass goes on in the next range
  ranks_together,   // several lanes took their ranks by one addition
};
inline constexpr std::uint32_t kProtocolProbes = 3;

enum class Window : std::uint8_t { one, all };

// The place of an attempt.
struct AttemptPlace {
  std::uint32_t range = 0;
  bool must_lock = false;  // no ticket may be wasted
};

// Takes the next ticket of the range, with this memory order. Returns its rank; kNone: the range has no ticket left.
template <Platform P>
KILOKV_HOST_DEVICE std::uint32_t take_rank(P& p, const TicketedArguments<typename P::Space>& a, std::uint32_t range,
                                           Order order) {
  const std::uint64_t ticket =
      p.fetch_add(a.words + (kTicketedTickets + range), std::uint64_t{1}, order, Scope::device);
  return ticket < a.batch.size ? range * a.batch.size + static_cast<std::uint32_t>(ticket) : kNone;
}

// The same for the lanes of the group that want a rank, by one addition. Every lane of the group must call this.
template <Platform P>
KILOKV_HOST_DEVICE std::uint32_t take_ranks(P& p, const TicketedArguments<typename P::Space>& a, std::uint32_t range,
                                            bool wants) {
  const std::uint32_t lanes = p.ballot(wants);
  if (lanes == 0) return kNone;
  const std::uint32_t before = lanes & ((std::uint32_t{1} << p.lane()) - 1);
  std::uint64_t first = 0;
  if (wants && before == 0) {
    const auto tickets = a.words + (kTicketedTickets + range);
    first = p.fetch_add(tickets, std::uint64_t{bits_in(lanes)}, Order::relaxed, Scope::device);
    if (bits_in(lanes) > 1) p.probe(static_cast<std::uint32_t>(TicketedProbe::ranks_together));
  }
  const std::uint64_t ticket = p.broadcast(first, lowest_bit(lanes)) + bits_in(before);
  return wants && ticket < a.batch.size ? range * a.batch.size + static_cast<std::uint32_t>(ticket) : kNone;
}

template <Platform P, class Protocol>
class TicketedRun {
 public:
  using Space = typename P::Space;
  using Arguments = typename Protocol::Arguments;
  using Rules = typename Protocol::Rules;
  KILOKV_HOST_DEVICE TicketedRun(P& platform, const Arguments& arguments)
      : p_(platform), a_(arguments), size_(arguments.batch.size), protocol_(platform, arguments) {}

  // Fills every column of the results, the cells, the words and the counts.
  KILOKV_HOST_DEVICE void run() {
    std::uint32_t waiting = size_;
    for (std::uint32_t pass = 0; waiting > 0 && range_ < kWaitPassesMax; ++pass) {
      std::uint32_t postponed = 0;
      for (std::uint32_t c = 0; c < a_.classes && !stopped_; ++c) {
        if constexpr (kDealsItself) protocol_.begin_half(c);
        postponed += run_class(c, pass);
      }
      if (stopped_) return;
      const bool finished_some = postponed < waiting;
      waiting = postponed;
      ++range_;
      if (Rules::kStopsWhenIdle && !finished_some) break;
    }
    if constexpr (kDealsItself) protocol_.finish();
    for (std::uint32_t c = 0; c < a_.classes; ++c) {
      for_own_positions(c, [&](std::uint32_t position) { expire(position); });
    }
    counts_.add(protocol_.counts());
    const TicketedCounts counts = counts_.of_group(p_);
    if (p_.lane() == 0) a_.counts[p_.group()] = counts;
    if (p_.thread() == 0) p_.put(a_.words + kTicketedPasses, range_);
  }

 private:
  static constexpr std::uint32_t kDone = kNone;
  static constexpr bool kDealsItself = requires { Protocol::kHasStage; };

  // Calls f for the thread's own positions in class c.
  template <class F>
  KILOKV_HOST_DEVICE void for_own_positions(std::uint32_t c, const F& f) {
    if constexpr (kDealsItself) return protocol_.for_own(c, f);
    const std::uint32_t begin = c == 0 ? 0 : a_.class_end[c - 1];
    const std::uint32_t end = a_.class_end[c];
    const std::uint32_t tile = position_tile(size_, p_.threads(), P::kGroupWidth, a_.tuning.transactions_per_thread);
    for (std::uint32_t first = p_.thread() * tile; first < end; first += p_.threads() * tile) {
      const std::uint32_t last = first + tile < end ? first + tile : end;
      for (std::uint32_t position = first < begin ? begin : first; position < last; ++position) f(position);
    }
  }

  // Runs the transactions of the class that wait for this pass. Returns how many of them, over all threads, were
  // postponed.
  KILOKV_HOST_DEVICE std::uint32_t run_class(std::uint32_t c, std::uint32_t pass) {
    std::uint32_t left = 0;
    for_own_positions(c, [&](std::uint32_t position) {
      if (pass == 0) {
        protocol_.prepare(position, a_.transaction_at(position));
        p_.put(a_.pass_of + position, 0);
      } else if (p_.get(a_.pass_of + position) != pass) {
        return;
      }
      a_.undecided[own_slot(left++)] = position;
    });
    if (c > 0 && left > 0) probe(TicketedProbe::class_boundary);
    std::uint32_t postponed = 0;
    for (;;) {
      left = sweep(pass, left);
      const Phase phase = end_phase(left);
      postponed += phase.postponed;
      if (phase.left == 0 || stopped_) return postponed;
      probe(TicketedProbe::range_exhausted);
      if (++range_ < kWaitPassesMax) continue;
      stopped_ = true;  // a ticket was wasted in the last range: only a bug does this
      return postponed;
    }
  }
  KILOKV_HOST_DEVICE std::uint32_t own_slot(std::uint32_t i) const {
    if constexpr (kDealsItself) return protocol_.own_slot(i);
    return p_.thread() + i * p_.threads();
  }

  // Tries the thread's own transactions until none is left or the range has no ticket left. Returns how many are left.
  KILOKV_HOST_DEVICE std::uint32_t sweep(std::uint32_t pass, std::uint32_t left) {
    if constexpr (requires { Protocol::kRanksTogether; }) return sweep_together(pass, left);
    std::uint32_t begin = 0;  // with a window of one: those before it are decided
    idle_ = 0;
    bool exhausted = false;
    while (begin < left && !exhausted) {
      bool in_flight = false;
      const std::uint32_t end = Protocol::kWindow == Window::one ? begin + 1 : left;
      std::uint32_t kept = begin;
      for (std::uint32_t i = begin; i < end; ++i) {
        const std::uint32_t position = a_.undecided[own_slot(i)];
        const Attempt attempt = exhausted ? Attempt::exhausted : try_once(position, pass);
        exhausted = attempt == Attempt::exhausted;
        in_flight |= attempt == Attempt::in_flight;
        if (!has_ended(attempt)) a_.undecided[own_slot(kept++)] = position;
      }
      if (kept == end) {
        exhausted |= stands_still(in_flight);
        p_.pause();
      } else {
        idle_ = 0;
      }
      if (Protocol::kWindow == Window::all) {
        left = kept;
      } else if (kept < end) {
        ++begin;
      }
    }
    return move_up(begin, left);
  }
  KILOKV_HOST_DEVICE std::uint32_t move_up(std::uint32_t begin, std::uint32_t left) const {
    for (std::uint32_t i = begin; begin > 0 && i < left; ++i) {
      a_.undecided[own_slot(i - begin)] = a_.undecided[own_slot(i)];
    }
    return left - begin;
  }

  // The same with the lanes of the group in step. Each lane goes on as long as any of them has something to try.
  KILOKV_HOST_DEVICE std::uint32_t sweep_together(std::uint32_t pass, std::uint32_t left) {
    std::uint32_t begin = 0;
    idle_ = 0;
    bool exhausted = false;
    for (;;) {
      const bool tries = begin < left && !exhausted;
      if (p_.ballot(tries) == 0) return move_up(begin, left);
      const std::uint32_t position = tries ? a_.undecided[own_slot(begin)] : 0;
      Attempt attempt = tries ? begin_attempt(position) : Attempt::held_back;
      const bool wants = attempt == Attempt::wants_rank;
      const std::uint32_t rank = take_ranks(p_, a_, range_, wants);
      if (wants) attempt = protocol_.go_on(rank);
      protocol_.swept(attempt);
      if (!tries) continue;
      count(attempt, position, pass);
      if (has_ended(attempt)) {
        ++begin;
        idle_ = 0;
      } else {
        exhausted = attempt == Attempt::exhausted || stands_still(attempt == Attempt::in_flight);
        p_.pause();
      }
    }
  }

  // Called after an attempt without progress. Returns whether the thread must go to the barrier. The transactions in
  // its way may have met the end of the range. Then their threads wait at the barrier. Or no thread makes progress any
  // more.
  KILOKV_HOST_DEVICE bool stands_still(bool in_flight) {
    const std::uint64_t tickets = p_.load(a_.words + (kTicketedTickets + range_), Order::relaxed, Scope::device);
    if (tickets != tickets_seen_) idle_ = 0;
    tickets_seen_ = tickets;
    if (++idle_ > a_.tuning.idle_sweeps_max) p_.store(a_.words + kTicketedStopped, 1, Order::relaxed, Scope::device);
    const bool stays = Rules::kInFlightStays && in_flight;
    return (Rules::kSeesEndOfRange && !stays && tickets >= size_) || is_stopped();
  }
  KILOKV_HOST_DEVICE bool is_stopped() const {
    return p_.load(a_.words + kTicketedStopped, Order::relaxed, Scope::device) != 0;
  }

  KILOKV_HOST_DEVICE Attempt try_once(std::uint32_t position, std::uint32_t pass) {
    Attempt attempt = Attempt::again;
    while (attempt == Attempt::again) attempt = begin_attempt(position);
    count(attempt, position, pass);
    return attempt;
  }
  KILOKV_HOST_DEVICE Attempt begin_attempt(std::uint32_t position) {
    const bool must_lock = Rules::kLastRangeLocks && range_ + 1 == kWaitPassesMax;
    return protocol_.attempt(position, a_.transaction_at(position), {range_, must_lock});
  }
  KILOKV_HOST_DEVICE void count(Attempt attempt, std::uint32_t position, std::uint32_t pass) {
    if (attempt == Attempt::decided) {
      ++counts_.decided;
      p_.put(a_.pass_of + position, kDone);
    } else if (attempt == Attempt::postponed) {
      ++counts_.postponed;
      ++postponed_;
      p_.put(a_.pass_of + position, pass + 1);
    } else if (attempt == Attempt::conflict) {
      ++counts_.conflicts;
    }
  }

  struct Phase {
    std::uint32_t left, postponed;
  };
  // All threads meet, and each learns the sums over all. Three sets of words are used in turn. A thread that is already
  // in the next phase adds to the next set. That set was cleared before the barrier, and no thread reads it from its
  // last use any more.
  KILOKV_HOST_DEVICE Phase end_phase(std::uint32_t left) {
    const auto words = a_.words + (kTicketedPhases + phase_ % 3 * kPhaseWords);
    const auto next = a_.words + (kTicketedPhases + (phase_ + 1) % 3 * kPhaseWords);
    if (left > 0) p_.fetch_add(words + kPhaseLeft, left, Order::relaxed, Scope::device);
    if (is_stopped()) p_.store(words + kPhaseStopped, 1, Order::relaxed, Scope::device);
    if (postponed_ > 0) p_.fetch_add(words + kPhasePostponed, postponed_, Order::relaxed, Scope::device);
    if (p_.thread() == 0) {
      for (std::uint32_t i = 0; i < kPhaseWords; ++i) p_.store(next + i, 0, Order::relaxed, Scope::device);
    }
    postponed_ = 0;
    ++phase_;
    p_.grid_barrier();
    const auto word = [&](PhaseWord i) {
      return static_cast<std::uint32_t>(p_.load(words + i, Order::relaxed, Scope::device));
    };
    stopped_ = word(kPhaseStopped) != 0;
    return {word(kPhaseLeft), word(kPhasePostponed)};
  }

  KILOKV_HOST_DEVICE void expire(std::uint32_t position) {
    if (p_.get(a_.pass_of + position) == kDone) return;
    const std::uint32_t t = a_.transaction_at(position);
    a_.results.rank[t] = range_ * size_ + position;
    if (a_.expires[t] != 0) a_.results.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
  }

  KILOKV_HOST_DEVICE void probe(TicketedProbe probe) const { p_.probe(static_cast<std::uint32_t>(probe)); }

  P& p_;
  const Arguments& a_;
  const std::uint32_t size_;
  TicketedCounts counts_;
  Protocol protocol_;
  std::uint32_t range_ = 0;
  std::uint32_t phase_ = 0;
  std::uint32_t idle_ = 0;  // sweeps in a row in which it decided nothing, and no thread took a ticket
  std::uint64_t tickets_seen_ = 0;
  bool stopped_ = false;         // all threads know that the batch is given up
  std::uint32_t postponed_ = 0;  // since the last phase
};

}  // namespace kilokv::engine
