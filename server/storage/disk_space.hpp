// Admission by disk space. Admitted work must fit on the disk when it is appended, so that a full disk refuses new work
// and does not stop the server.
//
// A reserved byte counts three times: in the write-ahead log, in the file of the log family that replaces it, and in
// the state after a checkpoint. Bytes that were appended since the last measurement count in the same way. Bytes in
// memory buffers count once, because their file is still to be written. Bytes that sessions store count twice: each
// checkpoint writes all of them while the checkpoint before still exists, and compaction copies them.
//
// Thread safety: any thread. Without a refusal, a call costs an addition and a few loads. The file system is measured
// every 100 ms, and again before anything is refused.
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

  // Reserves `bytes`. RESOURCE_EXHAUSTED if they would not fit; then nothing is reserved.
  Status reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  // RESOURCE_EXHAUSTED if the sessions and the unflushed bytes would not fit, even with the reserve used up.
  Status check_checkpoint();
  void appended(std::uint64_t bytes) { appended_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  std::uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }

 private:
  // The numbers that are compared with the free space. They are read once, so that an error shows the numbers that were
  // compared.
  struct Need {
    std::uint64_t free_bytes, unflushed_bytes, session_bytes, appended_bytes, reserved_bytes;
  };

  void measure();
  void measure_when_old();
  Need need(std::uint64_t reserved) const;
  bool fits(const Need& need) const;
  // The error of a refusal. `wanted`: the part of need.reserved_bytes that is refused.
  Status refuse(const Need& need, std::uint64_t wanted) const;

  const std::uint64_t reserve_bytes_;
  const std::function<Sample()> measure_;
  std::mutex measure_mutex_;
  std::atomic<std::int64_t> measured_at_us_{0};
  std::atomic<std::uint64_t> free_bytes_{0};
  std::atomic<std::uint64_t> unflushed_bytes_{0};
  std::atomic<std::uint64_t> session_bytes_{0};
  std::atomic<std::uint64_t> appended_bytes_{0};  // since the last measurement
  std::atomic<std::uint64_t> reserved_bytes_{0};
};

}  // namespace kilokv::server::storage
