// The facade of the engine: a table of records in memory, and batches that run on it. Plain C++: no CUDA types.
//
// Thread safety: one thread at a time. In the server, this is the thread of the execute stage. Results refer to byte
// values by handles. Any thread may read the bytes of a handle until release_through() has passed the batch that
// replaced the value.
//
// Flow of a batch: fill a TransactionColumns -> execute() -> results, writes -> (server: log, sync, answer) ->
// release_through(batch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/strategies.hpp"
#include "engine/table/key_room.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

struct EngineOptions {
  static constexpr std::uint32_t kThreadsMax = 1024;

  // One of strategies().
  std::string strategy = "auto";
  // The order that `auto` must keep. fixed: (precedence, arrival). any: any serial order.
  std::string order = "fixed";
  // One of devices(). auto: a CUDA device if there is one, else the CPU.
  std::string device = "cpu";
  // Threads of a parallel strategy on the CPU, at most kThreadsMax. 0: one for each core.
  std::uint32_t threads = 0;
  // Settings of strategies (strategies.hpp).
  SettingTexts settings = {};
  // How large read sets are validated: one of validations().
  std::string validation = "auto";
  // Which reads of a block a lane of a device checks. coalesced: neighbouring lanes check neighbouring reads. strided:
  // each lane checks a run of neighbouring reads.
  std::string validation_lanes = "coalesced";
  KeyHashSecret secret = {};
  // For benches and tests: allows settings that have not passed all checks on this kind of device yet.
  bool allow_unproven = false;
  // For benches: measures the time of each stage of a batch (ExecutionReport::stages). This costs some microseconds for
  // each batch, and the hash of the state then has a loop of its own.
  bool measure_stages = false;
  // For tests: the emulated device asks it at each call. True: the call fails.
  std::function<bool()> emulated_device_fails = nullptr;
  // How many records the table has room for from the start.
  std::size_t expected_records = 0;
  // The most records. A batch that would need more fails with RESOURCE_EXHAUSTED.
  std::size_t table_records_max = std::size_t{1} << 31;

  // INVALID_ARGUMENT for an unknown strategy, order, device or validation, for an order other than fixed with a
  // strategy other than auto, for a number out of its bounds, and for every error of check_settings(). The message
  // names the flag that programs have for the option.
  Status validate() const;
};

// A record as callers see it. `key` and `bytes` point into the engine. They are valid until the next call that changes
// the table.
struct RecordView {
  std::string_view key;
  Cell cell;
  std::string_view bytes;  // the bytes of a value of type bytes
  TimeUs expires_us = 0;   // when the key expires; 0: never
};

// How many records there are, how much memory the engine uses, and what it chose last.
struct EngineStats {
  std::size_t records = 0;     // live ones, which are not deleted
  std::size_t tombstones = 0;  // deleted ones, whose version is kept
  std::size_t expiring = 0;    // live ones that expire
  std::size_t table_slots = 0;
  std::size_t memory_bytes = 0;  // in all: slots, keys, index, byte values, the last batch's log
  std::string strategy_choice;   // what `auto` chose last, and why; empty for another strategy
  std::string validator_choice;  // what checked the last large read set, and why; empty: there was none
};

// The memory of the records, by what it is for. `slots` (those that the table has memory for) and `records` (deleted
// ones included) say when the table needs more.
struct EngineMemory {
  std::size_t records = 0, slots = 0;
  std::size_t table_bytes = 0;  // slots, and what is kept for each slot
  std::size_t key_bytes = 0;
  KeyRoom key_room;             // the part of key_bytes that new keys can use
  std::size_t index_bytes = 0;  // the order of the keys, and the times at which keys expire
  std::size_t value_bytes = 0;  // byte values, with those that scans and answers still need

  std::size_t sum() const { return table_bytes + key_bytes + index_bytes + value_bytes; }
};

// The most memory that a table with the memory of so many slots takes until it has room for `records`.
std::size_t table_bytes_until(std::size_t slots, std::size_t records);
// The most memory that a new key, or a byte value, takes. A new key also counts as a record of the table.
std::size_t new_key_bytes(std::size_t key_bytes);
// The part of it that may come from KeyRoom.
std::size_t key_entry_bytes(std::size_t key_bytes);
// The most memory that the expiry of a key takes.
std::size_t expiry_bytes();
// Entries that do not fit into KeyRoom open new blocks. Returns the memory of the blocks that hold this many bytes.
std::size_t key_blocks_bytes(std::size_t entry_bytes);
std::size_t new_value_bytes(std::size_t value_bytes);

// The cell and the expiry that a key had before a batch first wrote it.
struct BeforeImage {
  KeyId id;
  Cell cell;
  TimeUs expires_us = 0;
};

