// The interface of what runs a resolved batch in parallel: on threads of the host (ordered_host.hpp), on a device
// (device_executor.hpp), or in the simulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/resolve/batch_records.hpp"
#include "engine/exec/resolve/equal_words.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/exec/run/stage_clock.hpp"
#include "engine/exec/validate/read_set.hpp"
#include "engine/platform/device.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// A batch without ranges, ready to run. It holds references, so everything must outlive the run.
struct ResolvedBatch {
  const BatchHeader& header;
  const TransactionColumns& columns;
  const Column<std::uint8_t>& expires;
  const std::vector<std::uint32_t>& order;  // position -> transaction; empty: both are equal
  Version tombstone_floor;
  const RecordStore& store;
  const BatchResolver& resolver;
  const EqualWords& equal;
  StageClock& clock;  // run() says which stages it enters, and which time other threads used
};

// What a device found and did in its table (table/cell_digest.hpp).
struct CellDigests {
  std::uint64_t found = 0;   // the sum over the keys of the cell that each of them had before the batch
  std::uint64_t change = 0;  // the sum over the records of what has changed
};

class Executor {
 public:
  virtual ~Executor() = default;

  // The names of the strategies that it has, at least one. use(i) makes run() take strategy i from now on. Before that,
  // run() takes the first.
  virtual std::vector<std::string> strategies() const = 0;
  virtual void use(std::size_t) {}

  // Brings its copy of the store up to date, if it has one. run() does the same. Fails only on a device. The executor
  // is then not used again.
  [[nodiscard]] virtual Status prepare(const RecordStore&) { return {}; }

  // Whether run() works on copies of the records on the host. The caller has then gathered them. If not, it compares
  // the executor's table with the host's (digests()).
  virtual bool needs_records() const { return true; }
  // Runs the batch. Fills `results`, which are reset before. If it needs records, it writes the cells that the batch
  // leaves to `records`.
  // The results include the number of passes. They may have deltas (BatchResults::kDelta). Fails only on a device.
  // Results and cells are then unspecified. RESOURCE_EXHAUSTED: the device has no memory for this batch, and the
  // executor can be used again. After any other error, it is not used again.
  [[nodiscard]] virtual Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                                   ExecutionReport* report) = 0;
  // Those of the last run(). Requires: run() needed no records.
  virtual CellDigests digests() const { return {}; }
  // The largest number of transactions in a batch.
  virtual std::size_t transactions_max() const { return SIZE_MAX; }
  // Tells an executor on a device that something other than run() has changed the record of this id.
  virtual void changed(KeyId) {}
  // Checks a large read set. The device and the caller's thread share the work. Errors: as for run().
  // Requires: device() is not null.
  [[nodiscard]] virtual Status validate(const RecordStore&, const ReadSet&, ValidatorLanes, ValidatorResult* result) {
    *result = {.is_complete = false};
    return {};
  }
  // The device that it runs on; null: the host.
  virtual const DeviceInfo* device() const { return nullptr; }
  virtual std::size_t memory_bytes() const = 0;  // in memory of the host
};

}  // namespace kilokv::engine
