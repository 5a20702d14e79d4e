#include "engine/exec/collect/bookkeeping.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {

namespace {

// Transactions. The columns of a run stay in the nearest cache. To look at a shorter run as a whole takes more time
// than it saves.
constexpr std::uint32_t kRunMax = 128, kRunMin = 4;

// Whether each of these bytes is `wanted`.
bool all_are(std::uint8_t wanted, const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t differs = 0;
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= count; i += sizeof(std::uint64_t)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes + i, sizeof(eight));
    differs |= eight ^ wanted * std::uint64_t{0x0101010101010101};
  }
  for (; i < count; ++i) differs |= std::uint64_t{bytes[i]} ^ wanted;
  return differs == 0;
}

}  // namespace

// A part of the writes of a batch as they go to the log. The columns have room for one write of each operation, and get
// more room for keys and values where that is not enough.
//
// Keys that follow each other in the columns of the batch do so in the log, too, and are copied as one block.
class Bookkeeping::Log {
 public:
  Log(const BatchWrites& writes, const Place& begin, WriteColumns* collected)
      : columns_(*writes.columns), results_(*writes.results), collected_(collected), at_(begin) {}

  void add(std::uint32_t rank, std::uint32_t key, Cell cell) {
    if (key != next_key_) begin_block(key);
    next_key_ = key + 1;
    const bool holds_bytes = type_of(cell.tag) == ValueType::bytes;
    put(rank, cell.tag, holds_bytes ? 0 : static_cast<std::int64_t>(cell.word), columns_.key_end[key] + shift_);
    if (holds_bytes) add_bytes(cell);
  }
  // The pairs that DELETE_RANGE number `range` has deleted.
  void add_deleted(std::uint32_t rank, std::uint32_t range, Tag tag) {
    end_block();
    for (std::uint32_t i = results_.range_begin[range]; i < results_.range_end[range]; ++i) {
      append(results_.pair_key(i));
      put(rank, tag, 0, static_cast<std::uint32_t>(at_.key_bytes));
    }
  }
  // The operations [begin, end) of the transactions [first, last), in order. Each of them has written an integer, and
  // they name the keys from `key` on in order.
  void add_all(std::uint32_t first, std::uint32_t last, std::uint32_t begin, std::uint32_t end, std::uint32_t key) {
    if (key != next_key_) begin_block(key);
    const std::uint32_t count = end - begin;
    next_key_ = key + count;
    std::uint32_t* rank = collected_->rank.data() + at_.writes;
    for (std::uint32_t t = first, i = begin; t < last; ++t) {
      for (; i < columns_.else_end[t]; ++i) *rank++ = results_.rank[t];
    }
    std::memset(collected_->type.data() + at_.writes, static_cast<int>(ValueType::integer), count);
    std::int64_t* const word = collected_->word.data() + at_.writes;
    const Cell* const cells = results_.op_cell.data() + begin;
    for (std::uint32_t i = 0; i < count; ++i) word[i] = static_cast<std::int64_t>(cells[i].word);
    std::uint32_t* const key_end = collected_->key_end.data() + at_.writes;
    const std::uint32_t* const end_of_key = columns_.key_end.data() + key;
    const std::uint32_t shift = shift_;
    for (std::uint32_t i = 0; i < count; ++i) key_end[i] = end_of_key[i] + shift;
    at_.writes += count;
  }
  // Where the part ends.
  const Place& end() {
    end_block();
    return at_;
  }

 private:
  void put(std::uint32_t rank, Tag tag, std::int64_t word, std::uint32_t key_end) {
    collected_->rank[at_.writes] = rank;
    collected_->type[at_.writes] = static_cast<std::uint8_t>(type_of(tag));
    collected_->word[at_.writes] = word;
    collected_->key_end[at_.writes++] = key_end;
  }
  void add_bytes(Cell cell) {
    const std::string_view bytes = BlobStore::bytes(cell.word);
    make_room(at_.value_bytes + bytes.size(), &collected_->value_bytes);
    make_room(at_.values + 1, &collected_->value_end);
    std::memcpy(collected_->value_bytes.data() + at_.value_bytes, bytes.data(), bytes.size());
    at_.value_bytes += bytes.size();
    collected_->value_end[at_.values++] = static_cast<std::uint32_t>(at_.value_bytes);
  }
  void begin_block(std::uint32_t key) {
    end_block();
    block_begin_ = key == 0 ? 0 : columns_.key_end[key - 1];
    shift_ = static_cast<std::uint32_t>(at_.key_bytes) - block_begin_;
  }
  void end_block() {
    if (next_key_ == kNone) return;
    append({columns_.key_bytes.data() + block_begin_, columns_.key_end[next_key_ - 1] - block_begin_});
    next_key_ = kNone;
  }
  void append(std::string_view keys) {
    make_room(at_.key_bytes + keys.size(), &collected_->key_bytes);
    std::memcpy(collected_->key_bytes.data() + at_.key_bytes, keys.data(), keys.size());
    at_.key_bytes += keys.size();
  }