class Engine {
 public:
  // Fails with INVALID_ARGUMENT if EngineOptions::validate() does. If there is no CUDA device that works, the engine
  // runs on the CPU, and device() says why.
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);
  static std::vector<std::string> strategies();  // auto, and the names of strategy_infos()
  static std::vector<std::string> orders();
  static std::vector<std::string> devices();
  // auto: one thread or two sides, whichever was faster when measured. alone: always one thread. cooperative: always
  // two sides. by-guard: the transaction evaluates its guards one by one, like all other guards.
  static std::vector<std::string> validations();
  virtual ~Engine() = default;

  // A hint, to be given after the last load(). Sends the table to the device, so that no batch has to wait for it.
  virtual void prepare() = 0;

  // Runs the batch. Resets `results` and `writes`, then fills them. `expires[t]` != 0 means that the deadline of
  // transaction t is at or before the stamp. If it would be postponed, it ends with WAIT_EXPIRED. If one of these has
  // expire_runs_else, the batch has a pass of last tries (stm/serial.hpp). A batch that may have one runs serially.
  // Requires: valid columns (txn/validate.hpp); expires.size() == columns.size();
  // header.first_version + (kWaitPassesMax + 1) x n <= kVersionMax, where n is columns.size().
  // Errors: RESOURCE_EXHAUSTED if the table has no room for the batch's new keys. Then no transaction has run, and the
  // state is unchanged.
  [[nodiscard]] virtual Status execute(const BatchHeader& header, const TransactionColumns& columns,
                                       const Column<std::uint8_t>& expires, BatchResults* results,
                                       WriteColumns* writes) = 0;

  // How the last batch was executed.
  virtual const ExecutionReport& execution() const = 0;
  // Where batches run. After an error of the device they run on the CPU, and so does the batch in which the error came.
  virtual EngineDevice device() const = 0;

  // Each key that the last batch wrote, once, with the cell that it had before the batch. Valid until the next call
  // that changes the table. They are made on the first call. Requires: the columns and the results of the batch are
  // still there, as execute() left them.
  virtual const std::vector<BeforeImage>& before_images() const = 0;

  // Whether transaction t would be postponed if it ran now, in a batch with this stamp: its first guard that does not
  // hold is a WAIT guard that is false. The server asks this for parked transactions, so that it runs them again only
  // if they can get further.
  virtual bool would_wait(const TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const = 0;
  // When transaction t, which the batch with this stamp has postponed, may get further although no key of its guards is
  // written: the least time after the stamp with which a guard compares the stamp. Only the guard that decides now and
  // those before it count, because no later guard is evaluated. The stamp itself: it would not be postponed now,
  // because the batch changed the state after its last pass had run the transaction. kNever: there is no such time.
  virtual TimeUs next_time(const TransactionColumns& columns, std::size_t t, TimeUs stamp_us) const = 0;

  // The engine itself deletes nothing that has expired: its caller does, in a batch of its own. The least time at which
  // a key expires; kNever: none does.
  virtual TimeUs next_expiry() const = 0;
  // Visits the first `max` keys that expire at this time or before, in the order of their times.
  virtual void visit_due(TimeUs stamp_us, std::size_t max,
                         const std::function<void(std::string_view key, TimeUs expires_us)>& visit) const = 0;

  // Bytes of a value of type bytes.
  virtual std::string_view bytes_of(Cell cell) const = 0;

  // The engine may free the byte values that batches up to and including `batch` have replaced. Called in the order of
  // the batches.
  virtual void release_through(BatchNumber batch) = 0;
  // Keep a handle after release_through() has passed its batch, such as a before-image of a snapshot. Each retain()
  // needs one release(). Called by the thread that calls execute().
  virtual void retain(Cell cell) = 0;
  virtual void release(Cell cell) = 0;

  // The current record of a key. Its cell is all zero if the key was never written.
  virtual RecordView find(std::string_view key) const = 0;
  // Visits the keys of [from, to) in key order, tombstones included, until `visit` returns false. If `to` is empty,
  // there is no upper bound.
  virtual void scan(std::string_view from, std::string_view to,
                    const std::function<bool(const RecordView&)>& visit) const = 0;
  // The same from the last key to the first.
  virtual void scan_reverse(std::string_view from, std::string_view to,
                            const std::function<bool(const RecordView&)>& visit) const = 0;

  // For recovery: stores a record as it was. A tombstone is a record, too. An older version never replaces a newer one,
  // so that the log can be replayed over a fuzzy checkpoint, which already has some of the later writes. If two
  // versions are equal because one transaction wrote the key twice, the later call wins. RESOURCE_EXHAUSTED: the table
  // is full. `expires_us`: when the key expires; 0: never. Requires: a tombstone does not expire.
  [[nodiscard]] virtual Status load(std::string_view key, Version version, ValueType type, std::int64_t integer,
                                    std::string_view bytes, TimeUs expires_us = 0) = 0;

  // A hint: load() of this key comes soon. It hides the latency of the memory if it is given about a dozen keys ahead.
  virtual void prefetch(std::string_view key) = 0;

  // Drops tombstones with version <= floor, lowest versions first, and calls `dropped` for each. Versions below the
  // floor are then unknown. So, from then on, `unchanged since v` and `range unchanged since v` with v < floor are
  // false if the key, or any key of the range, may have been dropped. Looks at about `looked_max` tombstones. It can be
  // more, because all tombstones of one version go together. tombstone_floor() then says which version was reached.
  // Another engine with the same records drops the same tombstones if it is given that floor.
  virtual void drop_tombstones(Version floor, const std::function<void(std::string_view key)>& dropped,
                               std::size_t looked_max = SIZE_MAX) = 0;
  virtual Version tombstone_floor() const = 0;

  // Additive digest of key id, type, value, version and expiry of all records, tombstones included. Equal states have
  // equal hashes, whatever their history is. execute(), load() and drop_tombstones() keep it up to date.
  virtual Hash128 state_hash() const = 0;
  // The state hash, computed anew from the whole table. For verification.
  virtual Hash128 compute_state_hash() const = 0;

  // For checkpoints. A key is dirty if it was written or loaded since it was last taken. take_dirty() takes the first
  // `max` of dirty_count() entries, the oldest first, and visits their keys with their current cells. Returns how many
  // entries it has taken. Most entries have one key. One has none if its key is no longer in the table. A key has two
  // entries if it was written while others were taken, so it may be visited once more than it has to be.
  virtual std::size_t take_dirty(std::size_t max, const std::function<void(const RecordView&)>& visit) = 0;
  virtual std::size_t dirty_count() const = 0;
  virtual void clear_dirty() = 0;

  virtual EngineStats stats() const = 0;
  // Takes constant time, so that it can be asked after each batch.
  virtual EngineMemory memory() const = 0;
};

}  // namespace kilokv::engine
