// The face of what runs a resolved batch in parallel: on host threads (ordered_host.hpp), on a device
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
#include "engine/exec/validate/read_set.hpp"
#include "engine/platform/device.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// A batch without ranges, ready to run. By reference: everything outlives the run.
struct ResolvedBatch {
  const BatchHeader& header;
  const TransactionColumns& columns;
  const Column<std::uint8_t>& expires;
  const std::vector<std::uint32_t>& order;  // position -> transaction; empty: the same
  Version tombstone_floor;
  const RecordStore& store;
  const BatchResolver& resolver;
  const EqualWords& equal;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // The names of the strategies that it has, at least one, and which of them run() takes from now on; the first to
  // begin with.
  virtual std::vector<std::string> strategies() const { return {"ordered"}; }
  virtual void use(std::size_t) {}

  // Brings what it keeps of the store up to date; run() does so, too. Errors: of a device; it is not used again.
  [[nodiscard]] virtual Status prepare(const RecordStore&) { return {}; }

  // Runs the batch: fills `results` (which are reset; with deltas, if it leaves_deltas()), passes included, and the
  // records' cells as they are behind it.
  // Errors, of a device; results and cells are then unspecified. RESOURCE_EXHAUSTED: it has no memory for this batch,
  // and is as it was. Any other: the executor is not used again.
  [[nodiscard]] virtual Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                                   ExecutionReport* report) = 0;
  // Whether the strategy in use leaves deltas among the results, which are yet to be settled
  // (BatchRecords::settle_deltas).
  virtual bool leaves_deltas() const = 0;
  // Of a batch.
  virtual std::size_t transactions_max() const { return SIZE_MAX; }
  // The record of this id was changed by something else than run(). For who runs on a device.
  virtual void changed(KeyId) {}
  // Checks a large read set together with the caller's thread. Errors: as of run().
  // Requires: device().
  [[nodiscard]] virtual Status validate(const RecordStore&, const ReadSet&, ValidatorLanes, ValidatorResult* result) {
    *result = {.is_complete = false};
    return {};
  }
  // The device that it runs on; null: the host.
  virtual const DeviceInfo* device() const { return nullptr; }
  virtual std::size_t memory_bytes() const = 0;  // of the host
};

}  // namespace kilokv::engine
