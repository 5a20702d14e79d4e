// What `kilo` (stm/papers/kilo.hpp) gets in addition to a batch and its logs. Trivially copyable.
//
// A batch of n transactions has several ranges of n ranks (stm/papers/ticketed.hpp). Range r, counted from 0, has the
// ranks from r x n to r x n + n - 1. Here, a stamp is a rank plus one, and not a time. Stamp 0 belongs to no
// transaction. All columns except the last two are zero before the batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/check.hpp"
#include "engine/base/host_device.hpp"
#include "engine/base/strategy_setting.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/history_size.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

struct KiloTuning {
  std::uint32_t units = 8;              // commit units: a power of two, up to kCommitUnitsMax
  std::uint32_t history_entries = 512;  // in each unit's table: records whose last writer is known exactly
  std::uint32_t filter_buckets = 1024;  // in each unit's filter; at least kFilterArrays
  // The number of transactions that may be between their start and their end; 0: as many as there are threads, and
  // fewer while many attempts fail.
  std::uint32_t concurrency_limit = 0;
  // Records of a transaction that fit into its buffer. Further records go into KiloColumns::spill.
  std::uint32_t buffered = 8;
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

// The largest number of uses of records in a batch. An access has 32 bits: one says whether it writes, and 31 are left
// for the record's number.
inline constexpr std::uint64_t kKiloUsesMax = std::uint64_t{1} << 31;

// Words that all threads contend for are this many words apart, so that each has a cache line of its own.
inline constexpr std::uint32_t kKiloStride = 16;
enum KiloWord : std::uint32_t {
  kKiloActive,   // transactions that the limit counts
  kKiloLimit,    // the current limit, if it adapts; 0: no limit yet
  kKiloRetired,  // all ranks below this one have ended
  kKiloUnits,    // from here on a word for each unit: twice the rank of the first transaction that the unit has not
                 // passed yet, plus 1 while a thread has the unit
};
constexpr std::uint64_t kilo_words(std::uint32_t units) { return std::uint64_t{kKiloStride} * (kKiloUnits + units); }

// In the comments on the columns, n is the number of transactions in the batch, and U is the number of its uses of
// records (stm/papers/ticketed_arguments.hpp). The other names are members of KiloTuning.
template <class Space>
struct KiloColumns {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> words = {};    // [kilo_words(units)]
  Pointer<std::uint64_t> slots = {};    // [n] by ticket: what its transaction announced (stm/papers/commit_units.hpp)
  Pointer<std::uint32_t> hazards = {};  // [n] by ticket: the youngest stamp that its transaction waits for
  Pointer<std::uint64_t> table = {};    // [units x history_entries]
  Pointer<std::uint32_t> filter = {};   // [units x filter_buckets]
  // [(buffered + 1) x n] the buffer of each ticket: its records, and one more entry, which says where in `spill` the
  // records are that do not fit.
  Pointer<std::uint32_t> accesses = {};
  Pointer<std::uint32_t> spill = {};  // [U] records that do not fit into the buffers
};

template <class Space>
struct KiloArguments : TicketedArguments<Space> {
  KiloColumns<Space> kilo;
  KiloTuning kilo_tuning;

  // Lists the columns (base/section.hpp). Requires: as for TicketedArguments.
  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    TicketedArguments<Space>::for_columns(shape, column);
    const std::size_t n = shape.transactions, units = kilo_tuning.units;
    KILOKV_CHECK(shape.uses() <= kKiloUsesMax);
    column(kilo.words, kilo_words(kilo_tuning.units), Section::zeroed);
    column(kilo.slots, n, Section::zeroed);
    column(kilo.hazards, n, Section::zeroed);
    column(kilo.table, units * kilo_tuning.history_entries, Section::zeroed);
    column(kilo.filter, units * kilo_tuning.filter_buckets, Section::zeroed);
    column(kilo.accesses, (std::size_t{kilo_tuning.buffered} + 1) * n, Section::scratch);
    column(kilo.spill, shape.uses(), Section::scratch);
  }
};

}  // namespace kilokv::engine
