// A record table that a whole grid works on: it finds, inserts and removes many ids at once. A device keeps this table.
// The host keeps another one (record_table.hpp). The two share Slot and the home of an id.
//
// Open addressing with linear probing. Items take slots in rounds, without locks or spinning. In each round:
//   1. Each item that has come to an empty slot enters its claim there. A barrier follows.
//   2. The highest claim gets the slot, and its item writes the id. A barrier follows.
//   3. The other items look again.
// If two items name the same id, both claim a slot; in the next round the second item finds the id that the first one
// wrote. Each round fills every slot that was claimed. So there are few rounds, and they end.
//
// A run can also number the records of a batch, and scatter_cells() writes them back after the batch.
//
// Invariants: the id of an empty slot is all zero bits; its other words hold claims of this round or of earlier ones.
// Slots never move. A removed record leaves kRemovedWord, and only a new table gets rid of it.
//
// Thread safety: each thread of the grid makes one BulkRun and calls run() once. Nothing else may touch the table
// during that time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/section.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/table/cell_digest.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::engine {

inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFFu;
inline constexpr std::uint64_t kRemovedWord = ~std::uint64_t{0};  // both words of a removed record's id

enum class BulkAction : std::uint8_t {
  find = 0,    // reads the record's cell; without a record the cell is all zero
  insert = 1,  // as find, but adds the record, all zero, if there is none
  put = 2,     // as insert, then writes the cell
  remove = 3,  // removes the record, if there is one, after all other actions
};

// Words that all threads share; all zero at the start.
enum BulkWord : std::uint32_t {
  kBulkSettled,   // inserting items that have their slot, or that found no room
  kBulkInserted,  // new records
  kBulkRemoved,   // records that were removed
  kBulkFull,      // items that found no room: they have no slot, and the effects of the other items stay
  kBulkRounds,    // out
  kBulkDigest,    // out: sum of cell_digest() of all items that find or insert
  kBulkChange,    // out: what scatter_cells() changed (change_digest())
  kBulkWords,
};

// The numbers of items, of the items whose cells belong to the run (0: the cells belong to somebody else), and of heads
// (heads_for(), or 0).
struct BulkShape {
  std::size_t items, own_cells, heads = 0;
};

// The number of heads with which the items of a run are numbered.
constexpr std::size_t heads_for(std::size_t items) { return std::bit_ceil(2 * items); }

// c slots and i items. An id may occur more than once. An id that is put occurs in one put only; it may occur in
// removals too.
//
// With heads, all items find, and the run also finds out which items have the same id. Then the cell of an item goes to
// the place of its record, once for each id. A record is the first item that has its id, unless somebody else has
// numbered the records.
template <class Space>
struct BulkArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<std::uint64_t> slots = {};  // [4c] id low, id high, word, tag
  std::uint32_t capacity = 0;         // c
  std::uint32_t size = 0;             // i
  std::uint32_t inserting = 0;        // items that insert or put
  std::uint32_t removing = 0;         // items that remove
  std::uint32_t first_epoch = 0;      // this run's rounds have the epochs after this one; each epoch is below 2^32
  std::uint32_t heads_mask = 0;       // the number of heads - 1
  bool numbers_records = false;       // fills record_of
  Pointer<const KeyId> ids = {};      // [i]
  Pointer<const std::uint8_t> actions = {};  // [i] BulkAction; null: all items find
  Pointer<std::uint32_t> slot_of = {};       // [i] out; kNoSlot: the item has no slot
  Pointer<std::uint8_t> pending = {};        // [i] scratch
  // [heads] a hash table from id to (size - the first item with the id); zero at the start
  Pointer<std::uint64_t> heads = {};
  Pointer<std::uint32_t> first_of = {};   // [i] out, with heads: the first item with the same id
  Pointer<std::uint32_t> record_of = {};  // [i] with heads: in or out
  Pointer<std::uint64_t> cells = {};      // word and tag of item or record; in for put, out for find and insert
  Pointer<std::uint64_t> words = {};      // [kBulkWords]

  // Lists the columns (base/section.hpp), except for the slots, which belong to the table.
  template <class F>
  void for_columns(const BulkShape& shape, const F& column) {
    column(ids, shape.items, Section::sent);
    column(cells, 2 * shape.own_cells, Section::sent);
    column(actions, shape.heads > 0 ? 0 : shape.items, Section::sent);
    column(slot_of, shape.items, Section::scratch);
    column(pending, shape.items, Section::scratch);
    column(heads, shape.heads, Section::zeroed);
    column(first_of, shape.heads > 0 ? shape.items : 0, Section::scratch);
    column(words, kBulkWords, Section::returned);
  }
};

