// What `local` (stm/papers/local.hpp) gets in addition to a batch and its logs: its stage, and which transactions run
// there. Trivially copyable.
//
// The stage holds some of the batch's records, each in a slot. Where it is necessary, each class of the batch is cut
// into two halves (exec/papers/stage_plan.hpp):
//   beside  Transactions whose records are all on the stage (the hot ones), and transactions that touch no staged
//           record. Nothing that a transaction of one kind writes is touched by one of the other kind. So both kinds
//           run at the same time.
//   behind  Transactions that touch some staged records and some others. They run after the stage was written back, and
//           before it is read in again.
//
// The stage consists of words, in parts. The number of parts is a power of two. On a device, each part is in the memory
// of one block of a cluster. Slot i, and bit i of a signature, is in part i modulo the number of parts. So a record is
// in one part together with its shadow and its owner, as with the banks of the paper's memory. If there are at least as
// many bits as parts, its signatures are in this part too. Each part has a token, then its rows of the signatures, then
// five columns with one word for each of its slots. The token names the group that runs alone, of those that share the
// stage. Only the token of the first part is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

struct LocalTuning {
  std::uint32_t staged_records = 1024;  // the largest number, up to kStagedRecordsMax
  std::uint32_t signature_bits = 256;   // for each lane: a power of two, up to kSignatureBitsMax
  std::uint32_t stage_blocks = 1;       // the largest number on a device: a power of two, up to kStageBlocksMax
  bool times = false;                   // measure where the time goes
};
inline constexpr std::uint32_t kStagedRecordsMax = 32768, kSignatureBitsMax = 1024, kStageBlocksMax = 8;

inline constexpr SettingOf<LocalTuning> kLocalSettings[] = {
    number_setting<&LocalTuning::staged_records>(
        "staged-records", "Number of records that the stage in fast memory has room for; 0 turns the stage off.", 0,
        kStagedRecordsMax),
    power_of_two_setting<&LocalTuning::signature_bits>(
        "signature-bits", "Number of bits in the signature by which each lane of the stage finds conflicts.", 1,
        kSignatureBitsMax),
    power_of_two_setting<&LocalTuning::stage_blocks>(
        "stage-blocks", "Largest number of device blocks whose memory the stage may use.", 1, kStageBlocksMax),
    [] {
      auto times =
          switch_setting<&LocalTuning::times>("stage-times",
                                              "Whether the report shows where the stage's threads spend their time. "
                                              "Measuring costs some time. It needs a stage in one block.");
      times.for_measuring = true;
      return times;
    }(),
};

enum StageColumn : std::uint32_t { kStageWord, kStageTag, kShadowWord, kShadowTag, kStageOwner, kStageColumns };

// The number of lanes that share a word of a signature's row. The lanes of a group share one, so that one change of
// this word decides among them.
constexpr std::uint32_t stage_lanes_per_word(std::uint32_t group_width) { return group_width > 1 ? group_width : 32; }
constexpr std::uint32_t stage_row_words(std::uint32_t threads, std::uint32_t group_width) {
  const std::uint32_t lanes = stage_lanes_per_word(group_width);
  return (threads + lanes - 1) / lanes;
}
inline constexpr std::uint32_t kStageToken = 0, kStageRows = 1;  // offsets in a part, in words
// The largest number of `count` slots or bits that one of 2^part_bits parts holds.
KILOKV_HOST_DEVICE constexpr std::uint32_t stage_share(std::uint32_t count, std::uint32_t part_bits) {
  return (count + (std::uint32_t{1} << part_bits) - 1) >> part_bits;
}
constexpr std::uint64_t stage_part_words(std::uint32_t slots, std::uint32_t signature_bits, std::uint32_t threads,
                                         std::uint32_t group_width, std::uint32_t part_bits) {
  return kStageRows + std::uint64_t{stage_share(signature_bits, part_bits)} * stage_row_words(threads, group_width) +
         std::uint64_t{kStageColumns} * stage_share(slots, part_bits);
}
// The number of slots for which parts of `part_words` words each have room.
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
// The names in the report of a batch (exec/run/execution_report.hpp). The values are ticks, summed over all threads.
constexpr const char* counter_name_of(LocalTime time) {
  constexpr const char* kNames[kLocalTimes] = {"time_outside",  "time_unstaged",  "time_moving",    "time_running",
                                               "time_claiming", "time_shadowing", "time_restoring", "time_ending",
                                               "time_in_group", "time_in_block"};
  return kNames[static_cast<std::uint32_t>(time)];
}

// The words of a thread in LocalColumns::times. The first kLocalTimes of them hold its ticks. Two cache lines for each
// thread keep the writes of one thread from slowing down another.
inline constexpr std::uint32_t kLocalTimeWords = 16;
static_assert(kLocalTimes <= kLocalTimeWords);

// In the comments on the columns, the batch has n transactions, d records and c halves of classes.
template <class Space>
struct LocalColumns {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> stage = {};            // all parts in a row, where they are not in the memory of blocks
  Pointer<const std::uint32_t> slot_of = {};    // [d] the slot or kNone; null: slot and record are equal
  Pointer<const std::uint32_t> record_of = {};  // [staged]; null: slot and record are equal
  Pointer<const std::uint32_t> order = {};      // [n] place -> position; null: equal. Halves end at places
  Pointer<const std::uint32_t> hot_end = {};    // [c] where the places of the hot transactions of each half end
  Pointer<const std::uint32_t> behind = {};     // [c] whether the half is `behind`
  Pointer<std::uint64_t> times = {};            // [threads][kLocalTimeWords] out, if times are measured
  std::uint32_t staged = 0;                     // slots that are used
  std::uint32_t part_bits = 0;                  // the stage has 2^part_bits parts
  // The grid's first threads, which share the stage; on a device, a cluster.
  std::uint32_t threads = 1;
  std::uint32_t hot_slots = 0;  // where the slots of the other threads' undecided transactions begin
};

// The classes of these arguments are halves of the batch's classes.
template <class Space>
struct LocalArguments : TicketedArguments<Space> {
  LocalColumns<Space> local;
  LocalTuning local_tuning;

  // Lists the columns (base/section.hpp). Requires: as for TicketedArguments, and the numbers in `local` are filled.
  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    TicketedArguments<Space>::for_columns(shape, column);
    const bool are_equal = local.staged == shape.records;  // slots and records
    column(local.stage, shape.stage_words, Section::scratch);
    column(local.slot_of, are_equal ? 0 : shape.records, Section::sent);
    column(local.record_of, are_equal ? 0 : local.staged, Section::sent);
    column(local.order, are_equal ? 0 : shape.transactions, Section::sent);
    column(local.hot_end, this->classes, Section::sent);
    column(local.behind, this->classes, Section::sent);
    column(local.times, local_tuning.times ? std::size_t{local.threads} * kLocalTimeWords : 0, Section::returned);
  }
};

}  // namespace kilokv::engine
