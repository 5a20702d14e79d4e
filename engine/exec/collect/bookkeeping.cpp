#include "engine/exec/collect/bookkeeping.hpp"

#include <algorithm>
#include <cstring>

#include "engine/table/blob_store.hpp"

namespace kilokv::engine {

namespace {

// Transactions. The columns of a run stay in the nearest cache.
constexpr std::uint32_t kRunMax = 128;

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

// The writes of a batch as they go to the log. The columns have the size of the worst case until end() cuts them.
//
// Keys that follow each other in the columns of the batch do so in the log, too, and are copied as one block.
class Bookkeeping::Log {
 public:
  Log(const BatchWrites& writes, WriteColumns* collected)
      : columns_(*writes.columns), results_(*writes.results), collected_(collected) {
    const std::size_t writes_max = columns_.op_kind.size() + results_.pair_cell.size();
    collected->rank.resize(writes_max);
    collected->type.resize(writes_max);
    collected->word.resize(writes_max);
    collected->key_end.resize(writes_max);
    collected->key_bytes.resize(columns_.key_bytes.size() + results_.pair_key_bytes.size());
    collected->value_end.clear();
    collected->value_bytes.clear();
  }

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
      put(rank, tag, 0, static_cast<std::uint32_t>(key_bytes_));
    }
  }
  // The operations [begin, end) of the transactions [first, last), in order. Each of them has written an integer, and
  // they name the keys from `key` on in order.
  void add_all(std::uint32_t first, std::uint32_t last, std::uint32_t begin, std::uint32_t end, std::uint32_t key) {
    if (key != next_key_) begin_block(key);
    const std::uint32_t count = end - begin;
    next_key_ = key + count;
    std::uint32_t* rank = collected_->rank.data() + size_;
    for (std::uint32_t t = first, i = begin; t < last; ++t) {
      for (; i < columns_.else_end[t]; ++i) *rank++ = results_.rank[t];
    }
    std::memset(collected_->type.data() + size_, static_cast<int>(ValueType::integer), count);
    std::int64_t* const word = collected_->word.data() + size_;
    const Cell* const cells = results_.op_cell.data() + begin;
    for (std::uint32_t i = 0; i < count; ++i) word[i] = static_cast<std::int64_t>(cells[i].word);
    std::uint32_t* const key_end = collected_->key_end.data() + size_;
    const std::uint32_t* const end_of_key = columns_.key_end.data() + key;
    const std::uint32_t shift = shift_;
    for (std::uint32_t i = 0; i < count; ++i) key_end[i] = end_of_key[i] + shift;
    size_ += count;
  }
  void end() {
    end_block();
    collected_->rank.resize(size_);
    collected_->type.resize(size_);
    collected_->word.resize(size_);
    collected_->key_end.resize(size_);
    collected_->key_bytes.resize(key_bytes_);
  }

 private:
  void put(std::uint32_t rank, Tag tag, std::int64_t word, std::uint32_t key_end) {
    collected_->rank[size_] = rank;
    collected_->type[size_] = static_cast<std::uint8_t>(type_of(tag));
    collected_->word[size_] = word;
    collected_->key_end[size_++] = key_end;
  }
  void add_bytes(Cell cell) {
    const std::string_view bytes = BlobStore::bytes(cell.word);
    collected_->value_bytes.insert(collected_->value_bytes.end(), bytes.begin(), bytes.end());
    collected_->value_end.push_back(static_cast<std::uint32_t>(collected_->value_bytes.size()));
  }
  void begin_block(std::uint32_t key) {
    end_block();
    block_begin_ = key == 0 ? 0 : columns_.key_end[key - 1];
    shift_ = static_cast<std::uint32_t>(key_bytes_) - block_begin_;
  }
  void end_block() {
    if (next_key_ == kNone) return;
    append({columns_.key_bytes.data() + block_begin_, columns_.key_end[next_key_ - 1] - block_begin_});
    next_key_ = kNone;
  }
  void append(std::string_view keys) {
    if (key_bytes_ + keys.size() > collected_->key_bytes.size()) {
      collected_->key_bytes.resize(2 * collected_->key_bytes.size() + keys.size());
    }
    std::memcpy(collected_->key_bytes.data() + key_bytes_, keys.data(), keys.size());
    key_bytes_ += keys.size();
  }

  const TransactionColumns& columns_;
  const BatchResults& results_;
  WriteColumns* const collected_;
  std::size_t size_ = 0, key_bytes_ = 0;
  // The block ends before this key; kNone: there is none. What the end of a key is more in the log than in the columns
  // of the batch. Where the block begins in these columns.
  std::uint32_t next_key_ = kNone, shift_ = 0, block_begin_ = 0;
};

// Keeps the books of the transactions [first, last) if they are of the usual kind: each operation has written an
// integer over an integer, and the operations name keys in order. Without a branch for each write, this takes a third
// of the time. False: they are not, and nothing was done. Requires: each has committed, and has written.
template <bool kCollects, bool kNotes, bool kHashes>
bool Bookkeeping::keep_usual(const BatchWrites& writes, std::uint32_t first, std::uint32_t last, Log* log) {
  const TransactionColumns& columns = *writes.columns;
  const BatchResults& results = *writes.results;
  const std::uint32_t begin = columns.then_begin(first), end = columns.else_end[last - 1];
  if (!RecordStore::is_usual(writes.before[begin], results.op_cell[begin])) return false;
  if (!all_are(BatchResults::kWrote, results.op_flags.data() + begin, end - begin)) return false;
  bool has_else = false;
  for (std::uint32_t t = first; t < last; ++t) has_else |= columns.then_end[t] != columns.else_end[t];
  const std::uint32_t key = columns.op_key[begin];
  const std::uint32_t* const key_of = columns.op_key.data() + begin;
  bool in_order = true;
  for (std::uint32_t i = 0; i < end - begin; ++i) in_order &= key_of[i] == key + i;
  if (has_else || !in_order) return false;

  const Cell* const before_of = writes.before + begin;
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
  hash_ += hash;
  for (std::uint32_t i = begin; kNotes && has_noted && i < end; ++i) {
    if (writes.before[i].tag < noted_below) noted_.push_back(i);
  }
  if (kCollects) log->add_all(first, last, begin, end, key);
  return true;
}

