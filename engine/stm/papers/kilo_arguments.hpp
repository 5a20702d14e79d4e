// What `kilo` (stm/papers/kilo.hpp) is given beside a batch and its logs. Trivially copyable.
//
// A rank counts through the ranges: the r-th range of a batch of n has those from r x n on. A stamp is a rank plus one;
// 0: nobody's. All columns but the last two are all zero before the batch.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/history_size.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

struct KiloTuning {
  std::uint32_t units = 8;              // commit units: a power of two, to kCommitUnitsMax
  std::uint32_t history_entries = 512;  // of a unit's table, for so many records exactly
  std::uint32_t filter_buckets = 1024;  // of a unit's filter; at least kFilterArrays
  // Transactions between their start and their end at once; 0: as many as there are threads, and fewer while many
  // attempts fail.
  std::uint32_t concurrency_limit = 0;
  std::uint32_t buffered = 8;  // records of a transaction that its place has room for; those beyond spill
};
inline constexpr std::uint32_t kCommitUnitsMax = 32;

inline constexpr SettingOf<KiloTuning> kKiloSettings[] = {
    power_of_two_setting<&KiloTuning::units>(
        "commit-units", "Number of parts that the records are divided into, each with a last writer history.", 1,
        kCommitUnitsMax),
    form_setting<KiloTuning>(
        "writer-history",
        "Size of each last writer history: a preset, or its table's entries plus its filter's buckets.", "5kB",
        HistorySize::kForms, [](std::string_view text) { return parse_history_size(text).has_value(); },
        [](std::string_view text, KiloTuning* to) {
          const HistorySize size = *parse_history_size(text);
          to->history_entries = size.entries;
          to->filter_buckets = size.buckets;
        }),
    number_setting<&KiloTuning::concurrency_limit>(
        "concurrency-limit",
        "Number of transactions between start and end at once; 0 adapts it to how many attempts fail.", 0, 1u << 20),
};

// Uses of records in a batch: a record's number and a bit have 32.
inline constexpr std::uint64_t kKiloUsesMax = std::uint64_t{1} << 31;

// Words that all threads contend for stand this far apart.
inline constexpr std::uint32_t kKiloStride = 16;
enum KiloWord : std::uint32_t {
  kKiloActive,   // transactions that the limit counts
  kKiloLimit,    // as it is now, where it adapts; 0: none
  kKiloRetired,  // all ranks below this one have ended
  kKiloUnits,    // a word for each unit: twice the rank that it has come to, plus one while a thread is at it
};
constexpr std::uint64_t kilo_words(std::uint32_t units) { return std::uint64_t{kKiloStride} * (kKiloUnits + units); }

// With n transactions, U uses of records, and what the tuning says:
template <class Space>
struct KiloColumns {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> words = {};  // [kilo_words(units)]
  Pointer<std::uint64_t> slots = {};  // [n] by ticket: what its transaction has announced (stm/papers/commit_units.hpp)
  Pointer<std::uint32_t> hazards = {};   // [n] by ticket: the youngest stamp that it waits for
  Pointer<std::uint64_t> table = {};     // [units x history_entries]
  Pointer<std::uint32_t> filter = {};    // [units x filter_buckets]
  Pointer<std::uint32_t> accesses = {};  // [(buffered + 1) x n] records of each ticket; last: where the rest spills
  Pointer<std::uint32_t> spill = {};     // [U] beyond the buffered ones
};

template <class Space>
struct KiloArguments : TicketedArguments<Space> {
  KiloColumns<Space> kilo;
  KiloTuning kilo_tuning;
};

}  // namespace kilokv::engine
