// The sources of the database and its log (sources.hpp).
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/database_events.hpp"
#include "server/core/slow_transaction.hpp"
#include "server/monitoring/sources.hpp"

namespace kilokv::server {
namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

double load(const std::atomic<std::uint64_t>& counter) { return number(counter.load(std::memory_order_relaxed)); }

void add_strategies(const CoreMetrics& core, Families* families) {
  Families::Family batches = families->counter(
      "kilokv_batches_total", "Batches that ran, by strategy: serially, in parallel on the CPU, or on a device");
  const std::vector<engine::StrategyInfo>& all = engine::strategy_infos();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_serial = all[i].name == "serial";
    batches.add(load(core.batches.at(i).on_cpu),
                {{"strategy", all[i].name}, {"ran", is_serial ? "serial" : "parallel"}});
    if (!is_serial) batches.add(load(core.batches.at(i).on_device), {{"strategy", all[i].name}, {"ran", "device"}});
  }
}

void add_batches(const DatabaseStatus& status, const CoreMetrics& core, Families* families) {
  add_strategies(core, families);
  Families::Family transactions =
      families->counter("kilokv_transactions_total", "Transactions that ended, by their outcome");
  transactions.add(number(status.committed), {{"outcome", "COMMITTED"}});
  transactions.add(number(status.guard_failed), {{"outcome", "GUARD_FAILED"}});
  transactions.add(number(status.wait_expired), {{"outcome", "WAIT_EXPIRED"}});
  transactions.add(number(status.overflow), {{"outcome", "OVERFLOW"}});
  transactions.add(number(status.type_mismatch), {{"outcome", "TYPE_MISMATCH"}});
  families->histogram("kilokv_batch_transactions", "Transactions of a batch")
      .add(core.batch_transactions.snapshot(), 1);
  families->histogram("kilokv_batch_execution_seconds", "Time in which the engine ran a batch, in seconds")
      .add(core.execution.snapshot(), kMicrosecondsInASecond);
  families->gauge("kilokv_batch_running_seconds", "Time that the batch in execution has taken, in seconds; 0 is none")
      .add(status.execution_running_seconds);
  Families::Family checks = families->counter("kilokv_shadow_checks_total",
                                              "Batches that the referee replayed, or that were too large for it");
  checks.add(number(status.shadow_batches), {{"result", "equal"}});
  checks.add(number(status.shadow_skipped), {{"result", "skipped"}});
}

void add_expiries(const DatabaseStatus& status, Families* families) {
  families->gauge("kilokv_expiring_records", "Records that expire").add(number(status.engine.expiring));
  families->counter("kilokv_expired_records_total", "Records that were deleted because they had expired")
      .add(number(status.expired));
  families
      ->gauge("kilokv_expiry_lag_seconds",
              "Time for which the oldest record that has expired is still there, in seconds; 0: there is none")
      .add(static_cast<double>(status.expiry_lag_us) / kMicrosecondsInASecond);
}

void add_waiting(const DatabaseStatus& status, const CoreMetrics& core, const DatabaseOptions& options,
                 Families* families) {
  families->gauge("kilokv_queue_transactions", "Transactions that were accepted and are not yet in a batch")
      .add(number(status.queued_transactions));
  families->gauge("kilokv_queue_transactions_limit", "Transactions that the queue may hold (--queue-transactions-max)")
      .add(number(options.queue_transactions_max));
  families
      ->histogram("kilokv_queue_wait_seconds",
                  "Time from the admission of a request until its first transaction ran, in seconds")
      .add(core.queue_wait.snapshot(), kMicrosecondsInASecond);
  Families::Family slow =
      families->counter("kilokv_slow_transactions_total",
                        "Transactions that took --slow-transaction or longer, by the stage that took longest");
  for (std::size_t i = 0; i < kSlowReasons; ++i) {
    slow.add(number(status.slow.at(i)), {{"reason", to_string(static_cast<SlowReason>(i))}});
  }
  families->counter("kilokv_requests_abandoned_total", "Requests whose clients went away before the answer")
      .add(number(status.abandoned));
  families->gauge("kilokv_parked_transactions", "Transactions that wait for a guard").add(number(status.parked));
  families->gauge("kilokv_parked_transactions_limit", "Transactions that may wait for a guard (--parked-max)")
      .add(number(options.parked_max));
  families->counter("kilokv_parkings_total", "How often a transaction began to wait, or waited on")
      .add(load(core.parkings));
  families->gauge("kilokv_sessions", "Open sessions").add(number(status.sessions));
  families->gauge("kilokv_sessions_limit", "Sessions that may be open (--sessions-max)")
      .add(number(options.sessions_max));
  families->gauge("kilokv_uploads", "Uploaded read sets that are not committed").add(number(status.uploads));
}

