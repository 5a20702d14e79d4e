// What `local` (stm/papers/local.hpp) is given beside a batch and its logs: its stage, and which transactions run
// there. Trivially copyable.
//
// The stage holds some of the batch's records, each in a slot. The batch's classes are cut in two, where there is a
// reason to (exec/papers/stage_plan.hpp):
//   beside   transactions all of whose records are on the stage, the hot ones, and such as touch none of these: nothing
//            that one of them writes is touched by one of the others, and so they run side by side;
//   behind   those that touch some that are on the stage and some that are not. They run when the stage was written
//            back, and before it is read in again.
// The stage is words, in parts, a power of two of them: on a device, each in the memory of one block of a cluster. What
// has number i, a slot or a signature's bit, is in part i modulo their number, so that a record is in one part with its
// shadow, its owner and, where there are as many bits as parts, its signatures, as with the banks of the paper's
// memory. Each part has the token of who runs alone among the sharing threads, of which the first one counts; its rows
// of the signatures; then five columns of a word for each of its slots.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

struct LocalTuning {
  std::uint32_t staged_records = 1024;  // at most; to kStagedRecordsMax
  std::uint32_t signature_bits = 256;   // of a lane: a power of two, to kSignatureBitsMax
  std::uint32_t stage_blocks = 1;       // of a device, at most: a power of two, to kStageBlocksMax
  bool times = false;                   // adds up where the time goes
};
inline constexpr std::uint32_t kStagedRecordsMax = 32768, kSignatureBitsMax = 1024, kStageBlocksMax = 8;

inline constexpr SettingOf<LocalTuning> kLocalSettings[] = {
    number_setting<&LocalTuning::staged_records>(
        "staged-records", "Number of records that the stage has room for; 0 means that there is no stage.", 0,
        kStagedRecordsMax),
    power_of_two_setting<&LocalTuning::signature_bits>(
        "signature-bits", "Number of bits in the signature of each lane that shares the stage.", 1, kSignatureBitsMax),
    power_of_two_setting<&LocalTuning::stage_blocks>(
        "stage-blocks", "Largest number of a device's blocks in whose memory the stage may be.", 1, kStageBlocksMax),
    [] {
      auto times = switch_setting<&LocalTuning::times>(
          "stage-times", "Whether the report tells where the time of the stage's threads goes, which costs some.");
      times.for_measuring = true;
      return times;
    }(),
};

enum StageColumn : std::uint32_t { kStageWord, kStageTag, kShadowWord, kShadowTag, kStageOwner, kStageColumns };

// Lanes that share a word of a signature's row: those of a group, so that one change of that word decides among them.
constexpr std::uint32_t stage_lanes_per_word(std::uint32_t group_width) { return group_width > 1 ? group_width : 32; }
constexpr std::uint32_t stage_row_words(std::uint32_t threads, std::uint32_t group_width) {
  const std::uint32_t lanes = stage_lanes_per_word(group_width);
  return (threads + lanes - 1) / lanes;
}
inline constexpr std::uint32_t kStageToken = 0, kStageRows = 1;  // words
// Of so many slots or bits, the most that one of 2^part_bits parts has.
KILOKV_HOST_DEVICE constexpr std::uint32_t stage_share(std::uint32_t count, std::uint32_t part_bits) {
  return (count + (std::uint32_t{1} << part_bits) - 1) >> part_bits;
}
constexpr std::uint64_t stage_part_words(std::uint32_t slots, std::uint32_t signature_bits, std::uint32_t threads,
                                         std::uint32_t group_width, std::uint32_t part_bits) {
  return kStageRows + std::uint64_t{stage_share(signature_bits, part_bits)} * stage_row_words(threads, group_width) +
         std::uint64_t{kStageColumns} * stage_share(slots, part_bits);
}
// Slots for which parts of so many words each have room.
constexpr std::uint32_t stage_slots_max(std::uint64_t part_words, std::uint32_t signature_bits, std::uint32_t threads,
                                        std::uint32_t group_width, std::uint32_t part_bits) {
  const std::uint64_t others = stage_part_words(0, signature_bits, threads, group_width, part_bits);
  if (others >= part_words) return 0;
  return static_cast<std::uint32_t>((part_words - others) / kStageColumns) << part_bits;
}

// What a thread that shares the stage spends its time on (stm/papers/local_clock.hpp).
enum class LocalTime : std::uint8_t {
  outside,
  unstaged,
  moving,
  running,
  claiming,
  shadowing,
  restoring,
  ending,
  in_group,
  in_block,
};
inline constexpr std::uint32_t kLocalTimes = 10;
// In the report of a batch (exec/run/execution_report.hpp): ticks of all threads.
constexpr const char* counter_name_of(LocalTime time) {
  constexpr const char* kNames[kLocalTimes] = {"time_outside",  "time_unstaged",  "time_moving",    "time_running",
                                               "time_claiming", "time_shadowing", "time_restoring", "time_ending",
                                               "time_in_group", "time_in_block"};
  return kNames[static_cast<std::uint32_t>(time)];
}
struct LocalTimes {
  std::uint64_t ticks[kLocalTimes] = {};
};

// With n transactions, d records and c halves of classes:
template <class Space>
struct LocalColumns {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> stage = {};            // the parts, one behind the other, where no block's memory is it
  Pointer<const std::uint32_t> slot_of = {};    // [d] or kNone; null: each record's own number
  Pointer<const std::uint32_t> record_of = {};  // [staged]; null: the same
  Pointer<const std::uint32_t> order = {};      // [n] place -> position, null: the same; halves end at places
  Pointer<const std::uint32_t> hot_end = {};    // [c] the places of the hot ones of each half
  Pointer<const std::uint32_t> behind = {};     // [c] whether it is one behind the stage
  Pointer<LocalTimes> times = {};               // [threads] out, where they are asked for
  std::uint32_t staged = 0;                     // slots that are used
  std::uint32_t part_bits = 0;                  // the stage has 2^part_bits parts
  std::uint32_t threads = 1;                    // that share the stage: the grid's first ones; on a device, a cluster
  std::uint32_t hot_slots = 0;                  // of the undecided ones: where those of other threads begin
};

// Its classes are halves of the batch's classes.
template <class Space>
struct LocalArguments : TicketedArguments<Space> {
  LocalColumns<Space> local;
  LocalTuning local_tuning;
};

}  // namespace kilokv::engine
