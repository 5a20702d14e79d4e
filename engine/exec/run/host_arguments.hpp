// The arguments that every parallel strategy gets for a batch, in the host's memory. An executor on a device copies the
// columns from there, and the simulator works on them.
#pragma once

#include <cstdint>

#include "engine/exec/run/executor.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/stm/batch_shape.hpp"

namespace kilokv::engine {

// Threads of the host.
inline BatchThreads host_threads(std::uint32_t number) {
  return {.number = number, .group_width = 1, .groups = number};
}

// The shape of the batch, for a run on these threads. `each`: the number of transactions that one thread runs as a
// group; 0: automatic.
BatchShape shape_of(const ResolvedBatch& batch, const BatchRecords& records, const BatchThreads& threads,
                    std::uint32_t each = 0);

// Fills `arguments`. They point into `batch`, `records` and `results`.
void set_batch_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                         BatchArguments<HostSpace>* arguments);

}  // namespace kilokv::engine
