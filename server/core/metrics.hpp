// What the database and its log measure about themselves while they run: times, sizes and counts since the start. The
// room that shows them to Prometheus reads them here (server/monitoring).
//
// Each is written once for a batch, a request, a sync or a checkpoint, never for a transaction, with relaxed atomics.
// So measuring costs a batch less than a microsecond.
//
// Thread safety: any thread may read. Each comment says who writes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/base/types.hpp"
#include "server/core/histogram.hpp"

namespace kilokv::server {

// Bounds in microseconds.
inline constexpr std::uint64_t kShortTimesUs[] = {10,     25,      50,      100,     250,     500,    1000,
                                                  2500,   5000,    10000,   25000,   50000,   100000, 250000,
                                                  500000, 1000000, 2500000, 5000000, 10000000};
inline constexpr std::uint64_t kLongTimesUs[] = {10000,   25000,   50000,    100000,   250000,   500000,   1000000,
                                                 2500000, 5000000, 10000000, 30000000, 60000000, 300000000};
// Bounds of numbers of things.
inline constexpr std::uint64_t kBatchSizes[] = {1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536};
inline constexpr std::uint64_t kGroupSizes[] = {1, 2, 3, 4, 6, 8, 16};

// Since when something runs. The clock is the monotonic one of its owner.
class RunningSince {
 public:
  void begin(TimeUs now_us) { since_us_.store(now_us, std::memory_order_relaxed); }
  void end() { since_us_.store(kNotRunning, std::memory_order_relaxed); }
  double seconds(TimeUs now_us) const {
    const TimeUs since_us = since_us_.load(std::memory_order_relaxed);
    return since_us == kNotRunning || now_us < since_us ? 0 : static_cast<double>(now_us - since_us) * 1e-6;
  }

 private:
  static constexpr TimeUs kNotRunning = -1;
  std::atomic<TimeUs> since_us_{kNotRunning};
};

// What the pipeline measures.
struct CoreMetrics {
  // Durability is lost, or a batch was wrong, so the process ends. Whoever finds it writes this.
  std::atomic<bool> has_failed{false};

  // The executor writes these.
  Histogram queue_wait{kShortTimesUs};  // of a request, from its admission until its first transaction is in a batch
  Histogram batch_transactions{kBatchSizes};
  Histogram execution{kShortTimesUs};  // of a batch, by the engine
  RunningSince executes;
  // Batches that ran, by their strategies in the order of engine::strategy_infos(): on the CPU, and on a device.
  static constexpr std::size_t kStrategiesMax = 16;
  struct Batches {
    std::atomic<std::uint64_t> on_cpu{0}, on_device{0};
  };
  std::array<Batches, kStrategiesMax> batches{};
  std::atomic<std::uint64_t> parkings{0};      // so often, a transaction was parked
  std::atomic<std::uint64_t> devices_lost{0};  // given up, because they failed
  // The system clock did not go on as expected (database_events.hpp): so often, by ClockChange::Kind; and how far it is
  // now from the stamps, which do not follow it.
  static constexpr std::size_t kClockKinds = 4;
  std::array<std::atomic<std::uint64_t>, kClockKinds> clock_changes{};
  std::atomic<DurationUs> clock_out_of_step_us{0};

  // The log worker writes these.
  Histogram append{kShortTimesUs};  // of the records of a group of batches, with their sync
  Histogram group_batches{kGroupSizes};
  RunningSince appends;

  // The checkpoint worker writes these.
  Histogram checkpoint{kLongTimesUs};  // of one that counts, from its begin
  std::atomic<std::uint64_t> checkpoints_put_off{0};
  RunningSince checkpoints;
  RunningSince without_checkpoint;  // since the last one, or since the start
};

// What the log measures.
struct LogMetrics {
  Histogram sync{kShortTimesUs};  // of the file to which batches are written; those of checkpoints count, too
  std::atomic<std::uint64_t> written_bytes{0};  // of log records
  // What recovery has read so far: records of the checkpoint, and batches after it.
  std::atomic<std::uint64_t> recovered_records{0}, recovered_batches{0};
  std::atomic<std::uint64_t> archive_failures{0};  // files of the archive that could not be written
  // Batches that the archive lacked at the start, between its files or before the log. 0 again after a backup.
  std::atomic<std::uint64_t> archive_gap_batches{0};
};

}  // namespace kilokv::server
