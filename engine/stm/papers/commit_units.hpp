// The commit units of `kilo` (stm/papers/kilo.hpp). Each unit has a part of the records and the last writer history of
// these. It lets every transaction enter, in the order of the ranks. When a transaction enters a unit, it learns its
// hazard there: the youngest earlier writer of one of its records. Then its own writes are noted.
//
// A transaction that has a rank announces, in the slot of its ticket, which units it touches. It leaves its records
// beside the slot. No thread belongs to a unit. A thread that waits for a unit and finds it free takes it. It passes
// through the slots in order, its own and others', up to the first one that is not announced yet. Then it frees the
// unit. So no thread waits for one that has nothing to do with it, and the next thread that comes lets in all that is
// announced.
//
// Transactions that have ended mark their slots. All transactions below the rank `retired` have ended. A thread moves
// `retired` on when it waits for a hazard, or when its transaction ends as the oldest.
//
// Orders. A thread that passes a slot acquires what was announced with it. A unit's word hands its history over. It
// also tells the transactions that it has passed that their hazards are noted. Slots that say "ended", and `retired`,
// carry what was written.
//
// Thread safety: each object belongs to one thread, and to one transaction at a time. Memory: the content of slots of
// earlier ranges does not count any more, because a range ends only when all its transactions have ended.
//
// Source: KILO TM, section 4.5. Deviations: units are words that threads take in turn. A transaction that does not
// touch a unit is passed over by a bit of its slot. What does not fit a slot's buffer is read where it spilled to.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"
#include "engine/stm/papers/last_writer_history.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

// Rare places, for the simulator (platform/concept.hpp).
enum class KiloProbe : std::uint32_t {
  hazard_deferred,          // a possible earlier writer had not ended yet
  revalidation_failed,      // what was read had changed when the hazard had ended
  early_validation_failed,  // what was read had changed before there was a rank
  table_evicted,            // a live entry went into the filter
  filter_answered,          // the filter named a possible writer, and nothing was known exactly
  filter_aliased,           // the buckets differ: some belong to other records
  unit_taken,               // another thread had the unit
  entered_for_another,
  log_spilled,
  limit_reached,
  limit_lowered,
  limit_raised,
  read_only_commit,
  claimed_all,  // everything was announced as written before it ran
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(KiloProbe::probes) <= kProbes);

template <Platform P, class Rules>
class CommitUnits {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE CommitUnits(P& platform, const KiloArguments<Space>& arguments) : p_(platform), a_(arguments) {}

  // Begins the transaction of this rank. `spill`: where it has room for all its records.
  KILOKV_HOST_DEVICE void open(std::uint32_t range, std::uint32_t rank, std::uint32_t spill) {
    base_ = range * a_.batch.size;
    rank_ = rank;
    spill_ = spill;
    slot_ = std::uint64_t{range + 1} << kRangeShift;
  }
  // Adds one of its records. Each record is added once.
  KILOKV_HOST_DEVICE void add(std::uint32_t record, bool writes) {
    const std::uint32_t i = count_of(slot_);
    const std::uint32_t access = record << 1 | (writes ? 1 : 0);
    if (i < a_.kilo_tuning.buffered) {
      p_.put(at(i, ticket()), access);
    } else {
      if (i == a_.kilo_tuning.buffered) {
        probe(KiloProbe::log_spilled);
        p_.put(at(i, ticket()), spill_);
      }
      p_.put(a_.kilo.spill + (spill_ + i), access);
    }
    slot_ = (slot_ + (std::uint64_t{1} << kCountShift)) | std::uint64_t{1} << unit_of(record);
  }
  KILOKV_HOST_DEVICE void announce() {
    left_ = units_of(slot_);
    p_.store(a_.kilo.slots + ticket(), slot_, Rules::kAnnounceOrder, Scope::device);
  }

