// The facade of the engine: a table of records in memory, and batches that run on it. Plain C++: no CUDA types.
//
// Thread safety: one thread at a time (the server's executor owns it). Results refer to byte values by handle; a handle
// stays readable, from any thread, until release_through() has passed the batch that replaced it.
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
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

struct EngineOptions {
  static constexpr std::uint32_t kThreadsMax = 1024;

  std::string strategy = "auto";    // one of strategies()
  std::string order = "fixed";      // that auto must keep: fixed is (precedence, arrival); any is any serial order
  std::string device = "cpu";       // one of devices(); auto: a CUDA device where there is one
  std::uint32_t threads = 0;        // of a parallel strategy on the CPU: to kThreadsMax; 0: one for each core
  SettingTexts settings = {};       // of strategies (strategies.hpp)
  std::string validation = "auto";  // of large read sets: one of validations()
  std::string validation_lanes = "coalesced";  // of a device: or strided
  KeyHashSecret secret = {};
  std::function<bool()> emulated_device_fails = nullptr;  // for tests: asked at each call of the emulated device
  std::size_t expected_records = 0;                       // reserves the table
  std::size_t table_records_max = std::size_t{1} << 31;   // RESOURCE_EXHAUSTED beyond it

  // INVALID_ARGUMENT for an unknown strategy, order, device or validation, an order for a strategy that has its own, a
  // number out of its bounds, and as check_settings() has it. Messages name the flag that programs have for it.
  Status validate() const;
};

// A record as the outside sees it. `bytes` points into the engine: valid until the next call that changes the table.
struct RecordView {
  std::string_view key;
  Cell cell;
  std::string_view bytes;  // of a value of type bytes
};

// How many records, and what they cost.
struct EngineStats {
  std::size_t records = 0;     // live: not deleted
  std::size_t tombstones = 0;  // deleted, version kept
  std::size_t table_slots = 0;
  std::size_t memory_bytes = 0;  // all told: slots, keys, index, byte values, log of the last batch
  std::string strategy_choice;   // of `auto`: what it chose last, and why; else empty
  std::string validator_choice;  // what checked the last large read set, and why; empty: there was none
};

// A key's cell before a batch first wrote it.
struct BeforeImage {
  KeyId id;
  Cell cell;
};

class Engine {
 public:
  // INVALID_ARGUMENT as EngineOptions::validate() has it. No CUDA device, or none that works: the engine runs on the
  // CPU, and device() says why.
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);
  static std::vector<std::string> strategies();  // auto, and those of strategy_infos()
  static std::vector<std::string> orders();
  static std::vector<std::string> devices();
  // auto: one thread or two sides, as measured; alone, cooperative: always so; by-guard: as any other guards.
  static std::vector<std::string> validations();
  virtual ~Engine() = default;

  // After the last load(): sends a device what it needs, so that no batch pays for it. A hint.
  virtual void prepare() = 0;

  // Runs the batch. `expires[t]` != 0: the transaction's deadline is at or before the stamp: postponed becomes
  // WAIT_EXPIRED. Fills `results` and `writes` (both are reset first).
  // Requires: valid columns (txn/validate.hpp); expires.size() == columns.size();
  // header.first_version + kWaitPassesMax x n <= kVersionMax.
  // Errors: RESOURCE_EXHAUSTED when the table cannot take the batch's new keys: nothing has run, the state is
  // unchanged.
  [[nodiscard]] virtual Status execute(const BatchHeader& header, const TransactionColumns& columns,
                                       const Column<std::uint8_t>& expires, BatchResults* results,
                                       WriteColumns* writes) = 0;

  // How the last batch was executed.
  virtual const ExecutionReport& execution() const = 0;
  // Where batches run; after an error of the device: on the CPU. The batch at hand is then run there, too.
  virtual EngineDevice device() const = 0;

  // The keys that the last batch wrote, each once, with their cells before it. Valid until the next call that changes
  // the table.
  virtual const std::vector<BeforeImage>& before_images() const = 0;

  // Whether transaction t would be postponed on the state as it is now: its first guard that does not hold is a WAIT
  // guard that is false. For parked transactions: run them again only when there is something new to say.
  virtual bool would_wait(const TransactionColumns& columns, std::size_t t) const = 0;

  // Bytes of a value of type bytes.
  virtual std::string_view bytes_of(Cell cell) const = 0;

  // Byte values replaced by batches up to and including `batch` may be freed. Called in batch order.
  virtual void release_through(BatchNumber batch) = 0;
  // A handle kept beyond its batch (a snapshot's before-image). retain/release pairs; same thread as execute().
  virtual void retain(Cell cell) = 0;
  virtual void release(Cell cell) = 0;

  // The current cell of a key (never written: all zero).
  virtual RecordView find(std::string_view key) const = 0;
  // Visits keys of [from, to) in key order, tombstones included, until `visit` returns false. `to` empty: no upper
  // bound.
  virtual void scan(std::string_view from, std::string_view to,
                    const std::function<bool(const RecordView&)>& visit) const = 0;

  // Recovery: puts a record as it was, tombstones included. An older version never replaces a newer one, so that a
  // replay over a fuzzy checkpoint is idempotent; of equal versions (one transaction wrote the key twice) the later
  // call wins.
  [[nodiscard]] virtual Status load(std::string_view key, Version version, ValueType type, std::int64_t integer,
                                    std::string_view bytes) = 0;

  // A hint: load() of this key comes soon. Given for a dozen keys ahead it hides the memory's latency.
  virtual void prefetch(std::string_view key) = 0;

  // Drops tombstones with version <= floor and calls `dropped` for each. `unchanged since v` and `range unchanged since
  // v` with v < floor are false from then on where the key (any key of the range) may have been dropped: versions below
  // the floor are not known.
  // Looks at about `looked_max` (those of one version all go at once), lowest versions first; tombstone_floor() says
  // how far it came. To drop up to that one, elsewhere, drops the same.
  virtual void drop_tombstones(Version floor, const std::function<void(std::string_view key)>& dropped,
                               std::size_t looked_max = SIZE_MAX) = 0;
  virtual Version tombstone_floor() const = 0;

  // Additive digest of all records (key id, type, value, version; tombstones included): equal states have equal hashes,
  // whatever led there. Kept up to date by execute, load and drop_tombstones.
  virtual Hash128 state_hash() const = 0;
  // The same computed from scratch over the table; for verification.
  virtual Hash128 compute_state_hash() const = 0;

  // Dirty tracking for checkpoints: keys written or loaded since they were last taken, each once, first in first out.
  // Takes up to `max` of them, with their current cells; returns how many.
  virtual std::size_t take_dirty(std::size_t max, const std::function<void(const RecordView&)>& visit) = 0;
  virtual std::size_t dirty_count() const = 0;
  virtual void clear_dirty() = 0;

  virtual EngineStats stats() const = 0;
};

}  // namespace kilokv::engine
