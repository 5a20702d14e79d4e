// `local`: GPU-LocalTM in software. The records that a batch contends for are on a stage (stm/papers/stage.hpp), in the
// memory of one block, or of all blocks of a cluster. The lanes of these blocks run the transactions that touch only
// staged records. They find conflicts at each access by signatures, write in place, and keep shadows of the old values.
// The rest of the batch runs as in `prstm`.
//
// An attempt of a staged transaction has these steps:
//   run     The transaction runs in place. It claims each record at the first access, and owns the records that it may
//           write. If another lane has claimed a record, this is a conflict: it restores what it wrote, gives its
//           claims back, and is tried again.
//   ticket  It takes its ticket, together with the other lanes of the group, while it has all its claims.
//   commit  It puts its version into what it wrote, and gives its claims back.
// It never waits within an attempt. A transaction that is postponed gives its claims back without a ticket. A
// transaction that uses its own commit version claims its whole footprint first, and runs when it has its ticket.
//
// Why the order is serial. Claims are kept from the access to the end. So of two transactions in conflict, one has
// given its claims back before the other has got them, and the first one has the earlier ticket. Outcomes that write
// nothing have claims too. They keep them until they have their ticket, or, if postponed, until they end
// (docs/papers.md, gap 5). Staged transactions and those that run at the same time beside them share no record that is
// written. Transactions that would share one run later, with a barrier before and after them (the halves `beside` and
// `behind` of stm/papers/local_arguments.hpp).
//
// Progress comes from serialization (stm/papers/warp_serialization.hpp). A lane that meets conflicts again and again
// runs alone in its group, and then alone in the block, where nothing is in its way (docs/papers.md, gap 8).
//
// The rest of the batch is run by Prstm, on records that are not on the stage. A thread tries one transaction at a
// time. If it has both kinds, it tries the staged ones first. These end whatever other threads do, so the thread comes
// to the others.
//
// Source: GPU-LocalTM, sections 3.1 to 3.3. Deviations, beside those of stm/papers/stage.hpp and
// stm/papers/warp_serialization.hpp:
//   - Registers are not saved. A transaction's program is run again from its start.
//   - A ticket, and with it the version, is taken at the end.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/local_clock.hpp"
#include "engine/stm/papers/prstm.hpp"
#include "engine/stm/papers/stage.hpp"
#include "engine/stm/papers/ticketed.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/stm/papers/transaction_log.hpp"
#include "engine/stm/papers/warp_serialization.hpp"
#include "engine/txn/interpreter.hpp"

namespace kilokv::engine {

// The rules. A mutation (docs/papers.md, section 1) is this struct with one rule taken away.
struct LocalRules : PrstmRules {
  static constexpr bool kSetsBits = true;            // a claim sets its bit in the signature
  static constexpr bool kClaimsReads = true;         // records that no operation may write are claimed too
  static constexpr bool kLooksAtOtherGroups = true;  // a claim looks at the bits of other groups
  static constexpr bool kChecksOwner = true;         // a shadow is made only once
  static constexpr bool kRestores = true;            // a conflict restores what was written
  static constexpr bool kSerializesWarps = true;
  static constexpr bool kSerializesBlock = true;  // gap 8
  static constexpr bool kRespectsToken = true;
  static constexpr bool kGivesTokenBack = true;
  static constexpr bool kWritesBack = true;
  static constexpr bool kWritesBackAtEnd = true;    // the stage is written back after a half, not with each commit
  static constexpr bool kWaitsForStage = true;      // a barrier after the records were read into the stage
  static constexpr bool kWaitsForWriteBack = true;  // a barrier before others use the records
  static constexpr bool kStraddlersBehind = true;   // transactions that touch both kinds of records run after the stage
  static constexpr bool kTellsPartsApart = true;    // the parts of the stage are different memory
  static constexpr bool kTimes = false;             // whether times can be measured: a choice, and not a rule
  static constexpr Order kClaimFence = Order::sequential;
  static constexpr Order kLookOrder = Order::acquire;
  static constexpr Order kReleaseOrder = Order::release;
};

// Measures where the time goes.
struct TimedLocalRules : LocalRules {
  static constexpr bool kTimes = true;
};

template <Platform P, class RulesOf = LocalRules>
class Local {
 public:
  using Space = typename P::Space;
  using Arguments = LocalArguments<Space>;
  using Rules = RulesOf;
  static constexpr Window kWindow = Window::one;
  static constexpr bool kRanksTogether = true;
  static constexpr bool kHasStage = true;  // it deals transactions by what is on the stage

