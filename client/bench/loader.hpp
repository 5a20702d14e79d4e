// Writes a workload's initial records into the database, except those that are already there. Thread safety: none.
#pragma once

#include <cstdint>

#include "client/bench/run_options.hpp"

namespace kilokv::bench {

struct LoadReport {
  std::uint64_t written = 0;
  std::uint64_t there_already = 0;
  std::int64_t elapsed_us = 0;
};

// Sends batches, several in flight. Returns when all are durable. The first error ends it.
client::Expected<LoadReport> load_initial_records(client::Session* session, const engine::Workload& workload,
                                                  const RunOptions& options);

}  // namespace kilokv::bench