// Keeps the books of a transaction. What only rare writes need is left to settle(), but for the hash.
template <bool kCollects, bool kNotes, bool kHashes>
void Bookkeeping::keep_any(const BatchWrites& writes, std::uint32_t t, Log* log) {
  const TransactionColumns& columns = *writes.columns;
  const BatchResults& results = *writes.results;
  const OperationRange ran = operations_run(columns, results, t);
  bool is_rare = false;
  for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
    if ((results.op_flags[i] & BatchResults::kWrote) == 0) continue;
    const std::uint32_t key = columns.op_key[i];
    if (writes.deletes_range(i)) {
      is_rare = true;
      if (kCollects) log->add_deleted(results.rank[t], key, writes.deleted_by(t).tag);
      continue;
    }
    const Cell before = writes.before[i], after = results.op_cell[i];
    const bool is_usual = RecordStore::is_usual(before, after);
    is_rare |= !is_usual;
    if (kHashes) {
      const KeyId id = columns.key_id[key];
      hash_ += is_usual ? RecordStore::integer_change(id, before, after) : RecordStore::change(id, before, after);
    }
    if (kNotes && version_of(before.tag) < noted_below_) noted_.push_back(i);
    if (kCollects) log->add(results.rank[t], key, after);
  }
  if (kNotes && is_rare) rare_.push_back(t);
}

template <bool kCollects, bool kNotes, bool kHashes>
void Bookkeeping::walk(const BatchWrites& writes, Log* log) {
  const auto keep_one = [&](std::uint32_t t) { keep_any<kCollects, kNotes, kHashes>(writes, t, log); };
  if (!writes.order->is_in_order()) return writes.order->for_each(*writes.results, keep_one);
  const auto n = static_cast<std::uint32_t>(writes.results->wrote.size());
  const std::uint8_t* const wrote = writes.results->wrote.data();
  const std::uint8_t* const outcome = writes.results->outcome.data();
  for (std::uint32_t first = 0, last = 0; first < n; first = last) {
    const std::uint32_t end = std::min(first + kRunMax, n);
    while (last < end && wrote[last] != 0 && outcome[last] == static_cast<std::uint8_t>(Outcome::committed)) ++last;
    if (last == first) {
      if (wrote[last] != 0) keep_one(last);
      ++last;
    } else if (!keep_usual<kCollects, kNotes, kHashes>(writes, first, last, log)) {
      for (std::uint32_t t = first; t < last; ++t) keep_one(t);
    }
  }
}

// Accounts for what walk() has found. It is all in the order of the writes.
void Bookkeeping::settle(const BatchWrites& writes, bool summarized, RecordStore* store) {
  const TransactionColumns& columns = *writes.columns;
  const BatchResults& results = *writes.results;
  const BatchNumber batch = writes.header.number;
  for (const std::uint32_t i : noted_) store->note(columns.key_id[columns.op_key[i]], version_of(writes.before[i].tag));
  for (const std::uint32_t t : rare_) {
    const OperationRange ran = operations_run(columns, results, t);
    for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
      if ((results.op_flags[i] & BatchResults::kWrote) == 0) continue;
      if (writes.deletes_range(i)) {
        settle_deleted(writes, t, columns.op_key[i], summarized, store);
      } else if (!RecordStore::is_usual(writes.before[i], results.op_cell[i])) {
        const std::uint32_t slot = writes.slot_of_key[columns.op_key[i]];
        store->settle_rare(slot, writes.before[i], results.op_cell[i], batch, summarized);
      }
    }
  }
  store->end_batch(results.next_version - 1, summarized);
}

// The pairs that DELETE_RANGE number `range` of transaction t has deleted.
void Bookkeeping::settle_deleted(const BatchWrites& writes, std::uint32_t t, std::uint32_t range, bool summarized,
                                 RecordStore* store) {
  const BatchResults& results = *writes.results;
  const Cell after = writes.deleted_by(t);
  for (std::uint32_t pair = results.range_begin[range]; pair < results.range_end[range]; ++pair) {
    const std::uint32_t slot = writes.slot_of_pair[pair];
    const Cell before = results.pair_cell[pair];
    const KeyId id = store->table()[slot].id;
    hash_ += RecordStore::change(id, before, after);
    if (version_of(before.tag) < noted_below_) store->note(id, version_of(before.tag));
    store->settle_rare(slot, before, after, writes.header.number, summarized);
  }
}

void Bookkeeping::keep(const BatchWrites& writes, bool summarized, StageClock* clock, RecordStore* store,
                       WriteColumns* collected) {
  noted_below_ = store->noted_below();
  hash_ = 0;
  noted_.clear();
  rare_.clear();
  clock->enter(BatchStage::collect);
  Log log(writes, collected);
  if (!clock->measures()) {
    walk<true, true, true>(writes, &log);
  } else {
    walk<true, false, false>(writes, &log);
    clock->enter(BatchStage::hash);
    walk<false, false, true>(writes, &log);
    clock->enter(BatchStage::settle);
    walk<false, true, false>(writes, &log);
  }
  log.end();
  settle(writes, summarized, store);
  store->add_to_hash(hash_);
}

}  // namespace kilokv::engine
