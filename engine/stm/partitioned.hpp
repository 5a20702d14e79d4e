// `partitioned`: runs the specification of a batch (docs/transactions.md, section 7) on several threads of a CPU. Its
// results are those of `serial`, bit for bit. It works on the records themselves, in deterministic rounds, like
// deterministic reservations (Lu et al., "Aria", VLDB 2020; docs/papers.md, section 8). But no two threads write to one
// reservation: each record has an owner.
//
//   list    Each thread takes its positions of earlier rounds that are still undecided. It also takes tiles of the next
//           window of positions, until none is left. It lists every use of a record, by the partition of the record.
//   decide  Each partition has one owner. The owner goes through the uses of its records, and blocks the transactions
//           that may not run in this round: an older undecided transaction may write what they use, or may use what
//           they write.
//   run     Each thread runs its transactions that nobody has blocked, in place.
//
// There is one barrier after `list` and one after `decide`, and none after `run`.
//
// Deviations from Aria: a transaction that must wait stays in the batch, the order is that of the batch, and a writer
// waits for older readers, as in `ordered` (stm/ordered.hpp). Reservations are exact, because the owner has a table of
// the records of one partition in its nearest cache. No two records share a reservation.
//
// ADDs. An ADD is an adder if its delta is a constant, and if its transaction uses the record only once. Adders of one
// record may run in one round, if the record holds no bytes, and if its value plus the sum of their deltas, each by its
// absolute value, cannot overflow. The owner then adds the deltas after the round, in the order of the batch. So no
// record needs an atomic addition. If one of these adders is blocked by another record of its transaction, the younger
// ones run before it. What each of them has replaced and has left is then put right after the first pass
// (settle_inverted()).
//
// Where rounds decide little, because many transactions wait for each other, the first thread runs the rest of the
// first pass alone. It also runs all other passes (the caller does this, with stm/serial.hpp). So there is no batch
// that never ends: a batch has at most as many rounds as windows, and a few more.
//
// Thread safety: each thread makes one PartitionedRun and calls run() once. Nothing else may touch the memory of the
// batch meanwhile. The vectors keep their capacity, so that the steady state allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/serial.hpp"
#include "engine/txn/interpreter.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// The rules. A mutation (docs/papers.md, section 1) is this struct with one rule taken away.
struct PartitionedRules {
  static constexpr bool kOlderReader = true;          // a writer waits for older readers
  static constexpr bool kOlderWriter = true;          // everybody waits for older writers
  static constexpr bool kReadersWaitForAdds = true;   // readers wait for older adders
  static constexpr bool kBoundsDeltas = true;         // adders of a record that could overflow wait for each other
  static constexpr bool kBarrierBeforeDecide = true;  // all have listed before any owner decides
  static constexpr bool kBarrierBeforeRun = true;     // all owners have decided before any transaction runs
  static constexpr bool kTwoSets = true;              // marks of a round stay while the next one is decided
  static constexpr bool kSettles = true;  // what adders have replaced and left is put right if younger ones ran first
};

struct PartitionedTuning {
  std::uint32_t window = 16384, tile = 64;  // positions
  std::uint32_t partition_bits = 7;         // there are 2^partition_bits partitions
  // If a record has fewer adders in a round, they wait for each other.
  std::uint32_t adders_min = 4;
  // Smaller batches run as `serial` does: to start the threads would take longer.
  std::uint32_t transactions_min = 256;
  // If more transactions than this stay undecided after a round, the first thread runs the rest of the first pass
  // alone.
  std::uint32_t left_max = 8192;
  // After the last window, it also does so if at most `few` are undecided, and in any case after `more_rounds` rounds.
  std::uint32_t few = 64, more_rounds = 4;
};

// The largest number of transactions in a batch: a position and a role share a word.
inline constexpr std::size_t kPartitionedTransactionsMax = std::size_t{1} << 30;

