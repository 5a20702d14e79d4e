// The stage of `local` (stm/papers/local.hpp): records in the memory of one block, or of a cluster's blocks together
// (distributed shared memory), with a shadow and an owner each, and the signatures of the lanes, by which they find out
// that they are in each other's way.
//
// Signatures. A record stands for one bit of a signature: its slot modulo their number. They are stored by bit, not by
// lane: a row for each bit, a word in it for each group, in which every lane has one bit for "reads" and one for
// "writes". So a group's word of a row is its conflict mask there, one change of it decides among its lanes who came
// first, and one load shows all lanes of another group.
//
// A claim sets the lane's own bit, then looks at the others'. Of two lanes of a group one has changed the word first;
// of two of different groups at least one sees the other, for both have a sequential fence in between. It may be
// both: then both have to begin again, and serialization (stm/papers/local.hpp) ends it. Who finds somebody in the way
// takes its bit back. A false conflict, where two records have one bit, is a conflict like any other; one's own bits
// are none.
//
// Who has claimed a record to write it owns it: the slot says so, and its shadow has what was there before. The owner
// tells a record that one has already taken from another one with the same bit, whose shadow is still to be made.
//
// Orders. Words of rows are only changed by reading and writing at once, so that who sees a bit gone, at whatever value
// of the word, has acquired what its lane released: in the own word by the fence, in others by looking. One fence for
// all looks: to a GPU each sequential load is a fence. Cells and shadows are plain data under claims. Owners are looked
// at by others for a count alone.
//
// Thread safety: an object is one thread's. Source: GPU-LocalTM, sections 3.2 and 3.3. Deviations:
//   - signatures are words of the block's memory, not registers of each lane that all banks look into; a lane has as
//     many bits as there with all 32 banks' eight
//   - reads and writes have bits of their own, so that readers of a record are not in each other's way. What a
//     transaction may write, its footprint tells, is claimed to be written from the beginning: no lane has to go from
//     reading to writing, which no two could at once
//   - banks let one lane in at a time; here the change of a word does, or the sequential fences
//   - several blocks of a device may share a stage, each with a part of it (stm/papers/local_arguments.hpp) in its
//   memory: the
//     paper's is of one work-group. No rule changes: what was the block's is the cluster's, in scopes, too
//   - a shadow is made of what may be written only, in words of 64 bits, two to a record; an owner is a word
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/local_arguments.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

enum class StageClaim : std::uint8_t {
  taken,    // the bit is set now
  kept,     // it was already
  refused,  // another lane is in the way
  aliased,  // the same; but it writes no record of this number, as far as the owner tells
};

template <Platform P, class Rules>
class Stage {
 public:
  using Space = typename P::Space;
  static constexpr std::uint32_t kLanesPerWord = stage_lanes_per_word(P::kGroupWidth);
  static constexpr Scope kScope = P::kHasClusters ? Scope::cluster : Scope::block;

  KILOKV_HOST_DEVICE Stage(P& platform, const LocalArguments<Space>& arguments)
      : p_(platform),
        a_(arguments),
        words_(memory(platform, arguments)),
        row_words_(stage_row_words(arguments.local.threads, P::kGroupWidth)),
        my_word_(platform.thread() / kLanesPerWord),
        my_bit_(std::uint64_t{1} << platform.thread() % kLanesPerWord) {}

