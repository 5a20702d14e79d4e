// The designs of the record table that are compared. All have the same operations. A "place" is what the engine keeps
// for a record while a batch runs: the index of a slot, or a record's number. Place absent() has no key, and stands for
// every key that is not in the table.
//
// Marks of records (dirty, touched) are left out of all but TodayTable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/prefetch.hpp"
#include "engine/base/types.hpp"
#include "engine/table/record_table.hpp"
#include "tests/bench/table_variants/probed_rows.hpp"
#include "tests/bench/table_variants/reserved_array.hpp"

namespace kilokv::bench {

using engine::prefetch_for_read;
using engine::prefetch_for_write;
using engine::Slot;

// What the record store keeps for each record on the host alone.
struct Beside {
  std::uint32_t key_ref;
  std::uint32_t chunk;
};

inline std::uint32_t hash_of_id(KeyId id) { return static_cast<std::uint32_t>(id.high >> 32); }

// How many ids are looked up side by side, and how far ahead of the probes their homes are prefetched. As in
// RecordTable.
inline constexpr std::uint32_t kChunkIds = 512;
inline constexpr std::uint32_t kHomesAhead = 32;
inline constexpr std::uint32_t kRoundIdsMin = 4;

// An insert that finds the table moving owes so many rows of work. The work is done in bursts.
inline constexpr std::uint32_t kRowsPerInsert = 16;
inline constexpr std::uint32_t kBurstRows = 4096;

// The capacity grows by a quarter when more than so many percent of it are full. RecordTable has 80, too.
inline constexpr std::size_t kSlotsFull = 80;
inline std::uint32_t capacity_for(std::size_t records, std::size_t full) {
  return static_cast<std::uint32_t>(records * 100 / full + 1);
}
inline std::size_t records_of(std::uint32_t capacity, std::size_t full) { return std::size_t{capacity} * full / 100; }
inline std::uint32_t next_capacity(std::uint32_t capacity) { return capacity + capacity / 4 + 1; }

// Rows behind the last home. A run of this length does not happen: at a load of 0.86, the longest of 100M records has
// about 2,000.
inline constexpr std::size_t kRowsBehind = std::size_t{1} << 16;
inline std::size_t rows_for(std::size_t records_max, std::size_t full) {
  return next_capacity(capacity_for(records_max, full)) + kRowsBehind;
}

// Works off what inserts owe.
template <class Rows>
void pay(ProbedRows<Rows>* rows, std::uint32_t* owed) {
  if (!rows->moving()) return;
  *owed += kRowsPerInsert;
  if (*owed < kBurstRows) return;
  rows->move_some(*owed);
  *owed = 0;
}

// Calls probe(i) for all of [0, count), and again for those that say that their probe goes on, until nearly all are
// done. ask(i) prefetches what the first probe of i reads.
template <class Ask, class Probe>
void probe_in_rounds(std::uint32_t count, const Ask& ask, const Probe& probe) {
  std::array<std::uint32_t, kChunkIds> open;
  std::uint32_t open_count = 0;
  const auto probe_one = [&](std::uint32_t i) {
    const bool goes_on = probe(i);
    open[open_count] = i;
    open_count += static_cast<std::uint32_t>(goes_on);
  };
  const std::uint32_t ahead = std::min(kHomesAhead, count);
  for (std::uint32_t i = 0; i < ahead; ++i) ask(i);
  for (std::uint32_t i = 0; i < count - ahead; ++i) {
    ask(i + ahead);
    probe_one(i);
  }
  for (std::uint32_t i = count - ahead; i < count; ++i) probe_one(i);
  while (open_count >= kRoundIdsMin) {
    const std::uint32_t probes = open_count;
    open_count = 0;
    for (std::uint32_t j = 0; j < probes; ++j) probe_one(open[j]);
  }
}

// Calls find_chunk(ids, count, places) for each chunk of the ids. Returns whether all have a place.
template <class FindChunk>
bool find_in_chunks(std::span<const KeyId> ids, std::uint32_t* places, const FindChunk& find_chunk) {
  bool has_all = true;
  for (std::size_t i = 0; i < ids.size(); i += kChunkIds) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kChunkIds, ids.size() - i));
    has_all &= find_chunk(ids.data() + i, count, places + i);
  }
  return has_all;
}

// The record table as it is.
class TodayTable {
 public:
  static constexpr const char* kName = "today";
  static constexpr bool kSliced = false;

  TodayTable(std::size_t records, std::size_t) : table_(records) {}