  // A key or a value may be in the log more often than in the columns of the batch.
  template <class T>
  static void make_room(std::size_t size, Column<T>* column) {
    if (size > column->size()) column->resize(2 * size);
  }

  const TransactionColumns& columns_;
  const BatchResults& results_;
  WriteColumns* const collected_;
  Place at_;
  // The block ends before this key; kNone: there is none. What the end of a key is more in the log than in the columns
  // of the batch. Where the block begins in these columns.
  std::uint32_t next_key_ = kNone, shift_ = 0, block_begin_ = 0;
};

// The writes of the transactions [first, last), if each operation of them has written and they name keys in order. All
// are of then-lists. Empty: this is not so. Requires: each has committed, and has written.
Bookkeeping::WriteRun Bookkeeping::run_of(std::uint32_t first, std::uint32_t last) const {
  const TransactionColumns& columns = *writes_.columns;
  const BatchResults& results = *writes_.results;
  const std::uint32_t begin = columns.then_begin(first), end = columns.else_end[last - 1];
  if (begin == end || !RecordStore::is_usual(writes_.before[begin], results.op_cell[begin])) return {};
  if (!all_are(BatchResults::kWrote, results.op_flags.data() + begin, end - begin)) return {};
  bool has_else = false;
  for (std::uint32_t t = first; t < last; ++t) has_else |= columns.then_end[t] != columns.else_end[t];
  const std::uint32_t key = columns.op_key[begin];
  const std::uint32_t* const key_of = columns.op_key.data() + begin;
  bool in_order = true;
  for (std::uint32_t i = 0; i < end - begin; ++i) in_order &= key_of[i] == key + i;
  if (has_else || !in_order) return {};
  return {begin, end, key};
}

// Keeps the books of the transactions [first, last) if they are of the usual kind: each operation has written an
// integer over an integer, and the operations name keys in order. Without a branch for each write, this takes a third
// of the time. False: they are not, and nothing was done. Requires: each has committed, and has written.
template <bool kCollects, bool kNotes, bool kHashes>
bool Bookkeeping::keep_usual(std::uint32_t first, std::uint32_t last, Part* part, Log* log) {
  const TransactionColumns& columns = *writes_.columns;
  const BatchResults& results = *writes_.results;
  const auto [begin, end, key] = run_of(first, last);
  if (begin == end) return false;
  const Cell* const before_of = writes_.before + begin;
  const Cell* const after_of = results.op_cell.data() + begin;
  const KeyId* const ids = columns.key_id.data() + key;
  const Tag noted_below = make_tag(noted_below_, ValueType::absent);
  Wide hash = 0;
  Tag tags = static_cast<Tag>(ValueType::integer);
  bool has_noted = false;
  for (std::uint32_t i = 0; i < end - begin; ++i) {
    const Cell before = before_of[i], after = after_of[i];
    tags &= before.tag & after.tag;
    has_noted |= before.tag < noted_below;
    if (kHashes) hash += RecordStore::integer_change(ids[i], before, after);
  }
  static_assert((static_cast<Tag>(ValueType::absent) & static_cast<Tag>(ValueType::integer)) == 0 &&
                (static_cast<Tag>(ValueType::bytes) & static_cast<Tag>(ValueType::integer)) == 0);
  if (tags != static_cast<Tag>(ValueType::integer)) return false;
  part->hash += hash;
  for (std::uint32_t i = begin; kNotes && has_noted && i < end; ++i) {
    if (writes_.before[i].tag < noted_below) part->noted.push_back(i);
  }
  if (kCollects) log->add_all(first, last, begin, end, key);
  return true;
}

// Keeps the books of a transaction. What only rare writes need is left to settle(), but for the hash.
template <bool kCollects, bool kNotes, bool kHashes>
void Bookkeeping::keep_any(std::uint32_t t, Part* part, Log* log) {
  const TransactionColumns& columns = *writes_.columns;
  const BatchResults& results = *writes_.results;
  const OperationRange ran = operations_run(columns, results, t);
  for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
    if ((results.op_flags[i] & BatchResults::kWrote) == 0) continue;
    const std::uint32_t key = columns.op_key[i];
    if (writes_.deletes_range(i)) {
      if (kNotes) part->rare.push_back({t, i});
      if (kCollects) log->add_deleted(results.rank[t], key, writes_.deleted_by(t).tag);
      continue;
    }
    const Cell before = writes_.before[i], after = results.op_cell[i];
    const bool is_usual = RecordStore::is_usual(before, after);
    if (kNotes && !is_usual) part->rare.push_back({t, i});
    if (kHashes) {
      const KeyId id = columns.key_id[key];
      part->hash += is_usual ? RecordStore::integer_change(id, before, after) : RecordStore::change(id, before, after);
    }
    if (kNotes && version_of(before.tag) < noted_below_) part->noted.push_back(i);
    if (kCollects) log->add(results.rank[t], key, after);
  }
}