enum class UseRole : std::uint32_t { read, write, add };

// The use of a record by a transaction. A transaction that uses a record several times has one use of it in this list.
struct RecordUse {
  std::uint32_t slot;
  std::uint32_t user;  // position << 2 | role

  static std::uint32_t user_of(std::uint32_t position, UseRole role) {
    return position << 2 | static_cast<std::uint32_t>(role);
  }
};

// What an owner knows of a record in one round.
struct RecordUses {
  std::uint32_t slot, epoch;
  std::uint32_t oldest[3];  // position, by UseRole; kNone: there is none
  std::uint32_t adders;
  std::uint32_t first_user;  // who was listed first; kNone: already among PartitionedThread::contended
};

// A use of a record that several transactions use in this round.
struct ContendedUse {
  std::uint32_t entry, user;
};

// An adder whose delta the owner adds after the round.
struct DeferredAdd {
  std::uint32_t slot, position, operation;
};

// A record that settle_inverted() goes through.
struct InvertedRecord {
  std::uint32_t slot, younger;  // the write that follows, in the order of the batch; kNone: there is none
  std::uint64_t word;           // the record's value before that write
  Tag oldest_tag, newest_tag;   // the oldest that a write has replaced, and what the last write has left
};

// The positions [begin, end).
struct PositionRange {
  std::uint32_t begin, end;
};

// What one thread has of a batch. The vectors keep their memory.
struct alignas(64) PartitionedThread {
  std::vector<RecordUse> listed, uses;                           // in the order of the positions, and by partition
  std::vector<std::uint32_t> place_of_partition, partition_end;  // in `uses`
  std::vector<PositionRange> tiles[2];                           // that the thread has listed, for two rounds in turn
  std::vector<std::uint32_t> left, postponed;  // positions that are undecided, and that wait for the next pass
  std::vector<RecordUses> table;
  std::vector<ContendedUse> contended;
  std::uint32_t epoch = 0;
  std::vector<DeferredAdd> deferred;
  std::vector<std::uint32_t> inverted;  // slots of records to which a younger adder came before an older one
  std::vector<InvertedRecord> settled;
  // The next tile to list of the share that is meant for this thread, and the next one to run of `tiles`. Of two rounds
  // in turn: one counts, and one is set back to zero.
  alignas(64) std::uint64_t next_tile[2] = {}, next_to_run[2] = {};
  // Told to the other threads, with a barrier between.
  std::uint32_t left_count = 0, deferred_count = 0;
  std::uint64_t decided = 0, listed_count = 0, chained_adds = 0, overtaken = 0, alone = 0, rounds = 0;
};

// What all threads share. Plain pointers.
struct PartitionedBatch {
  BatchView batch;
  ResultView results;
  const std::uint32_t* order = nullptr;        // position -> transaction; null: both are equal
  const std::uint32_t* slot_of_key = nullptr;  // [k]
  std::uint32_t absent_slot = 0;               // of keys that are absent and only read
  std::uint8_t* blocked = nullptr;  // [2n] for each position: the marks of the last rounds in which an owner blocked it
  std::uint8_t* defers = nullptr;   // [m] 1: the owner adds the delta
  Cell* before = nullptr;           // [m] what each write replaced
  PartitionedThread* threads = nullptr;  // [thread_count]
  std::uint32_t thread_count = 0;
  PartitionedTuning tuning;
  std::uint64_t delta_max = 0;  // a larger ADD is no adder
};

// Access: what run_transaction() needs, and:
//   Cell cell(slot), void put(slot, Cell)  a record by its slot
//   void defer(bool)                       whether defers() may say yes from now on
// It is copied, so that its pointers stay in registers.
template <Platform P, class Access, class Rules = PartitionedRules>
class PartitionedRun {
 public:
  PartitionedRun(P& platform, const PartitionedBatch& batch, const Access& access)
      : p_(platform), a_(batch), access_(access), own_(batch.threads[platform.thread()]), size_(batch.batch.size) {}