template <Platform P>
class BulkRun {
 public:
  using Space = typename P::Space;
  KILOKV_HOST_DEVICE BulkRun(P& platform, const BulkArguments<Space>& arguments) : p_(platform), a_(arguments) {}

  KILOKV_HOST_DEVICE void run() {
    if (a_.heads != nullptr) number_all();
    insert_all();
    std::uint64_t digest = 0;
    for_own([&](std::uint32_t i) { digest += read_or_write(i); });
    digest = p_.sum(digest);
    if (p_.lane() == 0 && digest != 0) p_.fetch_add(a_.words + kBulkDigest, digest, Order::relaxed, Scope::device);
    if (a_.removing == 0) return;
    p_.grid_barrier();
    for_own([&](std::uint32_t i) { remove(i); });
  }

 private:
  template <class F>
  KILOKV_HOST_DEVICE void for_own(const F& f) const {
    for (std::uint32_t i = p_.thread(); i < a_.size; i += p_.threads()) f(i);
  }
  KILOKV_HOST_DEVICE BulkAction action(std::uint32_t i) const {
    if (a_.actions == nullptr) return BulkAction::find;
    return static_cast<BulkAction>(static_cast<std::uint8_t>(a_.actions[i]));
  }
  KILOKV_HOST_DEVICE bool inserts(std::uint32_t i) const {
    return action(i) == BulkAction::insert || action(i) == BulkAction::put;
  }
  KILOKV_HOST_DEVICE auto slot(std::uint32_t at) const { return a_.slots + 4 * static_cast<std::uint64_t>(at); }
  KILOKV_HOST_DEVICE std::uint32_t home(KeyId id) const { return scaled_home(id.high, a_.capacity); }

  // Looks for the id from slot `at` on. Returns the id's slot, or the first empty slot, or neither.
  struct Found {
    std::uint32_t at;
    bool is_id, is_empty;
  };
  KILOKV_HOST_DEVICE Found probe(KeyId id, std::uint32_t at) const {
    for (std::uint32_t looked = 0; looked < a_.capacity; ++looked) {
      const KeyId there{p_.get(slot(at)), p_.get(slot(at) + 1)};
      if (there == id) return {at, true, false};
      if (there == KeyId{}) return {at, false, true};
      if (++at == a_.capacity) at = 0;
    }
    return {kNoSlot, false, false};
  }

  // Each id takes a free head, which then names the first item with this id.
  KILOKV_HOST_DEVICE void number_all() {
    for_own([&](std::uint32_t i) { a_.first_of[i] = head_of(i); });
    p_.grid_barrier();
    for_own([&](std::uint32_t i) {
      const std::uint32_t head = a_.first_of[i];
      const std::uint32_t first = item_of(p_.load(a_.heads + head, Order::relaxed, Scope::device));
      a_.first_of[i] = first;
      if (a_.numbers_records) a_.record_of[i] = first;
    });
  }
  KILOKV_HOST_DEVICE std::uint64_t named(std::uint32_t i) const { return a_.size - i; }
  KILOKV_HOST_DEVICE std::uint32_t item_of(std::uint64_t named) const {
    return a_.size - static_cast<std::uint32_t>(named);
  }
  KILOKV_HOST_DEVICE std::uint32_t head_of(std::uint32_t i) {
    const KeyId id = a_.ids[i];
    for (auto at = static_cast<std::uint32_t>(id.low) & a_.heads_mask;; at = (at + 1) & a_.heads_mask) {
      const auto head = a_.heads + at;
      std::uint64_t seen = p_.load(head, Order::relaxed, Scope::device);
      if (seen == 0) seen = p_.compare_exchange(head, 0, named(i), Order::relaxed, Scope::device);
      if (seen == 0) return at;
      const KeyId there = a_.ids[item_of(seen)];
      if (!(there == id)) continue;
      if (seen < named(i)) p_.fetch_max(head, named(i), Order::relaxed, Scope::device);
      return at;
    }
  }

