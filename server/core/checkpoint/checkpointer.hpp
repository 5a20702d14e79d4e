// Folds what changed since the last checkpoint into the stored state, so that start-up is short and the log can be
// trimmed. A checkpoint is fuzzy: the executor copies changed records in slices between batches (a record that is
// written often is copied once). This worker writes a slice when the batches that the slice may show are durable. The
// checkpoint counts only after checkpoint_end.
//
// States: idle -> capturing (a slice is requested or is being written) -> idle. A checkpoint begins when enough log was
// written, after --checkpoint-interval if anything changed, and on request. If the disk cannot hold it, it waits. That
// loses nothing, because the log is complete without it.
//
// Thread safety: only its worker calls step(); any thread may call request() and last_batch(). The private members say
// which of them the executor's thread uses.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/execute_stage.hpp"
#include "server/core/reads/reader.hpp"

namespace kilokv::server {

class Checkpointer {
 public:
  // `last`: the position where recovery ended, with the batch of the newest checkpoint. `dropped`: keys that recovery
  // dropped.
  Checkpointer(CoreContext* core, ExecuteStage* execute, const Reader* reader, const Position& last,
               std::vector<std::string> dropped);
  TimeUs step();

  // Memory of keys that left the table and not yet the stored state: at most DatabaseOptions::dropped_bytes_max, and
  // the keys that one transaction has deleted.
  std::uint64_t dropped_bytes() const { return dropped_bytes_.load(std::memory_order_relaxed); }

  // Makes a checkpoint now. `done` is called when it counts, or when the disk has no room for it. Any thread.
  void request(std::function<void()> done);
  BatchNumber last_batch() const { return last_batch_.load(std::memory_order_acquire); }

 private:
  // Records that were copied out of the table after batch `executed`.
  struct Slice {
    BatchNumber executed = 0;
    std::vector<StoredRecord> records;  // views into arena
    std::vector<std::string> dropped;   // keys that are no longer known
    std::string arena;
    std::size_t left = 0;     // dirty keys of this checkpoint that are not captured yet
    bool drops_left = false;  // there are still tombstones to drop, or to remove from the stored state
  };

  // Keys that left the table with one step of the floor. They leave the stored state when the covered batch has that
  // floor. If they left earlier, a restart would miss tombstones that the covered state hash still counts.
  struct Dropped {
    Version floor = 0;
    std::vector<std::string> keys;
  };

  bool wanted(TimeUs now);
  void begin(TimeUs now);
  void ask(std::size_t left);                    // posts capture() to the executor
  void choose_floor();                           // executor's thread
  void drop_tombstones(Slice* slice);            // executor's thread
  std::size_t too_many_tombstones() const;       // executor's thread
  void capture(Slice* slice, std::size_t left);  // executor's thread
  bool write(const Slice& slice);
  void end(TimeUs now);
  void note_end();
  void tell_made(std::uint64_t log_bytes);

  CoreContext* core_;
  ExecuteStage* execute_;
  const Reader* reader_;
  std::atomic<BatchNumber> last_batch_;
  TimeUs last_us_ = 0, began_us_ = 0, no_room_until_us_ = 0;
  CheckpointReport made_;  // of the checkpoint that is being made
  bool capturing_ = false;
  Position covers_;
  std::string access_;              // the access table after `covers_`, encoded
  std::unique_ptr<Slice> waiting_;  // until its batches are durable
  StageQueue<std::unique_ptr<Slice>> captured_;
  std::mutex mutex_;
  std::vector<std::function<void()>> requests_, serving_;
  // Executor's thread.
  std::deque<Position> positions_;               // samples; they show which version is --tombstone-retention old
  Version wanted_floor_ = 0;                     // tombstones up to it are dropped, some with each slice
  Version stored_floor_ = 0;                     // those up to it are in the stored state, so they may be dropped early
  Position last_begin_;                          // where the last checkpoint began
  std::deque<Dropped> dropped_;                  // not yet removed from the stored state
  std::atomic<std::uint64_t> dropped_bytes_{0};  // of these keys; the executor sets it
  std::atomic<bool> drops_wait_{false};          // more could be dropped if these were fewer; likewise
  Version covered_floor_ = 0;                    // of the batch that the checkpoint covers
};

}  // namespace kilokv::server
