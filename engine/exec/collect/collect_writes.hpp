// Collects every write of a batch, in rank order, for the log record. It works from the results alone, so that it is
// the same for every strategy. Stateless.
#pragma once

#include "engine/exec/collect/rank_order.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Fills `writes`. Requires: `results` are the results of `columns`, and the byte values in them are readable.
void collect_writes(const TransactionColumns& columns, const BatchResults& results, const RankOrder& order,
                    WriteColumns* writes);

}  // namespace kilokv::engine