  KILOKV_HOST_DEVICE Local(P& platform, const Arguments& arguments)
      : p_(platform),
        a_(arguments),
        log_(arguments),
        stage_(platform, arguments),
        turns_(platform),
        clock_(platform, arguments),
        rest_(platform, arguments) {}

  // Called by all threads, before each half of a class. finish() is called by all threads after the last half.
  KILOKV_HOST_DEVICE void begin_half(std::uint32_t c) {
    is_behind_ = a_.local.behind[c] != 0;
    if (a_.local.staged == 0 || is_behind_ != is_staged_) return;
    if (is_behind_) {
      write_back();
      if (Rules::kWaitsForWriteBack) p_.grid_barrier();
    } else {
      read_in();
      if (Rules::kWaitsForStage) p_.grid_barrier();
    }
    is_staged_ = !is_behind_;
  }
  KILOKV_HOST_DEVICE void finish() {
    if (is_staged_) write_back();
    clock_.add();
  }
  // Calls f(position) for this thread's transactions of the half. The i-th has the slot own_slot(i) among the undecided
  // ones.
  template <class F>
  KILOKV_HOST_DEVICE void for_own(std::uint32_t c, const F& f) {
    const bool is_behind = a_.local.behind[c] != 0;
    for (std::uint32_t part = 0; part < 2; ++part) {
      const bool hot = part == 0;
      if (!all_share(is_behind) && hot != stages()) continue;
      const std::uint32_t begin = hot ? (c == 0 ? 0 : a_.class_end[c - 1]) : a_.local.hot_end[c];
      deal(begin, hot ? a_.local.hot_end[c] : a_.class_end[c], share(is_behind), f);
    }
  }
  KILOKV_HOST_DEVICE std::uint32_t own_slot(std::uint32_t i) const {
    const Share own = share(is_behind_);
    const std::uint32_t first = all_share(is_behind_) || stages() ? 0 : a_.local.hot_slots;
    return first + own.first + i * own.step;
  }

  KILOKV_HOST_DEVICE void prepare(std::uint32_t position, std::uint32_t t) { rest_.prepare(position, t); }

  KILOKV_HOST_DEVICE Attempt attempt(std::uint32_t position, std::uint32_t t, AttemptPlace place) {
    log_.open(t);
    is_called_ = runs_on_stage();
    if (!is_called_) {
      probe(is_behind_ ? LocalProbe::behind_stage : LocalProbe::beside_stage);
      const Span span(&clock_, LocalTime::unstaged);
      return rest_.attempt(position, t, place);
    }
    const bool holds_back = turns_.holds_back(stage_);
    clock_.count_as(time_of(holds_back ? turns_.holds_back_for() : turns_.is()));
    if (holds_back) return Attempt::held_back;
    const Span span(&clock_, LocalTime::ending);
    ++counts_.attempts;
    log_.clear();
    stopped_ = false;
    claims_first_ = a_.tries[position] == kTriesMax;
    if (claims_first_) {
      if (claim_all()) return Attempt::wants_rank;
    } else {
      outcome_ = run(no_rank());
      if (!stopped_ && outcome_ != Outcome::postponed) return Attempt::wants_rank;
    }
    end(stopped_);
    if (!stopped_) return Attempt::postponed;
    ++counts_.restarts;
    probe(LocalProbe::lane_restarted);
    const std::uint8_t tries = a_.tries[position];
    if (tries + 1 < kTriesMax) a_.tries[position] = static_cast<std::uint8_t>(tries + 1);
    return Attempt::conflict;
  }
  KILOKV_HOST_DEVICE Attempt go_on(std::uint32_t rank) {
    const Span span(&clock_, LocalTime::ending);
    if (rank == kNone) {
      end(true);
      return Attempt::exhausted;
    }
    if (claims_first_) {
      outcome_ = run(rank);
    } else {
      log_.stamp_results(outcome_, no_rank(), rank);
      stamp_writes(rank);
    }
    if (!Rules::kWritesBackAtEnd) stage_.write_back();
    end(false);
    if (outcome_ == Outcome::postponed) return Attempt::postponed;
    ++counts_.staged;
    probe(LocalProbe::staged_commit);
    return Attempt::decided;
  }

