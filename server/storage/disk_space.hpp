// Admission by disk space: what was admitted must fit when it is appended, so a full disk refuses new work instead of
// stopping the server.
//
// A reserved byte counts three times: in the write-ahead log, in the log family's file that replaces it, and in the
// state that a checkpoint makes of it. Bytes appended since the last look at the file system count in the same way, and
// what lies in memory buffers counts once, since its file is still to come. What sessions store counts twice: each
// checkpoint writes all of it while the one before is still there, and compaction copies it.
//
// Thread safety: all of it. The good path is an addition and a few loads; the file system is asked every 100 ms, and
// again before anything is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

class DiskSpace {
 public:
  struct Sample {
    std::uint64_t free_bytes = 0;
    std::uint64_t unflushed_bytes = 0;  // in memory buffers
    std::uint64_t session_bytes = 0;    // stored results of all sessions
  };

  DiskSpace(std::uint64_t reserve_bytes, std::function<Sample()> measure);

  // RESOURCE_EXHAUSTED when it would not fit; nothing is reserved then.
  Status reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  // RESOURCE_EXHAUSTED when the sessions and what is unflushed would not fit, the reserve used up.
  Status check_checkpoint();
  void appended(std::uint64_t bytes) { appended_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  std::uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }

 private:
  // What is weighed against the free space: taken once, so that an error shows the numbers that were compared.
  struct Need {
    std::uint64_t free_bytes, unflushed_bytes, session_bytes, appended_bytes, reserved_bytes;
  };

  void measure();
  void measure_when_old();
  Need need(std::uint64_t reserved) const;
  bool fits(const Need& need) const;
  // `wanted`: the part of need.reserved_bytes that is refused.
  Status refuse(const Need& need, std::uint64_t wanted) const;

  const std::uint64_t reserve_bytes_;
  const std::function<Sample()> measure_;
  std::mutex measure_mutex_;
  std::atomic<std::int64_t> measured_at_us_{0};
  std::atomic<std::uint64_t> free_bytes_{0};
  std::atomic<std::uint64_t> unflushed_bytes_{0};
  std::atomic<std::uint64_t> session_bytes_{0};
  std::atomic<std::uint64_t> appended_bytes_{0};  // since the last look
  std::atomic<std::uint64_t> reserved_bytes_{0};
};

}  // namespace kilokv::server::storage
