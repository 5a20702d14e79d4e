// Which log records are kept, in runs of a few megabytes: enough to trim by time and by bytes without a word of memory
// or a look at the disk for each record.
//
// Thread safety: all of it; the log worker adds, the checkpoint worker trims.
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

  // Recovery: a closed segment, in order, before any add().
  void restore(const LogSegment& segment);

  // A record that follows all others. Returns the segment that it completed, to be stored with it.
  std::optional<LogSegment> add(BatchNumber batch, TimeUs time_us, std::uint64_t bytes);

  // Forgets the closed segments that lie before batch `before` whole, as long as they are too old or the bytes kept are
  // too many. Returns them.
  std::vector<LogSegment> trim(BatchNumber before, TimeUs oldest_us, std::uint64_t bytes_max);

  std::uint64_t bytes() const;
  BatchNumber first_batch() const;  // 0: none kept

 private:
  const std::uint64_t segment_bytes_;
  mutable std::mutex mutex_;
  std::deque<LogSegment> closed_;
  LogSegment open_;  // first_batch 0: empty
  std::uint64_t bytes_ = 0;
};

}  // namespace kilokv::server::storage