  // Returns whether all its units have let the transaction in. Then hazard() is the stamp that it has to wait for; 0:
  // none.
  KILOKV_HOST_DEVICE bool enter() {
    for (; left_ != 0; left_ &= left_ - 1) {
      const std::uint32_t unit = lowest_bit(left_);
      if (has_passed(unit)) continue;
      pass(unit);
      if (!has_passed(unit)) return false;
    }
    hazard_ = p_.load(a_.kilo.hazards + ticket(), Order::relaxed, Scope::device);
    return true;
  }
  KILOKV_HOST_DEVICE std::uint32_t hazard() const { return hazard_; }

  // Whether the transaction of this stamp and all before it have ended. If so, what they wrote is visible.
  KILOKV_HOST_DEVICE bool has_retired(std::uint32_t stamp) const {
    return retired() >= stamp || advance(stamp) >= stamp;
  }
  KILOKV_HOST_DEVICE void end() const {
    p_.store(a_.kilo.slots + ticket(), slot_ | kEnded, Rules::kEndOrder, Scope::device);
    if (retired() == rank_) advance(base_ + a_.batch.size);
  }

 private:
  // A slot, from the highest bit down: the range plus one (7 bits), ended (1 bit), the number of records (24 bits), a
  // bit for each unit (32 bits).
  static constexpr unsigned kCountShift = 32, kEndedShift = 56, kRangeShift = 57;
  static constexpr std::uint64_t kEnded = std::uint64_t{1} << kEndedShift;
  static_assert(kCommitUnitsMax <= kCountShift);
  KILOKV_HOST_DEVICE static constexpr std::uint32_t units_of(std::uint64_t slot) {
    return static_cast<std::uint32_t>(slot);
  }
  KILOKV_HOST_DEVICE static constexpr std::uint32_t count_of(std::uint64_t slot) {
    return static_cast<std::uint32_t>(slot >> kCountShift) & ((1u << (kEndedShift - kCountShift)) - 1);
  }
  KILOKV_HOST_DEVICE bool is_of_range(std::uint64_t slot) const { return slot >> kRangeShift == slot_ >> kRangeShift; }

  KILOKV_HOST_DEVICE std::uint32_t ticket() const { return rank_ - base_; }
  KILOKV_HOST_DEVICE std::uint32_t unit_of(std::uint32_t record) const { return record & (a_.kilo_tuning.units - 1); }
  // Lanes of a group have neighbouring tickets and come here together. So what they touch at one time is in
  // neighbouring words. Other threads run alone, and stay out of each other's cache lines.
  KILOKV_HOST_DEVICE auto at(std::uint32_t i, std::uint32_t ticket) const {
    const bool by_place = P::kGroupWidth > 1;
    return a_.kilo.accesses + (by_place ? std::uint64_t{i} * a_.batch.size + ticket
                                        : (std::uint64_t{a_.kilo_tuning.buffered} + 1) * ticket + i);
  }
  KILOKV_HOST_DEVICE auto unit_word(std::uint32_t unit) const {
    return a_.kilo.words + std::uint64_t{kKiloStride} * (kKiloUnits + unit);
  }
  KILOKV_HOST_DEVICE auto retired_word() const { return a_.kilo.words + std::uint64_t{kKiloStride} * kKiloRetired; }