  std::uint32_t absent() const { return table_.absent_slot(); }
  std::uint32_t find(KeyId id) const { return table_.find(id); }
  bool find_all(std::span<const KeyId> ids, std::uint32_t* places) const { return table_.find_all(ids, places); }
  void prefetch(std::uint32_t place) const { prefetch_for_write(&table_[place]); }
  Slot& operator[](std::uint32_t place) { return table_[place]; }
  std::uint32_t key_ref(std::uint32_t place) const { return table_.key_ref(place); }
  std::uint32_t insert(KeyId id, std::uint32_t key_ref) { return table_.insert(id, key_ref); }
  void erase(std::uint32_t place) { table_.erase(place); }
  std::size_t size() const { return table_.size(); }
  std::uint32_t capacity() const { return table_.capacity(); }
  template <class F>
  void for_each(const F& f) const {
    for (std::uint32_t i = 0; i < table_.capacity(); ++i) {
      if (table_.occupied(i)) f(table_[i]);
    }
  }

 private:
  engine::RecordTable table_;
};

struct RecordRow {
  Slot slot;
  Beside beside;
};

// Slots, and what is beside them.
class RecordRows {
 public:
  using Row = RecordRow;
  static constexpr const char* kName = "shift";
  static constexpr bool kMarks = false;

  explicit RecordRows(std::size_t rows_max) : slots_(rows_max), besides_(rows_max) {}

  bool used(std::uint32_t i) const { return slots_[i].id != KeyId{}; }
  bool occupied(std::uint32_t i) const { return used(i); }
  std::uint32_t hash(std::uint32_t i) const { return hash_of_id(slots_[i].id); }
  static std::uint32_t hash_of(const Row& row) { return hash_of_id(row.slot.id); }
  Row take(std::uint32_t i) const { return {slots_[i], besides_[i]}; }
  void populate(std::size_t begin, std::size_t end) {
    slots_.populate(begin, end);
    besides_.populate(begin, end);
  }
  void put(std::uint32_t i, const Row& row) {
    slots_[i] = row.slot;
    besides_[i] = row.beside;
  }
  void move(std::uint32_t to, std::uint32_t from) {
    slots_[to] = slots_[from];
    besides_[to] = besides_[from];
  }
  void clear(std::uint32_t i) {
    slots_[i] = Slot{};
    besides_[i] = Beside{};
  }

  Slot& slot(std::uint32_t i) { return slots_[i]; }
  const Slot* slots() const { return slots_.data(); }
  const Beside& beside(std::uint32_t i) const { return besides_[i]; }

 private:
  ReservedArray<Slot> slots_;
  ReservedArray<Beside> besides_;
};

// The same, with marks for erased records. No key has the id of a mark.
class MarkedRows : public RecordRows {
 public:
  static constexpr const char* kName = "marks";
  static constexpr bool kMarks = true;
  static constexpr KeyId kMark{1, 0};

  using RecordRows::RecordRows;

  bool marked(std::uint32_t i) const { return slots()[i].id == kMark; }
  bool occupied(std::uint32_t i) const { return used(i) && !marked(i); }
  void put(std::uint32_t i, const Row& row) {
    marks_ -= static_cast<std::size_t>(marked(i));
    RecordRows::put(i, row);
  }
  void clear(std::uint32_t i) {
    marks_ -= static_cast<std::size_t>(marked(i));
    RecordRows::clear(i);
  }
  void mark(std::uint32_t i) {
    RecordRows::put(i, {{kMark, {}}, {}});
    ++marks_;
  }
  std::size_t marks() const { return marks_; }

 private:
  std::size_t marks_ = 0;
};

// A table of slots that grows in place. Erasing shifts the rest of the run back, or leaves a mark.
template <class Rows>
class SlotTable {
 public:
  static constexpr const char* kName = Rows::kName;
  static constexpr bool kSliced = true;

  SlotTable(std::size_t records, std::size_t records_max)
      : rows_(capacity_for(records, kSlotsFull), rows_for(records_max, kSlotsFull)) {}

  static constexpr std::uint32_t absent() { return 0; }
  std::uint32_t find(KeyId id) const { return find_from(rows_.home(hash_of_id(id)), id); }
  bool find_all(std::span<const KeyId> ids, std::uint32_t* places) const {
    return find_in_chunks(ids, places, [this](const KeyId* chunk, std::uint32_t count, std::uint32_t* of_chunk) {
      return find_chunk(chunk, count, of_chunk);
    });
  }
  void prefetch(std::uint32_t place) const { prefetch_for_write(rows_.rows().slots() + place); }
  Slot& operator[](std::uint32_t place) { return rows_.rows().slot(place); }
  std::uint32_t key_ref(std::uint32_t place) const { return rows_.rows().beside(place).key_ref; }

