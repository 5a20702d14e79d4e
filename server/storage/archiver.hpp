// Copies log records to the archive: files of frames (backup_format.hpp), each with the records of some seconds. A file
// is written under another name, synced, and then renamed. So what has a name is whole.
//
// A thread of its own does this, with a low priority. It reads what is durable, and keeps what it has not copied yet
// against trimming. If it falls back by more than --archive-lag-max, the archive ends, or new work is refused.
//
// Thread safety: all members.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "server/core/commit_log.hpp"
#include "server/storage/log_history.hpp"
#include "server/storage/log_pin.hpp"
#include "server/storage/store.hpp"

namespace kilokv::server::storage {

class Archiver {
 public:
  // Everything passed in outlives it. `durable`: the last durable batch.
  Archiver(const StorageOptions& options, const Store* store, LogPins* pins, const LogHistory* history,
           const DatabaseIdentity& identity, std::function<BatchNumber()> durable);
  ~Archiver();  // copies the rest
  Archiver(const Archiver&) = delete;
  Archiver& operator=(const Archiver&) = delete;

  // Goes on after the last file that is there. FAILED_PRECONDITION: the directory cannot be used, another server uses
  // it, or its files are of another copy of the database.
  Status start();

  // So many bytes of records are durable now. A whole file of them does not wait for the interval.
  void appended(std::uint64_t bytes);
  // Whether new work must be refused.
  bool holds_up() const { return options_.archive_required && lag_bytes() > options_.archive_lag_max; }
  Status refusal() const;
  BatchNumber batch() const { return batch_.load(std::memory_order_relaxed); }  // the last one in the archive
  std::uint64_t lag_bytes() const {
    return backlog_bytes_.load(std::memory_order_relaxed) + lag_bytes_.load(std::memory_order_relaxed);
  }
  // Whether it can never go on. Its thread may hang in a disk, and not know it yet.
  bool ended() const { return ended_.load(std::memory_order_relaxed) || pin_->lost.load(); }

 private:
  Status make_folder() const;
  Status lock_folder();
  Status find_begin();
  Status check_follows(std::pair<BatchNumber, BatchNumber> batches, const std::string& path) const;
  void lacks(BatchNumber first, BatchNumber last, const std::string& why) const;
  void run();
  void look();
  Status copy_all();
  // A file that is to be written, and how many bytes of records it has: those before the start, and those after it.
  struct Gathered {
    std::string file;
    BatchNumber to = 0;
    std::uint64_t old_bytes = 0, new_bytes = 0;
  };
  Result<Gathered> gather(BatchNumber last) const;
  void copied(const Gathered& gathered);
  void end(const std::string& why);
  void problem(const std::string& why, bool ended) const;

  const StorageOptions options_;
  const Store* const store_;
  LogPins* const pins_;
  const LogHistory* const history_;
  const DatabaseIdentity identity_;
  const std::function<BatchNumber()> durable_;
  const std::string folder_;
  std::shared_ptr<LogPin> pin_;
  std::atomic<BatchNumber> batch_{0};
  // What the archive lacks of the records before the start, and of those after it. The first is known by segments only,
  // so it is at most too high, and it is 0 as soon as the archive has these records.
  std::atomic<std::uint64_t> backlog_bytes_{0}, lag_bytes_{0};
  BatchNumber start_batch_ = 0;  // the last durable one at the start
  std::atomic<bool> ended_{false};
  std::atomic<bool> has_problem_{false};  // the last look could not copy
  std::atomic<bool> is_wanted_{false};    // a look, before the interval is over
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
  int lock_ = -1;  // a file in the folder, locked
};

}  // namespace kilokv::server::storage