  // The result of each lane's attempt; held_back for a lane that made none.
  KILOKV_HOST_DEVICE void swept(Attempt attempt) {
    const bool failed = is_called_ && attempt == Attempt::conflict;
    const bool held_back = is_called_ && attempt == Attempt::held_back;
    const Serialized became = turns_.learn(stage_, failed, failed || held_back);
    if (!held_back) clock_.count_as(time_of(turns_.is()));
    is_called_ = false;
    if (became == Serialized::no) return;
    const bool in_block = became == Serialized::in_block;
    ++(in_block ? counts_.block_serialized : counts_.warp_serialized);
    probe(in_block ? LocalProbe::block_serialized : LocalProbe::warp_serialized);
  }

  // What the thread has counted, in addition to what TicketedRun counts.
  KILOKV_HOST_DEVICE TicketedCounts counts() const {
    TicketedCounts all = counts_;
    all.add(rest_.counts());
    return all;
  }

 private:
  using Clock = LocalClock<P, Rules::kTimes>;
  using Span = LocalSpan<Clock>;

  // How the interpreter reads and writes the stage (the Access of txn/interpreter.hpp).
  class Access {
   public:
    KILOKV_HOST_DEVICE explicit Access(Local* local) : l_(*local) {}
    KILOKV_HOST_DEVICE Cell read(std::uint32_t) const { return l_.read_entry(l_.log_.entry_of_operation(operation_)); }
    KILOKV_HOST_DEVICE Cell read_of_guard(std::uint32_t, std::uint32_t use) const {
      return l_.read_entry(l_.log_.entry_of_guard(use));
    }
    KILOKV_HOST_DEVICE bool stopped() const { return l_.stopped_; }
    KILOKV_HOST_DEVICE void write(std::uint32_t, Cell cell) {
      l_.write_entry(l_.log_.entry_of_operation(operation_), cell);
    }
    KILOKV_HOST_DEVICE void begin(std::uint32_t) {}
    KILOKV_HOST_DEVICE void undo() { l_.restore(); }
    KILOKV_HOST_DEVICE void ahead(std::uint32_t operation) { operation_ = operation; }
    KILOKV_HOST_DEVICE static constexpr bool defers(std::uint32_t) { return false; }
    KILOKV_HOST_DEVICE std::uint64_t value_word(std::uint32_t value) const { return l_.a_.value_word[value]; }
    KILOKV_HOST_DEVICE bool bytes_equal(Cell cell, std::uint32_t value) const { return l_.a_.bytes_equal(cell, value); }
    // Batches with ranges do not run here.
    KILOKV_HOST_DEVICE bool range_unchanged(std::uint32_t, Version) const { return false; }
    KILOKV_HOST_DEVICE void range_get(std::uint32_t, Version, bool) {}
    KILOKV_HOST_DEVICE bool delete_range(std::uint32_t, Version) { return false; }

