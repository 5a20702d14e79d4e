// From results to what the log carries: every write of a batch, in rank order, whatever strategy ran it.
// Stateless.
#pragma once

#include "engine/exec/collect/rank_order.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Requires: `results` are those of `columns`, and the byte values that they show are readable.
void collect_writes(const TransactionColumns& columns, const BatchResults& results, const RankOrder& order,
                    WriteColumns* writes);

}  // namespace kilokv::engine
