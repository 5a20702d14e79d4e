// Deletes the records that runs of a workload left in the database. Thread safety: none.
#pragma once

#include <cstdint>

#include "client/bench/run_options.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::bench {

struct ResetReport {
  std::uint64_t transactions = 0;  // that deleted something
  std::int64_t elapsed_us = 0;
};

// Deletes all keys with the names of this workload, whatever --keys was: for each prefix of its names, from the number
// 0 to the largest number. Each transaction deletes at most kResetKeys keys.
inline constexpr std::uint32_t kResetKeys = 1000;
client::Expected<ResetReport> delete_records(client::Session* session, const engine::Workload& workload,
                                             const RunOptions& options);

}  // namespace kilokv::bench
