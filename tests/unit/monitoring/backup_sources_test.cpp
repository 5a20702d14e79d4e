// The metrics of backups and of the archive.
#include <gtest/gtest.h>

#include <string>

#include "server/monitoring/sources.hpp"

namespace kilokv::server {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(BackupSources, ShowEachNumber) {
  BackupMetrics backups;
  LogMetrics log;
  backups.complete = 1;
  backups.interrupted = 2;
  backups.failed = 3;
  backups.sent_bytes = 4;
  backups.last_complete = 5;
  backups.is_running = true;
  log.archive_failures = 6;
  log.archive_gap_batches = 7;
  Families families;
  add_backups(backups, {.on = true, .ended = true, .batch = 8, .lag_bytes = 9}, log, 10, &families);
  const std::string text = families.text();
  for (const char* line :
       {"kilokv_backups_total{result=\"complete\"} 1", "kilokv_backups_total{result=\"interrupted\"} 2",
        "kilokv_backups_total{result=\"failed\"} 3", "kilokv_backup_sent_bytes_total 4",
        "kilokv_backup_last_complete_timestamp_seconds 5", "kilokv_backup_running 1", "kilokv_archive_failures_total 6",
        "kilokv_archive_gap_batches 7", "kilokv_archive_batch 8", "kilokv_archive_lag_bytes 9",
        "kilokv_archive_lag_limit_bytes 10", "kilokv_archive_enabled 1", "kilokv_archive_ended 1"}) {
    EXPECT_TRUE(has_line(text, line)) << line << " in:\n" << text;
  }
}

TEST(BackupSources, WithoutAnArchiveTheyAreThereAndZero) {
  Families families;
  add_backups({}, {}, {}, 10, &families);
  const std::string text = families.text();
  for (const char* line : {"kilokv_archive_enabled 0", "kilokv_archive_ended 0", "kilokv_archive_gap_batches 0",
                           "kilokv_backup_running 0"}) {
    EXPECT_TRUE(has_line(text, line)) << line;
  }
}

}  // namespace
}  // namespace kilokv::server