  // Runs the first pass. Fills every column of the results. The positions that wait for the next pass are then in
  // PartitionedThread::postponed, of all threads.
  void run() {
    begin();
    std::uint32_t first = 0, more_rounds = 0;
    while (true) {
      const std::uint32_t last = first + std::min(a_.tuning.window, size_ - first);
      list({first, last});
      if (Rules::kBarrierBeforeDecide) p_.grid_barrier();
      const std::uint32_t left = sum_of(&PartitionedThread::left_count);
      add_deferred();
      if (left > a_.tuning.left_max ||
          (first == size_ && (left <= a_.tuning.few || more_rounds++ == a_.tuning.more_rounds)))
        break;
      ++round_;
      decide();
      if (Rules::kBarrierBeforeRun) p_.grid_barrier();
      run_listed();
      first = last;
    }
    p_.grid_barrier();
    own_.decided = decided_;
    if (p_.thread() != 0) return;
    own_.rounds = round_;
    run_alone(first);
    if (Rules::kSettles) settle_inverted();
  }

 private:
  // The uses of a larger transaction are not merged, and it has no adders: merging compares all pairs.
  static constexpr std::uint32_t kUsesMax = 64;
  static constexpr std::uint32_t kHash = 0x9E3779B1u;  // Fibonacci hashing