  KILOKV_HOST_DEVICE void insert_all() {
    for_own([&](std::uint32_t i) {
      a_.pending[i] = inserts(i) ? 1 : 0;
      a_.slot_of[i] = home(a_.ids[i]);
    });
    std::uint32_t rounds = 0;
    for (std::uint64_t settled = 0; settled < a_.inserting;) {
      const std::uint32_t epoch = a_.first_epoch + ++rounds;
      std::uint64_t now = 0;
      for_own([&](std::uint32_t i) { now += a_.pending[i] != 0 && look(i, epoch) ? 1 : 0; });
      p_.grid_barrier();
      for_own([&](std::uint32_t i) { now += a_.pending[i] != 0 && take(i, epoch) ? 1 : 0; });
      if (now > 0) p_.fetch_add(a_.words + kBulkSettled, now, Order::relaxed, Scope::device);
      p_.grid_barrier();
      settled = p_.load(a_.words + kBulkSettled, Order::relaxed, Scope::device);
    }
    if (p_.thread() == 0) p_.put(a_.words + kBulkRounds, rounds);
  }
  KILOKV_HOST_DEVICE std::uint64_t claim(std::uint32_t i, std::uint32_t epoch) const {
    return static_cast<std::uint64_t>(epoch) << 32 | i;
  }
  // Returns whether the item is settled. An item that is not settled has claimed an empty slot.
  KILOKV_HOST_DEVICE bool look(std::uint32_t i, std::uint32_t epoch) {
    const Found found = probe(a_.ids[i], a_.slot_of[i]);
    a_.slot_of[i] = found.at;
    if (found.is_empty) {
      p_.fetch_max(slot(found.at) + 2, claim(i, epoch), Order::relaxed, Scope::device);
      return false;
    }
    if (!found.is_id) p_.fetch_add(a_.words + kBulkFull, 1, Order::relaxed, Scope::device);
    a_.pending[i] = 0;
    return true;
  }
  // Returns whether the item's claim won. If so, the slot is now the item's.
  KILOKV_HOST_DEVICE bool take(std::uint32_t i, std::uint32_t epoch) {
    const auto mine = slot(a_.slot_of[i]);
    if (p_.load(mine + 2, Order::relaxed, Scope::device) != claim(i, epoch)) return false;
    const KeyId id = a_.ids[i];
    p_.put(mine, id.low);
    p_.put(mine + 1, id.high);
    p_.store(mine + 2, 0, Order::relaxed, Scope::device);
    p_.fetch_add(a_.words + kBulkInserted, 1, Order::relaxed, Scope::device);
    a_.pending[i] = 0;
    return true;
  }

  // Returns the digest of the cell that was found.
  KILOKV_HOST_DEVICE std::uint64_t read_or_write(std::uint32_t i) {
    if (!inserts(i)) {
      const Found found = probe(a_.ids[i], a_.slot_of[i]);
      a_.slot_of[i] = found.is_id ? found.at : kNoSlot;
    }
    if (action(i) == BulkAction::remove) return 0;
    const std::uint32_t at = a_.slot_of[i];
    const std::uint32_t record = a_.heads == nullptr ? i : static_cast<std::uint32_t>(a_.record_of[i]);
    const auto cell = a_.cells + 2 * static_cast<std::uint64_t>(record);
    if (at != kNoSlot && action(i) == BulkAction::put) {
      p_.put(slot(at) + 2, cell[0]);
      p_.put(slot(at) + 3, cell[1]);
      return 0;
    }
    const Cell found = at == kNoSlot ? Cell{} : Cell{p_.get(slot(at) + 2), p_.get(slot(at) + 3)};
    if (a_.heads == nullptr || a_.first_of[i] == i) {
      cell[0] = found.word;
      cell[1] = found.tag;
    }
    return cell_digest(i, found);
  }
  KILOKV_HOST_DEVICE void remove(std::uint32_t i) {
    if (action(i) != BulkAction::remove || a_.slot_of[i] == kNoSlot) return;
    const auto gone = slot(a_.slot_of[i]);
    const std::uint64_t low = p_.exchange(gone, kRemovedWord, Order::relaxed, Scope::device);
    p_.store(gone + 1, kRemovedWord, Order::relaxed, Scope::device);
    if (low != kRemovedWord) p_.fetch_add(a_.words + kBulkRemoved, 1, Order::relaxed, Scope::device);
  }

  P& p_;
  const BulkArguments<Space>& a_;
};

// Writes the cells of records to the slots that a BulkRun with heads has found for them, and adds up what this changes.
// A record without a slot changes from an empty cell.
template <Platform P>
KILOKV_HOST_DEVICE inline void scatter_cells(P& p, const BulkArguments<typename P::Space>& a) {
  std::uint64_t change = 0;
  for (std::uint32_t i = p.thread(); i < a.size; i += p.threads()) {
    if (a.first_of[i] != i) continue;
    const std::uint32_t at = a.slot_of[i];
    const auto cell = a.cells + 2 * static_cast<std::uint64_t>(static_cast<std::uint32_t>(a.record_of[i]));
    const Cell after{cell[0], cell[1]};
    Cell before{};
    if (at != kNoSlot) {
      const auto slot = a.slots + 4 * static_cast<std::uint64_t>(at);
      before = {p.get(slot + 2), p.get(slot + 3)};
      p.put(slot + 2, after.word);
      p.put(slot + 3, after.tag);
    }
    change += change_digest(a.ids[i], before, after);
  }
  change = p.sum(change);
  if (p.lane() == 0 && change != 0) p.fetch_add(a.words + kBulkChange, change, Order::relaxed, Scope::device);
}

}  // namespace kilokv::engine