   private:
    Local& l_;
    std::uint32_t operation_ = 0;  // the operation that runs
  };

  enum ClaimFlag : std::uint8_t { kClaimedToRead = kHeadPrelocked, kClaimedToWrite = kHeadLocked };  // of entries
  static constexpr std::uint8_t kTriesMax = 255;

  // The threads that stage run the hot transactions, and the others run the rest. If there are no others, or the stage
  // is not in use, all threads share both. A share is the number of this thread among those that share the work, and
  // how many they are.
  struct Share {
    std::uint32_t first, step;
  };
  KILOKV_HOST_DEVICE bool stages() const { return p_.thread() < a_.local.threads; }
  KILOKV_HOST_DEVICE bool all_share(bool is_behind) const { return is_behind || a_.local.threads == p_.threads(); }
  KILOKV_HOST_DEVICE Share share(bool is_behind) const {
    if (all_share(is_behind)) return {p_.thread(), p_.threads()};
    if (stages()) return {p_.thread(), a_.local.threads};
    return {p_.thread() - a_.local.threads, p_.threads() - a_.local.threads};
  }
  // Calls f(position) for what this thread has of the places [begin, end).
  template <class F>
  KILOKV_HOST_DEVICE void deal(std::uint32_t begin, std::uint32_t end, Share to, const F& f) const {
    const std::uint32_t count = end - begin;
    const std::uint32_t tile = position_tile(count, to.step, P::kGroupWidth, a_.tuning.transactions_per_thread);
    for (std::uint32_t i = to.first * tile; i < count;) {
      f(a_.local.order != nullptr ? a_.local.order[begin + i] : begin + i);
      // After the end of a tile comes the next one of this thread.
      if (++i % tile == 0) i += (to.step - 1) * tile;
    }
  }

  KILOKV_HOST_DEVICE std::uint32_t slot_of(std::uint32_t e) const {
    return log_.record(e) == a_.absent_record ? kNone : stage_.slot_of(log_.record(e));
  }
  // In the half `beside`, either all of a transaction's records are on the stage, or none.
  KILOKV_HOST_DEVICE bool runs_on_stage() const {
    if (a_.local.staged == 0 || (is_behind_ && Rules::kStraddlersBehind)) return false;
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (log_.record(e) != a_.absent_record) return stage_.slot_of(log_.record(e)) != kNone;
    }
    return false;
  }
  KILOKV_HOST_DEVICE void read_in() {
    const Span span(&clock_, LocalTime::moving);
    stage_.read_in();
  }
  KILOKV_HOST_DEVICE void write_back() {
    const Span span(&clock_, LocalTime::moving);
    if (Rules::kWritesBack && Rules::kWritesBackAtEnd) stage_.write_back();
  }

  KILOKV_HOST_DEVICE Outcome run(std::uint32_t rank) {
    const Span span(&clock_, LocalTime::running);
    Access access(this);
    return run_transaction(a_.batch, a_.results, access, log_.transaction(), rank);
  }
  // The rank of no transaction of the batch.
  KILOKV_HOST_DEVICE std::uint32_t no_rank() const { return kWaitPassesMax * a_.batch.size; }

