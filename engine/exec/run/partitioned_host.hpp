// `partitioned` (stm/partitioned.hpp) on threads of the host. All work around it is done on these threads, too: each
// takes a share of the keys to find, and a share of the log to make. Only new keys, later passes and writes of a rare
// kind are the work of one thread.
//
// Thread safety: one caller at a time. Keeps its memory, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/collect/bookkeeping.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/exec/run/host_access.hpp"
#include "engine/exec/run/slot_access.hpp"
#include "engine/exec/run/stage_clock.hpp"
#include "engine/platform/host.hpp"
#include "engine/stm/partitioned.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Where the records of a batch are.
struct PartitionedRecords {
  const std::uint32_t* slot_of_key;  // [k]
  std::uint32_t absent_slot;         // of keys that are absent and only read
};

// The memory that the threads of `partitioned` share while they run a batch.
class PartitionedMemory {
 public:
  // The batch for this many threads. Good until the next call. Requires: the batch has no ranges, and all its keys are
  // resolved. `order`: position -> transaction; empty: both are equal. `before`: [m].
  const PartitionedBatch& open(const BatchHeader& header, const TransactionColumns& columns, Version tombstone_floor,
                               const std::vector<std::uint32_t>& order, const PartitionedRecords& records,
                               const PartitionedTuning& tuning, std::uint32_t threads, BatchResults* results,
                               Cell* before);
  // Only the simulator calls this. Vectors then do not move in a run with at most `uses` uses of records. Without it, a
  // mutation that drops a barrier would let a thread read memory that another one has freed.
  void stand_still(std::size_t uses);
  // Call it after the run. Fills `waiting` with the positions that wait for the second pass, in order, and returns how
  // many there are. Fills the report.
  std::uint32_t close(std::uint32_t* waiting, ExecutionReport* report) const;

  std::size_t memory_bytes() const;

 private:
  void make_room(const TransactionColumns& columns);
  static void give_back(PartitionedThread* thread);

  PartitionedBatch batch_;
  std::vector<PartitionedThread> threads_;
  std::vector<std::uint8_t> blocked_, defers_;
};

// The names of the counters that close() fills.
std::vector<const char*> partitioned_counters();

class PartitionedHost {
 public:
  // A batch without ranges, and what the engine has to run it. References: all must outlive the call.
  struct Batch {
    const BatchHeader& header;
    const TransactionColumns& columns;
    const Column<std::uint8_t>& expires;
    const std::vector<std::uint32_t>& order;
    const BatchWrites& writes;
    Version tombstone_floor;
    RecordStore* store;
    BatchResolver* resolver;
    HostAccess* access;
    RankOrder* rank_order;
    Bookkeeping* books;
    Cell* before;
    std::uint32_t* waiting;  // [n]
    BatchResults* results;
    WriteColumns* collected;
    StageClock* clock;
    ExecutionReport* report;
  };

  explicit PartitionedHost(const PartitionedTuning& tuning = {}) : tuning_(tuning) {}

  const PartitionedTuning& tuning() const { return tuning_; }
  // Runs the batch, and keeps its books. Error: that of BatchResolver::resolve(). Nothing has changed then. Requires:
  // resolver->open_shares() was called.
  Status run(const Batch& batch, ThreadTeam* team);

  std::size_t memory_bytes() const { return memory_.memory_bytes(); }

 private:
  enum class Step : std::uint8_t { find, complete, run, finish, count, place, fill };

  // Whether only the first thread has something to do.
  static constexpr bool is_alone(Step step) {
    return step == Step::complete || step == Step::finish || step == Step::place;
  }
  static constexpr Step after(Step step) { return static_cast<Step>(static_cast<std::uint8_t>(step) + 1); }
  void do_step(Step step, std::uint32_t thread);
  void do_all(std::uint32_t thread);
  void do_apart();
  void complete();
  void finish();

  PartitionedTuning tuning_;
  PartitionedMemory memory_;
  // These belong to the batch that runs.
  const Batch* batch_ = nullptr;
  const PartitionedBatch* shared_ = nullptr;
  ThreadTeam* team_ = nullptr;
  SlotAccess<HostPlatform>::Batch columns_ = {};
  Status status_;
};

}  // namespace kilokv::engine