// With --device auto, the CPU is as good as a device, unless there was one.
void add_engine(const DatabaseStatus& status, const CoreMetrics& core, const ServerFacts& facts, Families* families) {
  const bool has_lost = core.devices_lost.load(std::memory_order_relaxed) > 0;
  const bool is_degraded = has_lost || (facts.device != "auto" && !status.device.reason.empty());
  families->gauge("kilokv_records", "Keys that have a value").add(number(status.engine.records));
  families->gauge("kilokv_tombstones", "Deleted keys whose version is kept").add(number(status.engine.tombstones));
  families->gauge("kilokv_table_slots", "Slots of the table").add(number(status.engine.table_slots));
  families->gauge("kilokv_device_info", "Where batches run now; always 1")
      .add(1, {{"device", status.device.name}, {"model", status.device.model}});
  families->counter("kilokv_devices_lost_total", "Devices that the server gave up, because they failed")
      .add(load(core.devices_lost));
  families->gauge("kilokv_device_degraded", "Whether batches do not run on the device that they should use: 1 or 0")
      .add(is_degraded ? 1 : 0);
}

void add_clock(const CoreMetrics& core, Families* families) {
  using Kind = ClockChange::Kind;
  Families::Family changes =
      families->counter("kilokv_clock_changes_total", "How often the system clock did not go on as expected");
  for (const auto& [kind, name] :
       {std::pair{Kind::jumped, "jumped"}, std::pair{Kind::ahead, "ahead"}, std::pair{Kind::behind, "behind"}}) {
    changes.add(load(core.clock_changes[static_cast<std::size_t>(kind)]), {{"kind", name}});
  }
  families
      ->gauge("kilokv_clock_out_of_step_seconds",
              "System clock minus the time of the batches, which do not follow it, in seconds; 0 if they do")
      .add(static_cast<double>(core.clock_out_of_step_us.load(std::memory_order_relaxed)) / kMicrosecondsInASecond);
}

void add_checkpoints(const DatabaseStatus& status, const CoreMetrics& core, const DatabaseOptions& options,
                     Families* families) {
  families->histogram("kilokv_checkpoint_seconds", "Time from the begin of a checkpoint until it counted, in seconds")
      .add(core.checkpoint.snapshot(), kMicrosecondsInASecond);
  families
      ->gauge("kilokv_checkpoint_running_seconds",
              "Time that the checkpoint under way has taken, in seconds; 0 is none")
      .add(status.checkpoint_running_seconds);
  families->gauge("kilokv_checkpoint_age_seconds", "Time since the last checkpoint, or since the start, in seconds")
      .add(status.checkpoint_age_seconds);
  families->counter("kilokv_checkpoints_put_off_total", "Checkpoints that were put off, because the disk had no room")
      .add(load(core.checkpoints_put_off));
  families->gauge("kilokv_log_since_checkpoint_bytes", "Log records since the last checkpoint, in bytes")
      .add(number(status.log.bytes_since_checkpoint));
  families
      ->gauge("kilokv_checkpoint_log_limit_bytes",
              "Log records that start a checkpoint (--checkpoint-log-bytes), in bytes")
      .add(number(options.checkpoint_log_bytes));
}

void add_disk(const LogUsage& log, std::uint64_t disk_reserve_bytes, Families* families) {
  families->gauge("kilokv_disk_free_bytes", "Free space of the file system, in bytes").add(number(log.free_bytes));
  families->gauge("kilokv_disk_bytes", "Size of the file system, in bytes").add(number(log.disk_bytes));
  families->gauge("kilokv_disk_reserve_bytes", "Free space that new data may not use (--disk-reserve), in bytes")
      .add(number(disk_reserve_bytes));
  families->gauge("kilokv_disk_short", "Whether new data is refused for want of disk space, or soon will be: 1 or 0")
      .add(log.short_of_space ? 1 : 0);
}

}  // namespace

