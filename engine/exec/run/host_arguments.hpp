// What every parallel strategy is given of a batch, where its memory is the host's own. Also for the simulator.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"

namespace kilokv::engine {

// They point into `batch`, `records` and `results`.
void set_batch_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                         BatchArguments<HostSpace>* arguments);

// At least so many elements, new ones of this value; what is there stays.
template <class T>
void grow(std::vector<T>* column, std::size_t size, T value = {}) {
  if (column->size() < size) column->resize(size, value);
}

}  // namespace kilokv::engine