  std::uint32_t insert(KeyId id, std::uint32_t key_ref) {
    if (size_ == records_of(rows_.capacity(), kSlotsFull)) start_growth();
    pay(&rows_, &owed_);
    ++size_;
    return rows_.place({{id, {}}, {key_ref, 0}});
  }

  void erase(std::uint32_t place) {
    --size_;
    if constexpr (Rows::kMarks) {
      erase_marking(place);
    } else {
      rows_.erase_shifting(place);
    }
  }

  // Takes the memory that the next growth needs.
  void populate_growth() { rows_.populate(next_capacity(rows_.capacity())); }
  void start_growth() {
    while (rows_.moving()) rows_.move_some(kBurstRows);
    start_move(next_capacity(rows_.capacity()));
  }
  bool moving() const { return rows_.moving(); }
  std::uint32_t not_moved() const { return rows_.not_moved(); }
  void move_some(std::uint32_t rows) { rows_.move_some(rows); }
  std::size_t size() const { return size_; }
  std::uint32_t capacity() const { return rows_.capacity(); }
  template <class F>
  void for_each(const F& f) const {
    for (std::uint32_t i = 1; i < rows_.capacity() + kRowsBehind; ++i) {
      if (rows_.rows().occupied(i)) f(rows_.rows().slots()[i]);
    }
  }

 private:
  void start_move(std::uint32_t capacity) {
    rows_.start_move(capacity);
    owed_ = 0;
  }

  void erase_marking(std::uint32_t place) {
    Rows& rows = rows_.rows();
    if (rows.used(place + 1)) {
      rows.mark(place);
    } else {
      rows.clear(place);
      for (std::uint32_t i = place - 1; rows.marked(i); --i) rows.clear(i);
    }
    if (!rows_.moving() && rows.marks() > rows_.capacity() / 16) start_move(rows_.capacity());
    pay(&rows_, &owed_);
  }

  std::uint32_t find_from(std::uint32_t i, KeyId id) const {
    for (const Slot* const slots = rows_.rows().slots(); rows_.rows().used(i); ++i) {
      if (slots[i].id == id) return i;
    }
    return absent();
  }

  bool find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* places) const {
    const Slot* const slots = rows_.rows().slots();
    probe_in_rounds(
        count,
        [&](std::uint32_t i) {
          places[i] = rows_.home(hash_of_id(ids[i]));
          prefetch_for_write(slots + places[i]);
        },
        [&](std::uint32_t i) {
          const std::uint64_t held = slots[places[i]].id.low;
          const bool goes_on = (held != ids[i].low) & (held != 0);
          places[i] += static_cast<std::uint32_t>(goes_on);
          prefetch_for_write(slots + places[i]);
          return goes_on;
        });
    bool has_all = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const KeyId held = slots[places[i]].id;
      if (held.low == ids[i].low && held.high == ids[i].high) [[likely]]
        continue;
      places[i] = find_from(places[i], ids[i]);
      has_all &= places[i] != absent();
    }
    return has_all;
  }

  ProbedRows<Rows> rows_;
  std::size_t size_ = 0;
  std::uint32_t owed_ = 0;
};

using ShiftTable = SlotTable<RecordRows>;
using MarkTable = SlotTable<MarkedRows>;

// Entries of an index: the hash of a record's id, and the record's number.
class IndexRows {
 public:
  using Row = std::uint64_t;

  explicit IndexRows(std::size_t rows_max) : entries_(rows_max) {}

  static Row entry(std::uint32_t hash, std::uint32_t number) { return Row{hash} << 32 | number; }
  static std::uint32_t number_of(Row row) { return static_cast<std::uint32_t>(row); }

  bool used(std::uint32_t i) const { return entries_[i] != 0; }
  bool occupied(std::uint32_t i) const { return used(i); }
  std::uint32_t hash(std::uint32_t i) const { return hash_of(entries_[i]); }
  static std::uint32_t hash_of(Row row) { return static_cast<std::uint32_t>(row >> 32); }
  Row take(std::uint32_t i) const { return entries_[i]; }
  void populate(std::size_t begin, std::size_t end) { entries_.populate(begin, end); }
  void put(std::uint32_t i, Row row) { entries_[i] = row; }
  void move(std::uint32_t to, std::uint32_t from) { entries_[to] = entries_[from]; }
  void clear(std::uint32_t i) { entries_[i] = 0; }

  const Row* entries() const { return entries_.data(); }

 private:
  ReservedArray<Row> entries_;
};

// Records that never move, and an index of their numbers. Number 0 is the absent record. Only the index moves when the
// table grows, and it needs no record for that. kFull: the percentage of the index that is full when it grows.
template <std::size_t kFull>
class NumberTable {
 public:
  static constexpr const char* kName = kFull == 80 ? "numbers80" : "numbers60";
  static constexpr bool kSliced = true;