  void begin() {
    own_.left.clear();
    own_.postponed.clear();
    own_.deferred.clear();
    own_.inverted.clear();
    own_.left_count = own_.deferred_count = 0;
    own_.decided = own_.listed_count = own_.chained_adds = own_.overtaken = own_.alone = own_.rounds = 0;
  }
  std::uint32_t transaction_at(std::uint32_t position) const {
    return a_.order != nullptr ? a_.order[position] : position;
  }
  std::uint32_t sum_of(std::uint32_t PartitionedThread::*count) const {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < p_.threads(); ++i) sum += p_.get(&(a_.threads[i].*count));
    return sum;
  }
  std::uint32_t partitions() const { return 1u << a_.tuning.partition_bits; }
  // Lists the uses of the thread's undecided positions, and of the tiles that it takes.
  void list(PositionRange window) {
    own_.place_of_partition.assign(partitions(), 0);
    own_.listed.clear();
    own_.tiles[(round_ + 1) % 2].clear();
    for (const std::uint32_t position : own_.left) list_some(position, position + 1);
    for (std::uint32_t i = 0; i < p_.threads(); ++i) take_tiles(window, (p_.thread() + i) % p_.threads());
    own_.listed_count += own_.listed.size();
    std::uint32_t begin = 0;
    for (std::uint32_t& place : own_.place_of_partition) begin += std::exchange(place, begin);
    if (own_.uses.size() < own_.listed.size()) own_.uses.resize(own_.listed.size() + own_.listed.size() / 2);
    RecordUse* const uses = own_.uses.data();
    std::uint32_t* const places = own_.place_of_partition.data();
    const std::uint32_t shift = 32 - a_.tuning.partition_bits;
    for (const RecordUse use : own_.listed) {
      RecordUse* const at = uses + places[(use.slot * kHash) >> shift]++;
      p_.put(&at->slot, use.slot);
      p_.put(&at->user, use.user);
    }
    own_.partition_end.resize(partitions());
    for (std::uint32_t i = 0; i < partitions(); ++i) p_.put(&own_.partition_end[i], places[i]);
    p_.put(&own_.left_count, static_cast<std::uint32_t>(own_.left.size()));
  }
  // Takes what is left of the share of the window that is meant for this thread. So a thread stays with the share whose
  // keys it has found, and helps the others when it has done that.
  void take_tiles(PositionRange window, std::uint32_t thread) {
    const std::uint64_t count = window.end - window.begin, threads = p_.threads();
    const auto share_end = static_cast<std::uint32_t>(window.begin + count * (thread + 1) / threads);
    const std::uint64_t share_begin = window.begin + count * thread / threads;
    while (true) {
      const std::uint64_t tile = p_.fetch_add(next_tile(thread), std::uint64_t{1}, Order::relaxed, Scope::device);
      if (share_begin + tile * a_.tuning.tile >= share_end) return;
      const auto first = static_cast<std::uint32_t>(share_begin + tile * a_.tuning.tile);
      const std::uint32_t end = first + std::min(a_.tuning.tile, share_end - first);
      for (std::size_t i = 2 * std::size_t{first}; i < 2 * std::size_t{end}; ++i)
        p_.put(a_.blocked + i, std::uint8_t{0});
      own_.tiles[(round_ + 1) % 2].push_back({first, end});
      list_some(first, end);
    }
  }
  std::uint64_t* next_tile(std::uint32_t thread) const { return a_.threads[thread].next_tile + round_ % 2; }
  std::uint64_t* next_to_run(std::uint32_t thread) const { return a_.threads[thread].next_to_run + round_ % 2; }
  // The pointers are copied, so that they stay in registers.
  void list_some(std::uint32_t begin, std::uint32_t end) {
    const BatchView batch = a_.batch;
    const std::uint32_t* const slot_of_key = a_.slot_of_key;
    const std::uint32_t absent = a_.absent_slot;
    const auto guard_begin_of = [&](std::uint32_t t) { return t == 0 ? 0 : batch.guard_end[t - 1]; };
    const auto operation_begin_of = [&](std::uint32_t t) { return t == 0 ? 0 : batch.else_end[t - 1]; };
    std::size_t uses_max = 0;
    // Counts the uses of the transactions [first, last), and sets back their marks in `defers`.
    const auto prepare = [&](std::uint32_t first, std::uint32_t last) {
      const std::uint32_t i = operation_begin_of(first), operations_end = batch.else_end[last - 1];
      uses_max += 2 * std::size_t{batch.guard_end[last - 1] - guard_begin_of(first)} + (operations_end - i);
      for (std::uint32_t k = i; k < operations_end; ++k) p_.put(a_.defers + k, std::uint8_t{0});
    };
    if (a_.order == nullptr) {
      prepare(begin, end);
    } else {
      for (std::uint32_t position = begin; position < end; ++position) {
        prepare(a_.order[position], a_.order[position] + 1);
      }
    }
    const std::size_t listed = own_.listed.size();
    own_.listed.resize(listed + uses_max);
    RecordUse* const first = own_.listed.data() + listed;
    RecordUse* uses = first;
    for (std::uint32_t position = begin; position < end; ++position) {
      const std::uint32_t t = transaction_at(position);
      const std::uint32_t guard = guard_begin_of(t), guard_end = batch.guard_end[t];
      const std::uint32_t operation = operation_begin_of(t), operation_end = batch.else_end[t];
      const bool is_small = 2 * std::size_t{guard_end - guard} + (operation_end - operation) <= kUsesMax;
      std::uint32_t count = 0;
      const auto add = [&](std::uint32_t key, UseRole role) {
        const std::uint32_t slot = slot_of_key[key];
        if (slot == absent) return;  // nothing in the batch writes it
        std::uint32_t i = is_small ? 0 : count;
        while (i < count && uses[i].slot != slot) ++i;
        if (i == count) {
          uses[count++] = {slot, RecordUse::user_of(position, role)};
        } else if (role != UseRole::read || uses[i].user != RecordUse::user_of(position, UseRole::read)) {
          uses[i].user = RecordUse::user_of(position, UseRole::write);  // whatever the two uses are
        }
      };
      for (std::uint32_t i = operation; i < operation_end; ++i) {
        const auto kind = static_cast<OpKind>(batch.op_kind[i]);
        UseRole role = kind == OpKind::get ? UseRole::read : UseRole::write;
        if (kind == OpKind::add && is_small && is_adder(batch, i)) role = UseRole::add;
        add(batch.op_key[i], role);
      }
      for (std::uint32_t g = guard; g < guard_end; ++g) {
        const std::uint32_t key = batch.guard_key[g], other = batch.guard_other[g];
        if (key != kNone) add(key, UseRole::read);
        if (other != kNone) add(other, UseRole::read);
      }
      uses += count;
    }
    std::uint32_t* const counts = own_.place_of_partition.data();
    const std::uint32_t shift = 32 - a_.tuning.partition_bits;
    for (const RecordUse* use = first; use < uses; ++use) ++counts[(use->slot * kHash) >> shift];
    own_.listed.resize(listed + static_cast<std::size_t>(uses - first));
  }
  // Whether the delta is a constant, and not too large.
  bool is_adder(const BatchView& batch, std::uint32_t operation) const {
    if (static_cast<Operand>(batch.op_operand[operation]) != Operand::integer) return false;
    const auto delta = static_cast<std::uint64_t>(batch.op_value[operation]);
    return delta + a_.delta_max <= 2 * a_.delta_max;
  }

  struct Places {
    std::uint32_t begin, end;
  };
  // Where the partition is among the uses that a thread has listed.
  Places places_of(const PartitionedThread& thread, std::uint32_t partition) const {
    const std::uint32_t* const end = thread.partition_end.data() + partition;
    return {partition == 0 ? 0 : p_.get(end - 1), p_.get(end)};
  }
  // Calls f(slot, user) for all uses of the partition, by all threads.
  template <class F>
  void for_uses_of(std::uint32_t partition, const F& f) const {
    for (std::uint32_t i = 0; i < p_.threads(); ++i) {
      const PartitionedThread& thread = a_.threads[i];
      const RecordUse* const uses = thread.uses.data();
      const Places places = places_of(thread, partition);
      for (std::uint32_t k = places.begin; k < places.end; ++k) f(p_.get(&uses[k].slot), p_.get(&uses[k].user));
    }
  }
  std::uint32_t uses_of(std::uint32_t partition) const {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < p_.threads(); ++i) {
      const Places places = places_of(a_.threads[i], partition);
      count += places.end - places.begin;
    }
    return count;
  }

  void decide() {
    for (std::uint32_t i = p_.thread(); i < partitions(); i += p_.threads()) decide_partition(i);
    p_.store(next_tile(p_.thread()), std::uint64_t{0}, Order::relaxed, Scope::device);
    p_.store(own_.next_to_run + (round_ + 1) % 2, std::uint64_t{0}, Order::relaxed, Scope::device);
    p_.put(&own_.deferred_count, static_cast<std::uint32_t>(own_.deferred.size()));
  }
  void decide_partition(std::uint32_t partition) {
    const std::uint32_t count = uses_of(partition);
    if (count == 0) return;
    const std::size_t wanted = std::bit_ceil(2 * std::size_t{count});
    if (own_.table.size() < wanted || ++own_.epoch == 0) {
      own_.table.assign(std::max(wanted, own_.table.size()), RecordUses{});
      own_.epoch = 1;
    }
    if (own_.contended.size() < count) own_.contended.resize(count + count / 2);
    RecordUses* const table = own_.table.data();
    ContendedUse* const contended = own_.contended.data();
    const auto mask = static_cast<std::uint32_t>(wanted - 1);
    const std::uint32_t epoch = own_.epoch;
    std::size_t contended_count = 0;
    for_uses_of(partition, [&](std::uint32_t slot, std::uint32_t user) {
      std::uint32_t i = place_in_table(slot) & mask;
      const std::uint32_t role = user & 3, position = user >> 2;
      while (table[i].epoch == epoch && table[i].slot != slot) i = (i + 1) & mask;
      RecordUses& record = table[i];
      if (record.epoch != epoch) {
        record = {slot, epoch, {kNone, kNone, kNone}, role == static_cast<std::uint32_t>(UseRole::add) ? 1u : 0u, user};
        record.oldest[role] = position;
        return;
      }
      record.oldest[role] = std::min(record.oldest[role], position);
      record.adders += role == static_cast<std::uint32_t>(UseRole::add) ? 1 : 0;
      if (record.first_user != kNone) contended[contended_count++] = {i, std::exchange(record.first_user, kNone)};
      contended[contended_count++] = {i, user};
    });
    for (std::size_t i = 0; i < contended_count; ++i) {
      const ContendedUse& use = contended[i];
      const std::uint32_t position = use.user >> 2;
      if (is_blocked(table[use.entry], static_cast<UseRole>(use.user & 3), position)) block(position);
    }
  }
  std::uint32_t place_in_table(std::uint32_t slot) const {
    const std::uint32_t hash = (slot * kHash) << a_.tuning.partition_bits;
    return hash >> 16 ^ hash >> 4;
  }
  // Whether the use must wait for an older transaction. Notes the adder if the owner is to add its delta.
  bool is_blocked(const RecordUses& record, UseRole role, std::uint32_t position) {
    const auto has_older = [&](UseRole older) { return record.oldest[static_cast<std::uint32_t>(older)] < position; };
    if (Rules::kOlderWriter && has_older(UseRole::write)) return true;
    if (role == UseRole::read) return Rules::kReadersWaitForAdds && has_older(UseRole::add);
    if (Rules::kOlderReader && has_older(UseRole::read)) return true;
    if (role == UseRole::write) return has_older(UseRole::add);
    if (record.adders >= a_.tuning.adders_min && commutes(record)) {
      const std::uint32_t operation = adder_of(position, record.slot);
      p_.put(a_.defers + operation, std::uint8_t{1});
      own_.deferred.push_back({record.slot, position, operation});
      return false;
    }
    if (!has_older(UseRole::add)) return false;
    ++own_.chained_adds;
    return true;
  }
  // The operation by which the transaction adds to the record.
  std::uint32_t adder_of(std::uint32_t position, std::uint32_t slot) const {
    const std::uint32_t t = transaction_at(position);
    const std::uint32_t last = a_.batch.else_end[t] - 1;
    std::uint32_t i = t == 0 ? 0 : a_.batch.else_end[t - 1];
    while (i < last && a_.slot_of_key[a_.batch.op_key[i]] != slot) ++i;
    return i;
  }
  // Whether no sum of the deltas of a batch can take the record out of its range: all together, by their absolute
  // values, stay below 2^62 (PartitionedBatch::delta_max).
  bool commutes(const RecordUses& record) const {
    const Cell cell = access_.cell(record.slot);
    if (type_of(cell.tag) == ValueType::bytes) return false;
    if (!Rules::kBoundsDeltas) return true;
    const std::uint64_t size = cell.word >> 63 != 0 ? 0 - cell.word : cell.word;
    return size <= std::uint64_t{1} << 62;
  }
  // Owners of several records may block one transaction at the same time.
  void block(std::uint32_t position) { p_.store(word_of(position), mark(), Order::relaxed, Scope::device); }
  bool is_blocked(std::uint32_t position) const {
    return p_.load(word_of(position), Order::relaxed, Scope::device) == mark();
  }
  // Two sets of marks are used in turn. So the marks of a round stay while a faster thread decides the next one.
  std::uint8_t* word_of(std::uint32_t position) const {
    return a_.blocked + (2 * std::size_t{position} + (Rules::kTwoSets ? round_ % 2 : 0));
  }
  std::uint8_t mark() const { return static_cast<std::uint8_t>(1 + round_ % 255); }

  [[gnu::flatten]] void run_listed() {
    Access access = access_;
    access.defer(sum_of(&PartitionedThread::deferred_count) != 0);
    std::size_t still_left = 0;
    const std::size_t left = own_.left.size();
    for (std::size_t i = 0; i < left; ++i) {
      const std::uint32_t position = own_.left[i];
      if (is_blocked(position)) {
        own_.left[still_left++] = position;
      } else {
        run_one(position, access);
      }
    }
    own_.left.resize(still_left);
    for (std::uint32_t i = 0; i < p_.threads(); ++i) run_tiles((p_.thread() + i) % p_.threads(), access);
  }
  // Runs what is left of the tiles that this thread has listed.
  void run_tiles(std::uint32_t thread, Access& access) {
    const std::vector<PositionRange>& tiles = a_.threads[thread].tiles[round_ % 2];
    while (true) {
      const std::uint64_t next = p_.fetch_add(next_to_run(thread), std::uint64_t{1}, Order::relaxed, Scope::device);
      if (next >= tiles.size()) return;
      const PositionRange tile = tiles[next];
      fill_usual(tile.begin, tile.end, a_.order, a_.results);
      for (std::uint32_t position = tile.begin; position < tile.end; ++position) {
        if (is_blocked(position)) {
          own_.left.push_back(position);
        } else {
          run_one(position, access);
        }
      }
    }
  }
  void run_one(std::uint32_t position, Access& access) {
    ++decided_;
    const Outcome outcome = run_transaction<true>(a_.batch, a_.results, access, transaction_at(position), position);
    if (outcome == Outcome::postponed) own_.postponed.push_back(position);
  }

  // Adds the deltas of the last round to each record, in the order of the batch.
  void add_deferred() {
    if (own_.deferred.empty()) return;
    std::sort(own_.deferred.begin(), own_.deferred.end(), [](const DeferredAdd& a, const DeferredAdd& b) {
      return a.slot != b.slot ? a.slot < b.slot : a.position < b.position;
    });
    std::uint32_t slot = kNone;
    bool was_passed_over = false;  // an older adder of the record has not run
    for (const DeferredAdd& add : own_.deferred) {
      if (std::exchange(slot, add.slot) != add.slot) was_passed_over = false;
      if (is_blocked(add.position)) {
        was_passed_over = true;
        continue;
      }
      if (!has_delta(add)) continue;
      if (was_passed_over) {
        ++own_.overtaken;
        if (own_.inverted.empty() || own_.inverted.back() != slot) own_.inverted.push_back(slot);
      }
      const Cell delta = a_.results.op_cell[add.operation], cell = access_.cell(slot);
      const std::uint64_t word = cell.word + delta.word;
      a_.before[add.operation] = cell;
      a_.results.op_cell[add.operation] = {word, delta.tag};
      a_.results.op_flags[add.operation] = BatchResults::kWrote;
      access_.put(slot, {word, std::max(cell.tag, delta.tag)});
    }
    own_.deferred.clear();
  }
  // Whether the operation has run and left a delta, and its transaction has kept its writes.
  bool has_delta(const DeferredAdd& add) const {
    const std::uint32_t t = transaction_at(add.position);
    if (a_.results.wrote[t] == 0) return false;
    const bool in_else = add.operation >= a_.batch.then_end[t];
    const bool ran_else = a_.results.outcome[t] == static_cast<std::uint8_t>(Outcome::guard_failed);
    return in_else == ran_else && (a_.results.op_flags[add.operation] & BatchResults::kDelta) != 0;
  }

  // Runs what is left of all threads, and then all positions from `first` on.
  void run_alone(std::uint32_t first) {
    std::vector<std::uint32_t>& left = own_.left;
    for (std::uint32_t i = 1; i < p_.threads(); ++i) {
      left.insert(left.end(), a_.threads[i].left.begin(), a_.threads[i].left.end());
    }
    std::sort(left.begin(), left.end());
    Access access = access_;
    access.defer(false);
    for (const std::uint32_t position : left) run_one(position, access);
    fill_usual(first, size_, a_.order, a_.results);
    for (std::uint32_t position = first; position < size_; ++position) run_one(position, access);
    own_.alone = left.size() + (size_ - first);
    own_.decided = decided_;
    left.clear();
  }

  // Goes through the first pass backwards, and puts right what the writes to inverted records have replaced and left.
  // At the end, such a record holds the right value: all deltas are in it. Each ADD has added what it left more than it
  // replaced. All other writes have waited for the older ones, so their values are right.
  void settle_inverted() {
    std::vector<std::uint32_t>& slots = own_.inverted;
    for (std::uint32_t i = 1; i < p_.threads(); ++i) {
      slots.insert(slots.end(), a_.threads[i].inverted.begin(), a_.threads[i].inverted.end());
    }
    if (slots.empty()) return;
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    own_.settled.clear();
    std::array<std::uint64_t, kFilterBits / 64> filter{};
    for (const std::uint32_t slot : slots) {
      own_.settled.push_back({slot, kNone, access_.cell(slot).word, ~Tag{0}, 0});
      filter[filter_bit(slot) / 64] |= std::uint64_t{1} << filter_bit(slot) % 64;
    }
    for (std::uint32_t position = size_; position-- > 0;) {
      const std::uint32_t t = transaction_at(position);
      if (a_.results.wrote[t] == 0) continue;
      const bool in_else = a_.results.outcome[t] == static_cast<std::uint8_t>(Outcome::guard_failed);
      const std::uint32_t middle = a_.batch.then_end[t];
      const std::uint32_t begin = in_else ? middle : t == 0 ? 0 : a_.batch.else_end[t - 1];
      for (std::uint32_t i = in_else ? a_.batch.else_end[t] : middle; i-- > begin;) {
        const std::uint32_t bit = filter_bit(a_.slot_of_key[a_.batch.op_key[i]]);
        if ((filter[bit / 64] >> bit % 64 & 1) == 0) continue;
        if (a_.results.op_flags[i] == BatchResults::kWrote) settle(i);
      }
    }
    for (const InvertedRecord& record : own_.settled) {
      if (record.younger == kNone) continue;
      a_.before[record.younger].tag = record.oldest_tag;
      access_.put(record.slot, {access_.cell(record.slot).word, record.newest_tag});
    }
  }
  // Most writes are to other records. A bit tells of nearly all of them.
  static constexpr std::uint32_t kFilterBits = 4096;
  static std::uint32_t filter_bit(std::uint32_t slot) { return slot * kHash / (UINT32_MAX / kFilterBits + 1); }
  void settle(std::uint32_t operation) {
    const std::uint32_t slot = a_.slot_of_key[a_.batch.op_key[operation]];
    const auto found =
        std::lower_bound(own_.settled.begin(), own_.settled.end(), slot,
                         [](const InvertedRecord& record, std::uint32_t wanted) { return record.slot < wanted; });
    if (found == own_.settled.end() || found->slot != slot) return;
    Cell& before = a_.before[operation];
    Cell& after = a_.results.op_cell[operation];
    if (found->younger == kNone) {
      found->newest_tag = after.tag;
    } else {
      a_.before[found->younger].tag = after.tag;
    }
    found->younger = operation;
    found->oldest_tag = std::min(found->oldest_tag, before.tag);
    if (static_cast<OpKind>(a_.batch.op_kind[operation]) == OpKind::add) {
      const std::uint64_t delta = after.word - before.word;
      after.word = found->word;
      before.word = found->word - delta;
    }
    found->word = before.word;
  }

  P& p_;
  const PartitionedBatch& a_;
  Access access_;
  PartitionedThread& own_;
  const std::uint32_t size_;
  std::uint32_t round_ = 0;
  std::uint64_t decided_ = 0;
};

}  // namespace kilokv::engine