  // Reads the records in; nobody has claimed any. For all threads that share the stage; a barrier must follow.
  KILOKV_HOST_DEVICE void read_in() const {
    if (p_.thread() >= a_.local.threads) return;
    for (std::uint32_t part = 0; part < std::uint32_t{1} << part_bits(); ++part) {
      for (std::uint32_t i = p_.thread(); i < columns_begin(); i += a_.local.threads) {
        p_.store(part_of(part) + i, 0, Order::relaxed, kScope);
      }
    }
    for (std::uint32_t slot = p_.thread(); slot < a_.local.staged; slot += a_.local.threads) {
      const auto cell = cell_of(slot);
      p_.put(at(kStageWord, slot), p_.get(cell));
      p_.put(at(kStageTag, slot), p_.get(cell + 1));
      p_.store(at(kStageOwner, slot), kNobody, Order::relaxed, kScope);
    }
  }
  // Writes them back. For the same, behind a barrier.
  KILOKV_HOST_DEVICE void write_back() const {
    if (p_.thread() >= a_.local.threads) return;
    for (std::uint32_t slot = p_.thread(); slot < a_.local.staged; slot += a_.local.threads) {
      const auto cell = cell_of(slot);
      p_.put(cell, p_.get(at(kStageWord, slot)));
      p_.put(cell + 1, p_.get(at(kStageTag, slot)));
    }
  }

  // kNone: it is not on the stage.
  KILOKV_HOST_DEVICE std::uint32_t slot_of(std::uint32_t record) const {
    return a_.local.slot_of != nullptr ? a_.local.slot_of[record] : record;
  }
  KILOKV_HOST_DEVICE Cell cell(std::uint32_t slot) const {
    return {p_.get(at(kStageWord, slot)), p_.get(at(kStageTag, slot))};
  }
  KILOKV_HOST_DEVICE void set_cell(std::uint32_t slot, Cell cell) const {
    p_.put(at(kStageWord, slot), cell.word);
    p_.put(at(kStageTag, slot), cell.tag);
  }

  KILOKV_HOST_DEVICE StageClaim claim(std::uint32_t slot, bool writes) const {
    const auto row = row_of(slot);
    const std::uint64_t mine = bit_to(writes);
    // Nobody but this lane changes its own bits.
    const std::uint64_t word = p_.load(row + my_word_, Order::relaxed, kScope);
    if ((word & (mine | bit_to(true))) != 0) return StageClaim::kept;
    if (is_in_way(word & ~my_bits(), writes)) return refuse(slot, word);
    if (!Rules::kSetsBits) return StageClaim::taken;
    const std::uint64_t before = p_.fetch_or(row + my_word_, mine, Order::relaxed, kScope);
    p_.fence(Rules::kClaimFence, kScope);
    std::uint64_t met = before & ~my_bits();
    bool refused = is_in_way(met, writes);
    for (std::uint32_t i = 0; i < row_words_ && !refused && Rules::kLooksAtOtherGroups; ++i) {
      if (i == my_word_) continue;
      met = p_.load(row + i, Rules::kLookOrder, kScope);
      refused = is_in_way(met, writes);
    }
    if (!refused) return StageClaim::taken;
    p_.fetch_add(row + my_word_, ~mine + 1, Order::relaxed, kScope);
    return refuse(slot, met);
  }
  // Gives back what was `taken`.
  KILOKV_HOST_DEVICE void release(std::uint32_t slot, bool wrote) const {
    if (!Rules::kSetsBits) return;
    p_.fetch_add(row_of(slot) + my_word_, ~bit_to(wrote) + 1, Rules::kReleaseOrder, kScope);
  }

  KILOKV_HOST_DEVICE bool owns(std::uint32_t slot) const {
    return p_.load(at(kStageOwner, slot), Order::relaxed, kScope) == p_.thread() + 1;
  }
  // What is there is what there was before. Requires: claimed to write.
  KILOKV_HOST_DEVICE void own(std::uint32_t slot) const {
    p_.put(at(kShadowWord, slot), p_.get(at(kStageWord, slot)));
    p_.put(at(kShadowTag, slot), p_.get(at(kStageTag, slot)));
    p_.store(at(kStageOwner, slot), p_.thread() + 1, Order::relaxed, kScope);
  }
  KILOKV_HOST_DEVICE void restore(std::uint32_t slot) const {
    p_.put(at(kStageWord, slot), p_.get(at(kShadowWord, slot)));
    p_.put(at(kStageTag, slot), p_.get(at(kShadowTag, slot)));
  }
  KILOKV_HOST_DEVICE void disown(std::uint32_t slot) const {
    p_.store(at(kStageOwner, slot), kNobody, Order::relaxed, kScope);
  }