void add_pipeline(const DatabaseStatus& status, const CoreMetrics& core, const DatabaseOptions& options,
                  const ServerFacts& facts, Families* families) {
  add_batches(status, core, families);
  add_expiries(status, families);
  add_waiting(status, core, options, families);
  add_engine(status, core, facts, families);
  add_clock(core, families);
}

void add_backups(const BackupMetrics& backups, const ArchiveUsage& archive, const LogMetrics& log,
                 std::uint64_t lag_max, Families* families) {
  Families::Family ended =
      families->counter("kilokv_backups_total", "Streams of backups that ended: with the end, without, or by an error");
  ended.add(load(backups.complete), {{"result", "complete"}});
  ended.add(load(backups.interrupted), {{"result", "interrupted"}});
  ended.add(load(backups.failed), {{"result", "failed"}});
  families->gauge("kilokv_backup_running", "Whether a backup is being streamed: 1 or 0")
      .add(backups.is_running ? 1 : 0);
  families->counter("kilokv_backup_sent_bytes_total", "Bytes of backups that were sent, in bytes")
      .add(load(backups.sent_bytes));
  families
      ->gauge("kilokv_backup_last_complete_timestamp_seconds",
              "When the last backup since the start was complete, in seconds since 1970; 0: none was")
      .add(backups.last_complete);
  families->gauge("kilokv_archive_enabled", "Whether the server has an archive (--archive-dir): 1 or 0")
      .add(archive.on ? 1 : 0);
  families->gauge("kilokv_archive_ended", "Whether the archive has ended, and lacks all later batches: 1 or 0")
      .add(archive.ended ? 1 : 0);
  families->gauge("kilokv_archive_batch", "Number of the last batch in the archive").add(number(archive.batch));
  families->gauge("kilokv_archive_lag_bytes", "Durable log records that the archive lacks, in bytes")
      .add(number(archive.lag_bytes));
  families->gauge("kilokv_archive_lag_limit_bytes", "Log that is kept for the archive (--archive-lag-max), in bytes")
      .add(number(lag_max));
  families->counter("kilokv_archive_failures_total", "How often a file of the archive could not be written")
      .add(load(log.archive_failures));
  families
      ->gauge(
          "kilokv_archive_gap_batches",
          "Batches that the archive lacked at the start, between its files or before the log, and no backup since has")
      .add(load(log.archive_gap_batches));
}

void add_log(const DatabaseStatus& status, const CoreMetrics& core, const LogMetrics& log,
             const DatabaseOptions& options, std::uint64_t disk_reserve_bytes, Families* families) {
  families
      ->histogram("kilokv_log_append_seconds",
                  "Time in which a group of batches was encoded, written and synced, in seconds")
      .add(core.append.snapshot(), kMicrosecondsInASecond);
  families->histogram("kilokv_log_sync_seconds", "Time of a sync of the write-ahead log, in seconds")
      .add(log.sync.snapshot(), kMicrosecondsInASecond);
  families->histogram("kilokv_log_group_batches", "Batches that one sync made durable")
      .add(core.group_batches.snapshot(), 1);
  families
      ->gauge("kilokv_log_append_running_seconds",
              "Time that the group of batches under way has taken, in seconds; 0 is none")
      .add(status.append_running_seconds);
  families->counter("kilokv_log_written_bytes_total", "Log records that were written, in bytes")
      .add(load(log.written_bytes));
  families->gauge("kilokv_log_bytes", "Size of the log on the disk, in bytes").add(number(status.log.log_bytes));
  families->gauge("kilokv_log_reserved_bytes", "Log records that accepted transactions may still write, in bytes")
      .add(number(status.log.reserved_bytes));
  families->gauge("kilokv_log_first_batch", "Number of the oldest batch in the log")
      .add(number(status.log.first_batch));
  families->gauge("kilokv_log_kept_seconds", "Time for which the log goes back, in seconds")
      .add(static_cast<double>(status.log_kept_us) / kMicrosecondsInASecond);
  families->gauge("kilokv_executed_batch", "Number of the last batch that ran").add(number(status.executed_batch));
  families->gauge("kilokv_durable_batch", "Number of the last batch that is synced").add(number(status.durable_batch));
  families->gauge("kilokv_checkpoint_batch", "Number of the batch of the last checkpoint")
      .add(number(status.checkpoint_batch));
  add_checkpoints(status, core, options, families);
  add_disk(status.log, disk_reserve_bytes, families);
}

}  // namespace kilokv::server
