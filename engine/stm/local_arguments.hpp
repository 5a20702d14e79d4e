// What `local` (stm/local.hpp) is given beside a batch and its logs: its stage, and which transactions run there.
// Trivially copyable.
//
// The stage holds some of the batch's records, each in a slot. The batch's classes are cut in two, where there is a
// reason to (exec/stage_plan.hpp):
//   beside   transactions all of whose records are on the stage, the hot ones, and such as touch none of these: nothing
//            that one of them writes is touched by one of the others, and so they run side by side;
//   behind   those that touch some that are on the stage and some that are not. They run when the stage was written
//            back, and before it is read in again.
// The stage is words: the token of who runs alone in the block; the signatures; then five columns of a word for each
// slot.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"

namespace kilokv::engine {

struct LocalTuning {
  std::uint32_t staged_records = 1024;  // at most; to kStagedRecordsMax
  std::uint32_t signature_bits = 256;   // of a lane: a power of two, to kSignatureBitsMax
};
inline constexpr std::uint32_t kStagedRecordsMax = 4096, kSignatureBitsMax = 1024;

enum StageColumn : std::uint32_t { kStageWord, kStageTag, kShadowWord, kShadowTag, kStageOwner, kStageColumns };

// Lanes that share a word of a signature's row: those of a group, so that one change of that word decides among them.
constexpr std::uint32_t stage_lanes_per_word(std::uint32_t group_width) { return group_width > 1 ? group_width : 32; }
constexpr std::uint32_t stage_row_words(std::uint32_t threads, std::uint32_t group_width) {
  const std::uint32_t lanes = stage_lanes_per_word(group_width);
  return (threads + lanes - 1) / lanes;
}
inline constexpr std::uint32_t kStageToken = 0, kStageRows = 1;  // words
constexpr std::uint64_t stage_words(std::uint32_t slots, std::uint32_t signature_bits, std::uint32_t threads,
                                    std::uint32_t group_width) {
  return kStageRows + std::uint64_t{signature_bits} * stage_row_words(threads, group_width) +
         std::uint64_t{kStageColumns} * slots;
}

// With n transactions, d records and c halves of classes:
template <class Space>
struct LocalArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> stage = {};            // [stage_words()], where the block's own memory is not it
  Pointer<const std::uint32_t> slot_of = {};    // [d] or kNone; null: each record's own number
  Pointer<const std::uint32_t> record_of = {};  // [staged]; null: the same
  Pointer<const std::uint32_t> order = {};      // [n] place -> position, null: the same; halves end at places
  Pointer<const std::uint32_t> hot_end = {};    // [c] the places of the hot ones of each half
  Pointer<const std::uint32_t> behind = {};     // [c] whether it is one behind the stage
  std::uint32_t staged = 0;                     // slots that are used
  std::uint32_t threads = 1;                    // that share the stage: the grid's first ones, of one block on a device
  std::uint32_t hot_slots = 0;                  // of the undecided ones: where those of other threads begin
};

}  // namespace kilokv::engine
