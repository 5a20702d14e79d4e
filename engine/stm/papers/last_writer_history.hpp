// The last writer history of one commit unit (stm/papers/commit_units.hpp). It says which transaction, of those that
// have entered, may be the last one to write a record. A set-associative table has the last writers of some records
// exactly. What the table evicts goes into a recency Bloom filter. Its buckets keep the youngest stamp that was put
// there.
//
// The answer is never older than the true last writer, unless that one has retired. A record's entry is replaced only
// by younger writers. An evicted entry leaves its stamp, or a younger one, in a bucket of every array. So the least
// stamp of the record's buckets is not below it. Aliasing can make the answer younger. Then the asker waits longer, and
// nothing else changes (docs/papers.md, gap 9).
//
// Thread safety: only the thread that has the unit uses the object. The unit's word hands the history over.
// Source: KILO TM, section 4.5.2. Deviation: an entry whose writer has retired is dropped when it is evicted.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"

namespace kilokv::engine {

// Where an answer comes from, for the simulator's probes.
enum class HistoryAnswer : std::uint8_t { exact, filtered, aliased };

template <Platform P, class Rules>
class LastWriterHistory {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE LastWriterHistory(P& platform, const KiloArguments<Space>& a, std::uint32_t unit)
      : p_(platform),
        entries_(a.kilo_tuning.history_entries),
        array_(a.kilo_tuning.filter_buckets / kFilterArrays),
        table_(a.kilo.table + std::uint64_t{unit} * entries_),
        filter_(a.kilo.filter + std::uint64_t{unit} * a.kilo_tuning.filter_buckets) {}

  // The stamp of the youngest transaction that may have written the record; 0: none has.
  KILOKV_HOST_DEVICE std::uint32_t find(std::uint32_t record, HistoryAnswer* answer) const {
    const Set set = set_of(record);
    for (std::uint32_t way = 0; way < set.ways; ++way) {
      const std::uint64_t entry = p_.get(table_ + (set.begin + way));
      if (record_of(entry) == record && entry != 0) {
        *answer = HistoryAnswer::exact;
        return stamp_of(entry);
      }
    }
    std::uint32_t least = kNone;
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < kFilterArrays; ++i) {
      const std::uint32_t stamp = p_.get(filter_ + bucket_of(record, i));
      if (stamp < least) least = stamp;
      if (stamp > most) most = stamp;
    }
    *answer = least == most ? HistoryAnswer::filtered : HistoryAnswer::aliased;
    return Rules::kAliasesDelay || least == most ? least : 0;
  }

  // Notes a writer. Its stamp is greater than all earlier ones. `retired`: all transactions below this rank have ended.
  // Returns whether the filter took an evicted entry.
  KILOKV_HOST_DEVICE bool note(std::uint32_t record, std::uint32_t stamp, std::uint32_t retired) {
    const Set set = set_of(record);
    std::uint32_t victim = 0;
    std::uint64_t evicted = ~std::uint64_t{0};
    for (std::uint32_t way = 0; way < set.ways; ++way) {
      const std::uint64_t entry = p_.get(table_ + (set.begin + way));
      if (record_of(entry) == record && entry != 0) {
        p_.put(table_ + (set.begin + way), entry_of(record, stamp));
        return false;
      }
      if (evicted != ~std::uint64_t{0} && stamp_of(entry) >= stamp_of(evicted)) continue;
      victim = way;
      evicted = entry;
    }
    p_.put(table_ + (set.begin + victim), entry_of(record, stamp));
    if (stamp_of(evicted) <= retired || !Rules::kEvictsToFilter) return false;
    for (std::uint32_t i = 0; i < kFilterArrays; ++i) {
      const auto bucket = filter_ + bucket_of(record_of(evicted), i);
      if (!Rules::kFilterKeepsYoungest || p_.get(bucket) < stamp_of(evicted)) p_.put(bucket, stamp_of(evicted));
    }
    return true;
  }

 private:
  struct Set {
    std::uint32_t begin, ways;
  };
  KILOKV_HOST_DEVICE Set set_of(std::uint32_t record) const {
    if (entries_ <= Rules::kWays) return {0, entries_};
    return {scaled(record * 0x9E3779B1u, entries_ / Rules::kWays) * Rules::kWays, Rules::kWays};
  }
  KILOKV_HOST_DEVICE std::uint32_t bucket_of(std::uint32_t record, std::uint32_t array) const {
    // Odd numbers far from each other: a hash for each array.
    const std::uint32_t factor = 0x85EBCA6Bu + array * 0x3C6EF372u;
    const std::uint32_t mixed = (record + 1) * factor;
    return array * array_ + scaled(mixed ^ mixed >> 15, array_);
  }
  // Maps a hash of 32 bits to a number below `size`.
  KILOKV_HOST_DEVICE static constexpr std::uint32_t scaled(std::uint32_t hash, std::uint32_t size) {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * size >> 32);
  }
  KILOKV_HOST_DEVICE static constexpr std::uint64_t entry_of(std::uint32_t record, std::uint32_t stamp) {
    return std::uint64_t{record} << 32 | stamp;
  }
  KILOKV_HOST_DEVICE static constexpr std::uint32_t record_of(std::uint64_t entry) {
    return static_cast<std::uint32_t>(entry >> 32);
  }
  KILOKV_HOST_DEVICE static constexpr std::uint32_t stamp_of(std::uint64_t entry) {
    return static_cast<std::uint32_t>(entry);
  }

  P& p_;
  std::uint32_t entries_;
  std::uint32_t array_;  // buckets in each array
  PointerOf<P, std::uint64_t> table_;
  PointerOf<P, std::uint32_t> filter_;
};

}  // namespace kilokv::engine
