// What `kilo` (stm/papers/kilo.hpp) gets in addition to a batch and its logs. Trivially copyable.
//
// A rank counts through the ranges: the r-th range of a batch of n transactions has the ranks from r x n on. Here, a
// stamp is a rank plus one, and not a time. Stamp 0 belongs to no transaction. All columns except the last two are zero
// before the batch.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/history_size.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

struct KiloTuning {
  std::uint32_t units = 8;              // commit units: a power of two, up to kCommitUnitsMax
  std::uint32_t history_entries = 512;  // of each unit's table: records whose last writer is known exactly
  std::uint32_t filter_buckets = 1024;  // of each unit's filter; at least kFilterArrays
  // The number of transactions that may be between their start and their end; 0: as many as there are threads, and
  // fewer while many attempts fail.
  std::uint32_t concurrency_limit = 0;
  std::uint32_t buffered = 8;  // records of a transaction that fit into its buffer; the others spill
};
inline constexpr std::uint32_t kCommitUnitsMax = 32;

inline constexpr SettingOf<KiloTuning> kKiloSettings[] = {
    power_of_two_setting<&KiloTuning::units>(
        "commit-units", "Number of commit units. Each has a part of the records, and one last writer history.", 1,
        kCommitUnitsMax),
    form_setting<KiloTuning>(
        "writer-history",
        "Size of each last writer history: a preset, or the entries of its table + the buckets of its filter.", "5kB",
        HistorySize::kForms, [](std::string_view text) { return parse_history_size(text).has_value(); },
        [](std::string_view text, KiloTuning* to) {
          const HistorySize size = *parse_history_size(text);
          to->history_entries = size.entries;
          to->filter_buckets = size.buckets;
        }),
    number_setting<&KiloTuning::concurrency_limit>(
        "concurrency-limit", "Largest number of transactions that run at once; 0 adapts it to how many attempts fail.",
        0, 1u << 20),
};

// The largest number of uses of records in a batch, because a record's number and one bit share 32 bits.
inline constexpr std::uint64_t kKiloUsesMax = std::uint64_t{1} << 31;

// Words that all threads contend for are this many words apart.
inline constexpr std::uint32_t kKiloStride = 16;
enum KiloWord : std::uint32_t {
  kKiloActive,   // transactions that the limit counts
  kKiloLimit,    // the current limit, if it adapts; 0: no limit yet
  kKiloRetired,  // all ranks below this one have ended
  kKiloUnits,    // a word for each unit: twice the rank that it has come to, plus 1 while a thread has it
};
constexpr std::uint64_t kilo_words(std::uint32_t units) { return std::uint64_t{kKiloStride} * (kKiloUnits + units); }

// In the comments on the columns, the batch has n transactions and U uses of records. The other names are those of the
// tuning.
template <class Space>
struct KiloColumns {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> words = {};     // [kilo_words(units)]
  Pointer<std::uint64_t> slots = {};     // [n] by ticket: what its transaction announced (stm/papers/commit_units.hpp)
  Pointer<std::uint32_t> hazards = {};   // [n] by ticket: the youngest stamp that it waits for
  Pointer<std::uint64_t> table = {};     // [units x history_entries]
  Pointer<std::uint32_t> filter = {};    // [units x filter_buckets]
  Pointer<std::uint32_t> accesses = {};  // [(buffered + 1) x n] records of each ticket; last: where the rest is
  Pointer<std::uint32_t> spill = {};     // [U] records that do not fit the buffers
};

template <class Space>
struct KiloArguments : TicketedArguments<Space> {
  KiloColumns<Space> kilo;
  KiloTuning kilo_tuning;
};

}  // namespace kilokv::engine