// Calls usual(first, last) for long runs of transactions that have committed and written, in the order of the batch. If
// it returns false, and for all others that have written, calls each(t).
template <class Usual, class Each>
void Bookkeeping::for_runs(std::uint32_t begin, std::uint32_t end, const Usual& usual, const Each& each) const {
  if (!writes_.order->is_in_order()) return writes_.order->for_each(*writes_.results, begin, end, each);
  const std::uint8_t* const wrote = writes_.results->wrote.data();
  const std::uint8_t* const outcome = writes_.results->outcome.data();
  for (std::uint32_t first = begin, last = begin; first < end; first = last) {
    const std::uint32_t run_end = std::min(first + kRunMax, end);
    while (last < run_end && wrote[last] != 0 && outcome[last] == static_cast<std::uint8_t>(Outcome::committed)) ++last;
    if (last == first) {
      if (wrote[last] != 0) each(last);
      ++last;
    } else if (last - first < kRunMin || !usual(first, last)) {
      for (std::uint32_t t = first; t < last; ++t) each(t);
    }
  }
}

template <bool kCollects, bool kNotes, bool kHashes>
void Bookkeeping::walk(std::uint32_t begin, std::uint32_t end, Part* part, Log* log) {
  for_runs(
      begin, end,
      [&](std::uint32_t first, std::uint32_t last) {
        return keep_usual<kCollects, kNotes, kHashes>(first, last, part, log);
      },
      [&](std::uint32_t t) { keep_any<kCollects, kNotes, kHashes>(t, part, log); });
}

// Accounts for what walk() has found. It is all in the order of the writes.
void Bookkeeping::settle(bool summarized, RecordStore* store) {
  const TransactionColumns& columns = *writes_.columns;
  const BatchResults& results = *writes_.results;
  for (const std::uint32_t i : parts_[0].noted) {
    store->note(columns.key_id[columns.op_key[i]], version_of(writes_.before[i].tag));
  }
  for (const auto [t, i] : parts_[0].rare) {
    const std::uint32_t at = columns.op_key[i];
    if (writes_.deletes_range(i)) {
      settle_deleted(t, at, summarized, store);
    } else {
      store->settle_rare(writes_.slot_of_key[at], writes_.before[i], results.op_cell[i], writes_.header.number,
                         summarized);
    }
  }
  store->add_to_hash(parts_[0].hash);
  store->end_batch(results.next_version - 1, summarized);
}

// The pairs that DELETE_RANGE number `range` of transaction t has deleted.
void Bookkeeping::settle_deleted(std::uint32_t t, std::uint32_t range, bool summarized, RecordStore* store) {
  const BatchResults& results = *writes_.results;
  const Cell after = writes_.deleted_by(t);
  for (std::uint32_t pair = results.range_begin[range]; pair < results.range_end[range]; ++pair) {
    const std::uint32_t slot = writes_.slot_of_pair[pair];
    const Cell before = results.pair_cell[pair];
    const KeyId id = store->table()[slot].id;
    parts_[0].hash += RecordStore::change(id, before, after);
    if (version_of(before.tag) < noted_below_) store->note(id, version_of(before.tag));
    store->settle_rare(slot, before, after, writes_.header.number, summarized);
  }
}

void Bookkeeping::resize(const Place& size, WriteColumns* collected) {
  collected->rank.resize(size.writes);
  collected->type.resize(size.writes);
  collected->word.resize(size.writes);
  collected->key_end.resize(size.writes);
  collected->key_bytes.resize(size.key_bytes);
  collected->value_end.resize(size.values);
  collected->value_bytes.resize(size.value_bytes);
}

void Bookkeeping::begin(const BatchWrites& writes, const RecordStore& store, WriteColumns* collected) {
  writes_ = writes;
  collected_ = collected;
  noted_below_ = store.noted_below();
  parts_[0].clear();
  const TransactionColumns& columns = *writes.columns;
  const BatchResults& results = *writes.results;
  resize({columns.op_kind.size() + results.pair_cell.size(), columns.key_bytes.size() + results.pair_key_bytes.size(),
          columns.value_end.size(), columns.value_bytes.size()},
         collected);
}