  // The token: 0, or the number of a group plus one.
  KILOKV_HOST_DEVICE std::uint64_t token() const { return p_.load(part_of(0) + kStageToken, Order::relaxed, kScope); }
  KILOKV_HOST_DEVICE bool take_token(std::uint64_t mine) const {
    return p_.compare_exchange(part_of(0) + kStageToken, 0, mine, Order::relaxed, kScope) == 0;
  }
  KILOKV_HOST_DEVICE void give_token_back() const { p_.store(part_of(0) + kStageToken, 0, Order::relaxed, kScope); }

 private:
  using Pointer = PointerOf<P, std::uint64_t>;
  static constexpr std::uint64_t kNobody = 0;
  static constexpr std::uint32_t kWriteShift = 32;

  KILOKV_HOST_DEVICE static Pointer memory(P& platform, const LocalArguments<Space>& arguments) {
    if constexpr (P::kHasBlockWords) {
      return platform.block_words(0);
    } else {
      return arguments.local.stage;
    }
  }
  KILOKV_HOST_DEVICE std::uint32_t part_bits() const {
    if constexpr (P::kHasClusters) {
      return a_.local.part_bits;
    } else {
      return 0;
    }
  }
  // Where the part begins that has what has this number.
  KILOKV_HOST_DEVICE Pointer part_of(std::uint32_t number) const {
    const std::uint32_t part = Rules::kTellsPartsApart ? number & ((std::uint32_t{1} << part_bits()) - 1) : 0;
    if constexpr (!P::kHasClusters) {
      return words_;
    } else if constexpr (P::kHasBlockWords) {
      return p_.block_words(part);
    } else {
      return words_ + part * (columns_begin() + kStageColumns * stage_share(a_.local.staged, part_bits()));
    }
  }
  KILOKV_HOST_DEVICE std::uint32_t columns_begin() const {
    return kStageRows + stage_share(a_.local_tuning.signature_bits, part_bits()) * row_words_;
  }
  KILOKV_HOST_DEVICE Pointer row_of(std::uint32_t slot) const {
    const std::uint32_t bit = slot & (a_.local_tuning.signature_bits - 1);
    return part_of(bit) + (kStageRows + (bit >> part_bits()) * row_words_);
  }
  KILOKV_HOST_DEVICE Pointer at(StageColumn column, std::uint32_t slot) const {
    const std::uint32_t column_begin = columns_begin() + column * stage_share(a_.local.staged, part_bits());
    return part_of(slot) + (column_begin + (slot >> part_bits()));
  }
  KILOKV_HOST_DEVICE auto cell_of(std::uint32_t slot) const {
    return a_.cells + 2 * std::uint64_t{a_.local.record_of != nullptr ? a_.local.record_of[slot] : slot};
  }
  KILOKV_HOST_DEVICE std::uint64_t bit_to(bool write) const { return write ? my_bit_ << kWriteShift : my_bit_; }
  KILOKV_HOST_DEVICE std::uint64_t my_bits() const { return my_bit_ | my_bit_ << kWriteShift; }
  KILOKV_HOST_DEVICE static bool is_in_way(std::uint64_t others, bool writes) {
    return writes ? others != 0 : others >> kWriteShift != 0;
  }
  KILOKV_HOST_DEVICE StageClaim refuse(std::uint32_t slot, std::uint64_t met) const {
    const bool is_alias = met >> kWriteShift != 0 && p_.load(at(kStageOwner, slot), Order::relaxed, kScope) == kNobody;
    return is_alias ? StageClaim::aliased : StageClaim::refused;
  }

  P& p_;
  const LocalArguments<Space>& a_;
  const Pointer words_;
  const std::uint32_t row_words_, my_word_;
  const std::uint64_t my_bit_;
};

}  // namespace kilokv::engine