  KILOKV_HOST_DEVICE Cell read_entry(std::uint32_t e) {
    const std::uint32_t slot = slot_of(e);
    if (stopped_) return {};
    if (slot == kNone) {  // no transaction writes it
      const auto at = a_.cells + 2 * std::uint64_t{log_.record(e)};
      return {p_.get(at), p_.get(at + 1)};
    }
    return claim(e, slot) ? stage_.cell(slot) : Cell{};
  }
  KILOKV_HOST_DEVICE void write_entry(std::uint32_t e, Cell cell) {
    const std::uint32_t slot = slot_of(e);
    if (!Rules::kStraddlersBehind && slot == kNone) return;
    if (stopped_ || !claim(e, slot)) return;
    stage_.set_cell(slot, cell);
    log_.add(e, kEntryWritten);
  }
  KILOKV_HOST_DEVICE bool claim_all() {
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      const std::uint32_t slot = slot_of(e);
      if (slot != kNone && !claim(e, slot)) return false;
    }
    return true;
  }
  // Called before each access. Returns false if another lane is in the way. Then the attempt stops.
  KILOKV_HOST_DEVICE bool claim(std::uint32_t e, std::uint32_t slot) {
    const Span span(&clock_, LocalTime::claiming);
    const bool writes = log_.has(log_.head(e), kHeadMayWrite);
    if (writes && Rules::kChecksOwner && stage_.owns(slot)) return true;
    if (!writes && !Rules::kClaimsReads) return true;
    const StageClaim claim = stage_.claim(slot, writes);
    if (claim == StageClaim::taken) log_.add(e, writes ? kClaimedToWrite : kClaimedToRead);
    if (claim == StageClaim::refused || claim == StageClaim::aliased) {
      stopped_ = true;
      if (claim == StageClaim::refused) return false;
      ++counts_.aliases;
      probe(LocalProbe::alias_met);
      return false;
    }
    if (writes) {
      if (claim == StageClaim::kept) probe(LocalProbe::wrote_alias);
      const Span of_shadow(&clock_, LocalTime::shadowing);
      stage_.own(slot);
    }
    return true;
  }

  // Restores everything that was written.
  KILOKV_HOST_DEVICE void restore() {
    const Span span(&clock_, LocalTime::restoring);
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (!log_.has(e, kEntryWritten)) continue;
      log_.remove(e, kEntryWritten);
      if (Rules::kRestores) stage_.restore(slot_of(e));
      probe(LocalProbe::restored);
    }
  }
  // Puts the version of the rank into what was written.
  KILOKV_HOST_DEVICE void stamp_writes(std::uint32_t rank) {
    const Version version = a_.batch.first_version + rank;
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (!log_.has(e, kEntryWritten)) continue;
      const std::uint32_t slot = slot_of(e);
      const Cell written = stage_.cell(slot);
      stage_.set_cell(slot, {written.word, make_tag(version, type_of(written.tag))});
    }
  }
  // Gives all claims back. Restores what was written first, if `restores`.
  KILOKV_HOST_DEVICE void end(bool restores) {
    if (restores) restore();
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      const std::uint32_t slot = slot_of(e);
      if (slot == kNone) continue;
      if (log_.has(log_.head(e), kHeadMayWrite) && stage_.owns(slot)) stage_.disown(slot);
    }
    for (std::uint32_t e = log_.begin(); e < log_.end(); ++e) {
      if (log_.has(e, kClaimedToRead)) stage_.release(slot_of(e), false);
      if (log_.has(e, kClaimedToWrite)) stage_.release(slot_of(e), true);
    }
  }

  KILOKV_HOST_DEVICE static LocalTime time_of(Serialized serialized) {
    if (serialized == Serialized::no) return LocalTime::outside;
    return serialized == Serialized::in_block ? LocalTime::in_block : LocalTime::in_group;
  }

  KILOKV_HOST_DEVICE void probe(LocalProbe probe) const {
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(probe));
  }

  P& p_;
  const Arguments& a_;
  TicketedCounts counts_;
  TransactionLog<P> log_;
  Stage<P, Rules> stage_;
  Serialization<P, Rules> turns_;
  Clock clock_;
  Prstm<P, Rules> rest_;
  // Of the current half:
  bool is_behind_ = false;
  bool is_staged_ = false;  // the stage holds the records
  // Of the current attempt:
  Outcome outcome_ = Outcome::undecided;
  bool is_called_ = false;     // it is on the stage, in this sweep
  bool claims_first_ = false;  // it claims everything before it runs
  bool stopped_ = false;
};

}  // namespace kilokv::engine
