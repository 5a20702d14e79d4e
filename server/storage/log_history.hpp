// Which log records are kept, in segments of a few megabytes. This is enough to trim by time and by bytes, with no
// memory and no disk access for each record.
//
// Thread safety: any thread; the log worker adds, the checkpoint worker trims.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "server/storage/stored_values.hpp"

namespace kilokv::server::storage {

class LogHistory {
 public:
  explicit LogHistory(std::uint64_t segment_bytes) : segment_bytes_(segment_bytes) {}

  // Recovery: adds a closed segment, in order, before any add().
  void restore(const LogSegment& segment);

  // Adds a record that follows all others. Returns the segment that it completed, which is to be stored with the
  // record.
  std::optional<LogSegment> add(BatchNumber batch, TimeUs time_us, std::uint64_t bytes);

  // Removes and returns closed segments that lie completely before batch `before`. It removes them while they are too
  // old, or while too many bytes are kept.
  std::vector<LogSegment> trim(BatchNumber before, TimeUs oldest_us, std::uint64_t bytes_max);

  std::uint64_t bytes() const;
  std::uint64_t bytes_from(BatchNumber batch) const;  // of this record and later ones; counts whole segments
  BatchNumber first_batch() const;                    // 0: none kept
  // Every record of a later stamp is kept, and perhaps a few more; 0: none is kept.
  TimeUs since_us() const;

 private:
  const std::uint64_t segment_bytes_;
  mutable std::mutex mutex_;
  std::deque<LogSegment> closed_;
  LogSegment open_;  // first_batch 0: empty
  std::uint64_t bytes_ = 0;
  TimeUs since_us_ = 0;  // see since_us()
};

}  // namespace kilokv::server::storage
