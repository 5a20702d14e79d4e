// Admission by disk space. Admitted work must fit on the disk when it is appended, so that a full disk refuses new work
// and does not stop the server. So must the next checkpoint, because a checkpoint that fails would stop it too.
//
// These bytes must fit into the free space:
// - three times what is reserved or was just appended. It goes into the write-ahead log, into the file of the log
// family
//   that replaces it, and into the state.
// - what is in memory buffers, because the file of each is still to be written.
// - the state that changed since the last checkpoint, because the next one writes it.
// - twice the stored results of sessions. Each checkpoint writes all of them, beside those of the checkpoint before.
//
// New data must also leave --disk-reserve free, and room for the largest compaction, which writes its result before it
// removes its input. Reads and deletes need little, and may use both.
//
// The disk is *short of space* when new data is refused or soon will be. Then a checkpoint and a trim give room back:
// the log records that they cover are dropped.
//
// Thread safety: any thread. Without a refusal, a call costs an addition and a few loads. The file system is measured
// every 100 ms, and again before anything is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"

namespace kilokv::server::storage {

class DiskSpace {
 public:
  struct Sample {
    std::uint64_t free_bytes = 0;
    std::uint64_t unflushed_bytes = 0;   // in memory buffers
    std::uint64_t state_bytes = 0;       // that the next checkpoint writes, at most
    std::uint64_t compaction_bytes = 0;  // that the largest compaction of the state writes, at most
    std::uint64_t session_bytes = 0;     // stored results of all sessions
    std::uint64_t disk_bytes = 0;        // the size of the file system; only to be shown
  };

  DiskSpace(std::uint64_t reserve_bytes, std::function<Sample()> measure);

  // Reserves `bytes`. RESOURCE_EXHAUSTED if they would not fit; then nothing is reserved.
  Status reserve(std::uint64_t bytes, LogUse use);
  void release(std::uint64_t bytes);
  // How many bytes may be reserved beside those that are, as of the last measurement.
  std::uint64_t room(LogUse use);
  // RESOURCE_EXHAUSTED if a checkpoint would not fit, even with the reserve used up.
  Status check_checkpoint();
  void appended(std::uint64_t bytes) { appended_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  bool is_short();
  // Whether a compaction fits, even with the reserve used up.
  bool can_compact() const;
  std::uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t disk_bytes() const { return disk_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }

 private:
  // The numbers that are compared with the free space. They are read once, so that an error shows the numbers that were
  // compared.
  struct Need {
    LogUse use;
    Sample sample;
    std::uint64_t appended_bytes, reserved_bytes;
  };

  void measure();
  void measure_when_old();
  Need need(LogUse use, std::uint64_t reserved) const;
  // What must fit before anything that is reserved or was just appended.
  std::uint64_t fixed_bytes(const Need& need) const;
  // How many bytes of log fit beside that. Nothing if not even that fits.
  std::optional<std::uint64_t> bytes_for_log(const Need& need) const;
  bool fits(const Need& need) const;
  // The error of a refusal. `wanted`: the part of need.reserved_bytes that is refused.
  Status refuse(const Need& need, std::uint64_t wanted) const;

  const std::uint64_t reserve_bytes_;
  const std::function<Sample()> measure_;
  std::mutex measure_mutex_;
  std::atomic<std::int64_t> measured_at_us_{0};
  std::atomic<std::uint64_t> free_bytes_{0}, unflushed_bytes_{0}, state_bytes_{0}, compaction_bytes_{0},
      session_bytes_{0}, disk_bytes_{0};
  std::atomic<std::uint64_t> appended_bytes_{0};  // since the last measurement
  std::atomic<std::uint64_t> reserved_bytes_{0};
};

}  // namespace kilokv::server::storage