  KILOKV_HOST_DEVICE bool has_passed(std::uint32_t unit) const {
    return p_.load(unit_word(unit), Rules::kPassedOrder, Scope::device) >> 1 > rank_;
  }
  // If the unit is free, takes it through all slots that are announced.
  KILOKV_HOST_DEVICE void pass(std::uint32_t unit) const {
    const auto word = unit_word(unit);
    const std::uint64_t free = p_.load(word, Order::relaxed, Scope::device);
    if ((free & 1) != 0 || p_.compare_exchange(word, free, free | 1, Rules::kTakeOrder, Scope::device) != free) {
      probe(KiloProbe::unit_taken);
      return;
    }
    auto rank = static_cast<std::uint32_t>(free >> 1);
    if (rank < base_) rank = base_;
    for (; rank < base_ + a_.batch.size; ++rank) {
      const std::uint64_t slot = p_.load(a_.kilo.slots + (rank - base_), Rules::kSlotOrder, Scope::device);
      if (!is_of_range(slot) && (Rules::kInOrderOfRanks || rank > rank_)) break;
      if (is_of_range(slot) && (slot >> unit & 1) != 0) let_in(unit, rank, slot);
    }
    p_.store(word, std::uint64_t{rank} << 1, Rules::kLeaveOrder, Scope::device);
  }
  // A transaction never learns itself as its hazard: its writes are noted after all its records were looked up.
  KILOKV_HOST_DEVICE void let_in(std::uint32_t unit, std::uint32_t rank, std::uint64_t slot) const {
    if (rank != rank_) probe(KiloProbe::entered_for_another);
    LastWriterHistory<P, Rules> history(p_, a_, unit);
    std::uint32_t hazard = 0;
    for_accesses(unit, rank - base_, count_of(slot), [&](std::uint32_t record, bool) {
      HistoryAnswer answer = HistoryAnswer::exact;
      const std::uint32_t stamp = history.find(record, &answer);
      if (stamp > hazard) hazard = stamp;
      if (answer != HistoryAnswer::exact && stamp > 0) probe(KiloProbe::filter_answered);
      if (answer == HistoryAnswer::aliased && stamp > 0) probe(KiloProbe::filter_aliased);
    });
    if (hazard > 0) p_.fetch_max(a_.kilo.hazards + (rank - base_), hazard, Order::relaxed, Scope::device);
    for_accesses(unit, rank - base_, count_of(slot), [&](std::uint32_t record, bool writes) {
      if (writes && history.note(record, rank + 1, retired())) probe(KiloProbe::table_evicted);
    });
  }
  // Calls f(record, writes) for the records that belong to the unit.
  template <class F>
  KILOKV_HOST_DEVICE void for_accesses(std::uint32_t unit, std::uint32_t ticket, std::uint32_t count,
                                       const F& f) const {
    const std::uint32_t buffered = a_.kilo_tuning.buffered;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t access =
          i < buffered ? p_.get(at(i, ticket)) : p_.get(a_.kilo.spill + (p_.get(at(buffered, ticket)) + i));
      if (unit_of(access >> 1) == unit) f(access >> 1, (access & 1) != 0);
    }
  }

  // At least the first rank of the range, because earlier ranges are over.
  KILOKV_HOST_DEVICE std::uint32_t retired() const {
    const std::uint64_t rank = p_.load(retired_word(), Rules::kRetiredOrder, Scope::device);
    return rank < base_ ? base_ : static_cast<std::uint32_t>(rank);
  }
  // Moves `retired` on, at most to `end`. Returns where it is.
  KILOKV_HOST_DEVICE std::uint32_t advance(std::uint32_t end) const {
    std::uint32_t rank = retired();
    const std::uint32_t before = rank;
    for (; rank < end; ++rank) {
      const std::uint64_t slot = p_.load(a_.kilo.slots + (rank - base_), Rules::kEndedOrder, Scope::device);
      if (!is_of_range(slot) || (slot & kEnded) == 0) break;
    }
    if (rank > before) p_.fetch_max(retired_word(), std::uint64_t{rank}, Rules::kRetireOrder, Scope::device);
    return rank;
  }

  KILOKV_HOST_DEVICE void probe(KiloProbe probe) const {
    p_.probe(kProtocolProbes + static_cast<std::uint32_t>(probe));
  }

  P& p_;
  const KiloArguments<Space>& a_;
  // Of the current transaction:
  std::uint32_t base_ = 0;  // the first rank of its range
  std::uint32_t rank_ = 0, spill_ = 0;
  std::uint32_t left_ = 0;  // units that have not let it in yet
  std::uint32_t hazard_ = 0;
  std::uint64_t slot_ = 0;
};

}  // namespace kilokv::engine