void Bookkeeping::follow(std::uint32_t first, std::uint32_t last, StageClock* clock) {
  clock->enter(BatchStage::collect);
  Part* const part = parts_.data();
  Log log(writes_, part->place, collected_);
  if (!clock->measures()) {
    walk<true, true, true>(first, last, part, &log);
  } else {
    walk<true, false, false>(first, last, part, &log);
    clock->enter(BatchStage::hash);
    walk<false, false, true>(first, last, part, nullptr);
    clock->enter(BatchStage::settle);
    walk<false, true, false>(first, last, part, nullptr);
  }
  part->place = log.end();
}

void Bookkeeping::end(bool summarized, RecordStore* store) {
  resize(parts_[0].place, collected_);
  settle(summarized, store);
}

// What the places [first, last) take in the log.
Bookkeeping::Place Bookkeeping::size_of(std::uint32_t first, std::uint32_t last) const {
  const TransactionColumns& columns = *writes_.columns;
  const BatchResults& results = *writes_.results;
  Place size;
  const auto begin_of_key = [&](std::uint32_t key) { return key == 0 ? 0 : columns.key_end[key - 1]; };
  const auto add_run = [&](std::uint32_t run_first, std::uint32_t run_last) {
    const auto [begin, end, key] = run_of(run_first, run_last);
    if (begin == end) return false;
    Tag tags = static_cast<Tag>(ValueType::integer);
    for (std::uint32_t i = begin; i < end; ++i) tags &= results.op_cell[i].tag;
    if (tags != static_cast<Tag>(ValueType::integer)) return false;
    size.writes += end - begin;
    size.key_bytes += columns.key_end[key + (end - begin) - 1] - begin_of_key(key);
    return true;
  };
  const auto add = [&](std::uint32_t t) {
    const OperationRange ran = operations_run(columns, results, t);
    for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
      if ((results.op_flags[i] & BatchResults::kWrote) == 0) continue;
      const std::uint32_t key = columns.op_key[i];
      ++size.writes;
      size.key_bytes += columns.key_end[key] - begin_of_key(key);
      const Cell after = results.op_cell[i];
      if (type_of(after.tag) != ValueType::bytes) continue;
      ++size.values;
      size.value_bytes += BlobStore::bytes(after.word).size();
    }
  };
  for_runs(first, last, add_run, add);
  return size;
}

Bookkeeping::Share Bookkeeping::share_of(std::uint32_t share, std::uint32_t shares) const {
  const std::uint64_t places = writes_.order->places(*writes_.results);
  return {static_cast<std::uint32_t>(places * share / shares),
          static_cast<std::uint32_t>(places * (share + 1) / shares)};
}

void Bookkeeping::begin_shares(const BatchWrites& writes, const RecordStore& store, std::uint32_t shares,
                               WriteColumns* collected) {
  begin(writes, store, collected);
  if (parts_.size() < shares) parts_.resize(shares);
}

void Bookkeeping::count_share(std::uint32_t share, std::uint32_t shares) {
  const Share own = share_of(share, shares);
  parts_[share].clear();
  parts_[share].place = size_of(own.first, own.last);
}

void Bookkeeping::place_shares(std::uint32_t shares) {
  Place at;
  for (std::uint32_t i = 0; i < shares; ++i) {
    const Place size = std::exchange(parts_[i].place, at);
    at.writes += size.writes;
    at.key_bytes += size.key_bytes;
    at.values += size.values;
    at.value_bytes += size.value_bytes;
  }
  resize(at, collected_);
}

void Bookkeeping::fill_share(std::uint32_t share, std::uint32_t shares) {
  const Share own = share_of(share, shares);
  Part* const part = &parts_[share];
  Log log(writes_, part->place, collected_);
  walk<true, true, true>(own.first, own.last, part, &log);
  log.end();
}

void Bookkeeping::end_shares(RecordStore* store) {
  Part& all = parts_[0];
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    all.hash += parts_[i].hash;
    all.noted.insert(all.noted.end(), parts_[i].noted.begin(), parts_[i].noted.end());
    all.rare.insert(all.rare.end(), parts_[i].rare.begin(), parts_[i].rare.end());
    parts_[i].clear();
  }
  settle(false, store);
}

std::size_t Bookkeeping::memory_bytes() const {
  std::size_t bytes = parts_.capacity() * sizeof(Part);
  for (const Part& part : parts_)
    bytes += part.noted.capacity() * sizeof(std::uint32_t) + part.rare.capacity() * sizeof(RareWrite);
  return bytes;
}

void Bookkeeping::keep(const BatchWrites& writes, bool summarized, StageClock* clock, RecordStore* store,
                       WriteColumns* collected) {
  clock->enter(BatchStage::collect);
  begin(writes, *store, collected);
  follow(0, writes.order->places(*writes.results), clock);
  end(summarized, store);
}

}  // namespace kilokv::engine
