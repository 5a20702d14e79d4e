// The stage of `local` (stm/papers/local.hpp). It holds records in the memory of one block, or of all blocks of a
// cluster (distributed shared memory). Each record has a shadow and an owner. The stage also holds the signatures of
// the lanes, by which lanes find out that they are in each other's way.
//
// Signatures. A record stands for one bit of a signature: its slot modulo the number of bits. Signatures are stored by
// bit, not by lane. There is a row for each bit, and a word of the row for each group. In this word every lane of the
// group has one bit for "reads" and one for "writes". So a group's word of a row is its conflict mask for this bit. One
// change of the word decides which of its lanes came first, and one load shows all lanes of another group.
//
// A claim sets the lane's own bit, and then looks at the bits of others. Of two lanes of one group, one has changed the
// word first. Of two lanes of different groups at least one sees the other, because each has a sequential fence between
// setting and looking. Both may see each other. Then both have to begin again, and serialization
// (stm/papers/warp_serialization.hpp) ends this. A lane that finds another one in the way takes its own bit back. Two
// records may have the same bit. This makes a false conflict, which is treated like any other. A lane's own bits are no
// conflict.
//
// A lane that has claimed a record to write it owns the record. The slot says so, and its shadow keeps the value from
// before. The owner is needed where two records have the same bit. It distinguishes the record that the lane has
// already taken, which has a shadow, from the other one, which has no shadow yet.
//
// Orders. Words of rows are changed by read-modify-writes only. So a lane that sees a bit gone has acquired what that
// bit's lane released, whatever the value of the word is. For its own word, the fence acquires it. For other words, the
// loads do. One fence comes before all these loads. Sequential loads would do the same, but on a GPU each of them is a
// fence. Cells and shadows are plain data, protected by claims. Other lanes look at owners only to count aliases.
//
// Thread safety: each object belongs to one thread.
//
// Source: GPU-LocalTM, sections 3.2 and 3.3. Deviations:
//   - Signatures are words of the block's memory. In the paper they are registers of each lane, which all banks look
//     into. A lane has as many bits as it has in the paper with 32 banks of eight bits each.
//   - Reads and writes have bits of their own, so that readers of a record are not in each other's way. The footprint
//     says what a transaction may write, and this is claimed for writing from the beginning. So no lane has to change
//     from reading to writing. Two lanes could never both do that at one record.
//   - In the paper a bank lets one lane in at a time. Here the change of a word decides, or the sequential fences.
//   - Several blocks of a device may share a stage, each with a part of it in its memory
//     (stm/papers/local_arguments.hpp). The paper's stage belongs to one work-group. No rule changes: where the rules
//     say block, it is the cluster, also for memory scopes.
//   - Only records that may be written have shadows. A shadow is two words of 64 bits for each record, and an owner is
//     one word.
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
  kept,     // the bit was set before
  refused,  // another lane is in the way
  aliased,  // the same, but as far as the owner tells, that lane does not write this record
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

  // Reads the records into the stage. No record is claimed then. All threads that share the stage call this, and a
  // barrier must follow.
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
  // Writes the records back. All threads that share the stage call this, after a barrier.
  KILOKV_HOST_DEVICE void write_back() const {
    if (p_.thread() >= a_.local.threads) return;
    for (std::uint32_t slot = p_.thread(); slot < a_.local.staged; slot += a_.local.threads) {
      const auto cell = cell_of(slot);
      p_.put(cell, p_.get(at(kStageWord, slot)));
      p_.put(cell + 1, p_.get(at(kStageTag, slot)));
    }
  }

  // Returns kNone if the record is not on the stage.
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
    // Only this lane changes its own bits.
    const std::uint64_t word = p_.load(row + my_word_, Order::relaxed, kScope);
    if ((word & (mine | bit_to(true))) != 0) return StageClaim::kept;
    if (is_in_way(word & ~my_bits(), writes)) return refuse(slot, word);
    if (!Rules::kSetsBits) return StageClaim::taken;
    // The bit is not set yet, so adding it sets it. A fetch_or() would lose bits in another block (cuda.cuh).
    const std::uint64_t before = p_.fetch_add(row + my_word_, mine, Order::relaxed, kScope);
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
  // Gives back a claim that was `taken`.
  KILOKV_HOST_DEVICE void release(std::uint32_t slot, bool wrote) const {
    if (!Rules::kSetsBits) return;
    p_.fetch_add(row_of(slot) + my_word_, ~bit_to(wrote) + 1, Rules::kReleaseOrder, kScope);
  }

  KILOKV_HOST_DEVICE bool owns(std::uint32_t slot) const {
    return p_.load(at(kStageOwner, slot), Order::relaxed, kScope) == p_.thread() + 1;
  }
  // Makes this lane the owner, and copies the cell into the shadow. Requires: the record is claimed for writing.
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

  // The token: the number of the group that has it plus one, or 0.
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
  // Where the part begins that holds the slot or the bit of this number.
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
