// The commit units of `kilo` (stm/papers/kilo.hpp): each has a part of the records and its last writer history, and
// lets every transaction enter, in the order of their ranks. To enter is to learn the youngest earlier writer of each
// of one's records there, the hazard, and to note one's own writes.
//
// A transaction that has a rank announces, in the slot of its ticket, which units it touches, and leaves its records
// beside it. Nobody is a unit's thread: whoever waits for a unit and finds it free takes it, passes through the slots
// in order, its own or not, up to the first that is not announced yet, and frees it. So nobody waits for a thread that
// has nothing to do with it, and what is announced is entered by the next who comes.
//
// Ended transactions mark their slots. `retired` is the rank below which all have ended; who waits for a hazard, and
// who ends as the oldest, moves it on.
//
// Orders. Who passes a slot acquires what was announced with it. A unit's word hands its history over, and tells those
// whom it has passed that their hazards are noted. Slots that say "ended", and `retired`, carry what was written.
//
// Thread safety: an object is one thread's, for one transaction at a time. Memory: what is in slots of earlier ranges
// is over, for a range ends when all its ranks have.
// Source: KILO TM, section 4.5. Deviations: units are words that threads take in turn; a transaction that does not
// touch a unit is passed over by a bit of its slot; what does not fit a slot's buffer is read where it spilled.
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
  hazard_deferred,          // a possible earlier writer had not ended
  revalidation_failed,      // what was read had changed when it had
  early_validation_failed,  // or before there was a rank
  table_evicted,            // a live entry, into the filter
  filter_answered,          // somebody who may have written, with nothing exact
  filter_aliased,           // the buckets differ: some are others'
  unit_taken,               // a unit that another thread was at
  entered_for_another,
  log_spilled,
  limit_reached,
  limit_lowered,
  limit_raised,
  read_only_commit,
  claimed_all,  // before it ran
  probes,
};
static_assert(kProtocolProbes + static_cast<std::uint32_t>(KiloProbe::probes) <= kProbes);

template <Platform P, class Rules>
class CommitUnits {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE CommitUnits(P& platform, const KiloArguments<Space>& arguments) : p_(platform), a_(arguments) {}

  // For the transaction of this rank; `spill`: where it has room for all its records.
  KILOKV_HOST_DEVICE void open(std::uint32_t range, std::uint32_t rank, std::uint32_t spill) {
    base_ = range * a_.batch.size;
    rank_ = rank;
    spill_ = spill;
    slot_ = std::uint64_t{range + 1} << kRangeShift;
  }
  // One of its records, each once.
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

  // Whether all its units have let it in. Then hazard() is the stamp that it has to wait for; 0: none.
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

  // Whether that one and all before it have ended. What they wrote is seen then.
  KILOKV_HOST_DEVICE bool has_retired(std::uint32_t stamp) const {
    return retired() >= stamp || advance(stamp) >= stamp;
  }
  KILOKV_HOST_DEVICE void end() const {
    p_.store(a_.kilo.slots + ticket(), slot_ | kEnded, Rules::kEndOrder, Scope::device);
    if (retired() == rank_) advance(base_ + a_.batch.size);
  }

 private:
  // A slot: the range plus one | ended | how many records | a bit for each unit.
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
  // Lanes of a group have neighbouring tickets, and come to it together: what they touch at once lies side by side.
  // Threads that are alone keep out of each other's cache lines.
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
  // Takes the unit, if it is free, through all that are announced.
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
  // Who asks is never told of itself: it is noted when all its records are looked up.
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
  // Calls f(record, writes) for those of the unit.
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

  // No less than the range's first rank: earlier ranges are over.
  KILOKV_HOST_DEVICE std::uint32_t retired() const {
    const std::uint64_t rank = p_.load(retired_word(), Rules::kRetiredOrder, Scope::device);
    return rank < base_ ? base_ : static_cast<std::uint32_t>(rank);
  }
  // Moves `retired` on, to `end` at most; returns where it is.
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
  // Of the transaction.
  std::uint32_t base_ = 0;  // its range's first rank
  std::uint32_t rank_ = 0, spill_ = 0;
  std::uint32_t left_ = 0;  // units that have not let it in
  std::uint32_t hazard_ = 0;
  std::uint64_t slot_ = 0;
};

}  // namespace kilokv::engine