  NumberTable(std::size_t records, std::size_t records_max)
      : index_(capacity_for(records, kFull), rows_for(records_max, kFull)),
        records_(records_max + 1),
        besides_(records_max + 1) {}

  static constexpr std::uint32_t absent() { return 0; }
  std::uint32_t find(KeyId id) const { return find_from(index_.home(hash_of_id(id)), id); }
  bool find_all(std::span<const KeyId> ids, std::uint32_t* places) const {
    return find_in_chunks(ids, places, [this](const KeyId* chunk, std::uint32_t count, std::uint32_t* of_chunk) {
      return find_chunk(chunk, count, of_chunk);
    });
  }
  void prefetch(std::uint32_t place) const { prefetch_for_write(records_.data() + place); }
  Slot& operator[](std::uint32_t place) { return records_[place]; }
  std::uint32_t key_ref(std::uint32_t place) const { return besides_[place].key_ref; }

  std::uint32_t insert(KeyId id, std::uint32_t key_ref) {
    if (size_ == records_of(index_.capacity(), kFull)) start_growth();
    pay(&index_, &owed_);
    ++size_;
    std::uint32_t number = free_;
    if (number != 0) {
      free_ = static_cast<std::uint32_t>(records_[number].cell.word);
    } else {
      number = ++numbers_;
    }
    records_[number] = {id, {}};
    besides_[number] = {key_ref, 0};
    index_.place(IndexRows::entry(hash_of_id(id), number));
    return number;
  }

  // The word of a record that is free is the next number that is free.
  void erase(std::uint32_t place) {
    --size_;
    const std::uint32_t hash = hash_of_id(records_[place].id);
    std::uint32_t i = index_.home(hash);
    while (IndexRows::number_of(index_.rows().entries()[i]) != place) ++i;
    index_.erase_shifting(i);
    records_[place] = {{}, {free_, 0}};
    besides_[place] = {};
    free_ = place;
  }

  void populate_growth() { index_.populate(next_capacity(index_.capacity())); }
  void start_growth() {
    while (index_.moving()) index_.move_some(kBurstRows);
    index_.start_move(next_capacity(index_.capacity()));
    owed_ = 0;
  }
  bool moving() const { return index_.moving(); }
  std::uint32_t not_moved() const { return index_.not_moved(); }
  void move_some(std::uint32_t rows) { index_.move_some(rows); }
  std::size_t size() const { return size_; }
  std::uint32_t capacity() const { return index_.capacity(); }
  template <class F>
  void for_each(const F& f) const {
    for (std::uint32_t i = 1; i <= numbers_; ++i) {
      if (records_[i].id != KeyId{}) f(records_[i]);
    }
  }

 private:
  std::uint32_t find_from(std::uint32_t i, KeyId id) const {
    for (const IndexRows& index = index_.rows(); index.used(i); ++i) {
      if (index.hash(i) != hash_of_id(id)) continue;
      const std::uint32_t number = IndexRows::number_of(index.entries()[i]);
      if (records_[number].id == id) return number;
    }
    return absent();
  }

  bool find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* places) const {
    std::array<std::uint32_t, kChunkIds> at;  // entries
    const IndexRows::Row* const entries = index_.rows().entries();
    const Slot* const records = records_.data();
    probe_in_rounds(
        count,
        [&](std::uint32_t i) {
          at[i] = index_.home(hash_of_id(ids[i]));
          prefetch_for_read(entries + at[i]);
        },
        [&](std::uint32_t i) {
          const IndexRows::Row held = entries[at[i]];
          const bool goes_on = (IndexRows::hash_of(held) != hash_of_id(ids[i])) & (held != 0);
          at[i] += static_cast<std::uint32_t>(goes_on);
          prefetch_for_read(entries + at[i]);
          return goes_on;
        });
    for (std::uint32_t i = 0; i < count; ++i) {
      places[i] = IndexRows::number_of(entries[at[i]]);
      prefetch_for_write(records + places[i]);
    }
    bool has_all = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const KeyId held = records[places[i]].id;
      if (held.low == ids[i].low && held.high == ids[i].high) [[likely]]
        continue;
      places[i] = find_from(at[i], ids[i]);
      has_all &= places[i] != absent();
    }
    return has_all;
  }

  ProbedRows<IndexRows> index_;
  ReservedArray<Slot> records_;
  ReservedArray<Beside> besides_;
  std::size_t size_ = 0;
  std::uint32_t numbers_ = 0;  // those that were ever given
  std::uint32_t free_ = 0;     // the first number of the list of free ones; 0: none
  std::uint32_t owed_ = 0;
};

}  // namespace kilokv::bench
