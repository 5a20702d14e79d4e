// Makes backups for calls, one at a time, on a thread of its own with a low priority. It reads the next piece when the
// client has taken the last one and the rate allows it. So a backup takes little memory, and the pipeline never waits.
//
// When a stream ends early, the snapshot is kept for a while: the client may come again and go on.
//
// Thread safety: all members.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/core/backup.hpp"
#include "server/service/call_environment.hpp"

namespace kilokv::server {

class BackupCall;

class BackupStreamer {
 public:
  explicit BackupStreamer(CallEnvironment* environment) : environment_(environment) {}
  ~BackupStreamer() { close(); }

  // Takes a call whose request has come. RESOURCE_EXHAUSTED: another backup is being made. A client that goes on with
  // the same backup takes the place of its own earlier call.
  Status add(std::shared_ptr<BackupCall> call);
  // Something about the call has changed. Takes no lock that is held while a call is used.
  void wake();
  // Ends the thread, and lets go of the snapshot. No call is taken after this.
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  void serve();
  void stream(BackupCall* call);
  void count_end(const Status& status, bool is_over);
  Status find_source(BackupCall* call, bool* is_new);
  Status send_all(BackupCall* call);
  Status send_frame(BackupCall* call, const std::string& frame);
  Status charge(BackupCall* call, std::uint64_t bytes);
  Status wait_for_turn(BackupCall* call, std::uint64_t bytes);
  Clock::time_point end_of_age() const {
    return began_ + std::chrono::microseconds(environment_->options.backup_age_us_max);
  }
  bool is_too_old() const { return Clock::now() > end_of_age(); }
  void drop_source();

  CallEnvironment* const environment_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;  // from the first call on
  bool stopping_ = false;
  std::uint64_t changes_ = 0;
  std::shared_ptr<BackupCall> next_, current_;
  std::string current_backup_;  // the id of the backup that is being streamed
  // Only the thread uses these.
  std::unique_ptr<BackupSource> source_;
  Clock::time_point began_, next_turn_;
  bool announced_ = false;
};

}  // namespace kilokv::server
