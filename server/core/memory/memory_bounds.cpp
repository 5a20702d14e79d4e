#include "server/core/memory/memory_bounds.hpp"

#include "engine/txn/validate.hpp"

namespace kilokv::server {

// A batch of so many bytes of log is there as columns, as results, as writes, and as a log record, which may be longer.
constexpr std::uint64_t kForms = 3 + kStoredValueParts;

// The keys of pairs that a batch returns are copied.
std::uint64_t whole_batch_bytes(const DatabaseOptions& options) {
  return kForms * options.batch_max_bytes + options.batch_max_reads * engine::kKeyBytesMax;
}

// Another batch is answered beside those that are in flight. The next batch begins only when at most a whole one, and
// one with as many reads, are not answered.
static std::uint64_t batches_bound(const DatabaseOptions& options) {
  return (options.batch_in_flight_max + std::uint64_t{1}) * kForms * options.batch_max_bytes +
         2 * options.batch_max_reads * engine::kKeyBytesMax + options.pools_bytes_max;
}

std::vector<MemoryOwner> memory_bounds(const DatabaseOptions& options) {
  return {{"table", 0, 0},
          {"keys", 0, 0},
          {"index", 0, 0},
          {"values", 0, options.data_bytes_max},
          {"queue", 0, options.queue_bytes_max},
          {"parked", 0, options.parked_bytes_max},
          {"sessions", 0, options.session_bytes_total_max + options.sessions_max * kSessionBytes},
          {"uploads", 0, options.uploads_bytes_max},
          {"access", 0, kAccessCopies * kAccessBytesMax},
          {"snapshots", 0, options.snapshot_bytes_max},
          {"scans", 0, options.scans_in_flight_max * options.scan_bytes_max},
          {"dropped", 0, options.dropped_bytes_max},
          {"batches", 0, batches_bound(options)}};
}

}  // namespace kilokv::server
