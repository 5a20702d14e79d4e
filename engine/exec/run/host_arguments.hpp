// The arguments that every parallel strategy gets for a batch, if it works in the host's memory. The simulator uses
// them, too.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_arguments.hpp"

namespace kilokv::engine {

// Fills `arguments`. They point into `batch`, `records` and `results`.
void set_batch_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                         BatchArguments<HostSpace>* arguments);

// Gives the column at least `size` elements. New elements get `value`. The others stay as they are.
template <class T>
void grow(std::vector<T>* column, std::size_t size, T value = {}) {
  if (column->size() < size) column->resize(size, value);
}

}  // namespace kilokv::engine
