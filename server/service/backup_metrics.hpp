// Counts backups for the metrics. Thread safety: any thread may read; the thread that makes backups writes.
#pragma once

#include <atomic>
#include <cstdint>

namespace kilokv::server {

struct BackupMetrics {
  // Streams that ended. A backup that goes on after a lost connection has several.
  std::atomic<std::uint64_t> complete{0}, interrupted{0}, failed{0};
  std::atomic<std::uint64_t> sent_bytes{0};
  std::atomic<bool> is_running{false};
  std::atomic<double> last_complete{0};  // when the last one was complete, in seconds since 1970; 0: none was
};

}  // namespace kilokv::server
