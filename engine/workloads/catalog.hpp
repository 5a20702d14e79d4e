// The table of the workloads: the properties of each by its name, and how its generator is made. Only the library
// includes it.
//
// The paper's sizes are those of PR-STM (section 4) for bank to graph, of KILO TM (section 5) for atm and ht-h to
// apriori, and the largest of GPU-LocalTM (section 5.1) for local-ht to local-ga. STMBench7 has 100,000 atomic parts.
// TPC-C, YCSB, array-walk and the items of apriori have no size in their sources.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/workloads/workload.hpp"

namespace kilokv::engine {

struct CatalogEntry {
  WorkloadKind kind;
  Workload::Generator (*make)(const WorkloadOptions& options, std::uint64_t seed);
};

const std::vector<CatalogEntry>& catalog();

}  // namespace kilokv::engine
