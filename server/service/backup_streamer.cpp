#include "server/service/backup_streamer.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/core/hex.hpp"
#include "server/service/audit_log.hpp"
#include "server/service/backup_call.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{128} << 10;  // in one answer
constexpr std::uint64_t kRateMin = std::uint64_t{64} << 10;  // as of --backup-rate-max

std::string text_of(const BackupId& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }

Status not_kept() {
  return {StatusCode::aborted, ErrorReason::snapshot_too_old,
          "the server does not keep the snapshot of this backup any more: it is older than --backup-age-max, another "
          "backup has begun, or the server has started again; start the backup over"};
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void note(const BackupCall& call, const std::string& id, BatchNumber boundary, const std::string& result) {
  log_backup(call.caller().login.get(), call.peer(), hex_of(id), boundary, result);
}

}  // namespace

Status BackupStreamer::add(std::shared_ptr<BackupCall> call) {
  std::shared_ptr<BackupCall> replaced;
  {
    const std::lock_guard lock(mutex_);
    replaced = current_;
  }
  // Asked without the lock: the call may tell of its end just now, under its own lock.
  const bool is_over = replaced == nullptr || replaced->is_over();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return draining();
    const bool is_busy = next_ != nullptr || (current_ != nullptr && (current_ != replaced || !is_over));
    const std::string& wanted = call->request().backup();
    if (is_busy && (next_ != nullptr || wanted.empty() || wanted != current_backup_)) {
      constexpr std::int64_t kRetryAfterUs = 1000000;
      return Status::exhausted(ErrorReason::calls_full, {"Backup", "one backup at a time", "another one is made", ""},
                               kRetryAfterUs);
    }
    next_ = std::move(call);
    ++changes_;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { serve(); });
      pthread_setname_np(thread_.native_handle(), "backup");
    }
  }
  changed_.notify_all();
  if (replaced != nullptr) {
    replaced->end(Status(StatusCode::cancelled, "the client goes on with this backup in another call"));
  }
  return {};
}

void BackupStreamer::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

void BackupStreamer::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ++changes_;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackupStreamer::serve() {
  constexpr int kNice = 10;  // as the threads that decode
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  constexpr std::chrono::seconds kLook{1};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (next_ == nullptr) {
      // A snapshot keeps old files, so it is not kept for nothing, least of all on a full disk.
      if (source_ != nullptr && (is_too_old() || source_->is_lost())) drop_source();
      if (source_ != nullptr) {
        changed_.wait_for(lock, kLook);
      } else {
        changed_.wait(lock);
      }
      continue;
    }
    current_ = std::move(next_);
    next_ = nullptr;
    lock.unlock();
    stream(current_.get());
    lock.lock();
    current_ = nullptr;
  }
  drop_source();
}

void BackupStreamer::drop_source() {
  source_.reset();
  current_backup_.clear();
}

void BackupStreamer::stream(BackupCall* call) {
  bool is_new = false;
  Status status = find_source(call, &is_new);
  if (!status.ok()) return call->end(status.as_not_run());
  const std::string id = text_of(source_->id());
  {
    const std::lock_guard lock(mutex_);
    current_backup_ = id;
  }
  note(*call, id, source_->boundary(), is_new ? "begins" : "goes on");
  announced_ = false;
  next_turn_ = Clock::now();
  environment_->backups.is_running.store(true);
  status = send_all(call);
  const bool is_over = call->is_over();
  count_end(status, is_over);
  note(*call, id, source_->boundary(),
       !status.ok() ? to_string(status.code()) + (" " + status.message())
       : is_over    ? "interrupted"
                    : "complete");
  const bool is_complete = status.ok() && !is_over;
  if (is_complete || status.code() == StatusCode::aborted || status.code() == StatusCode::data_loss) {
    const std::lock_guard lock(mutex_);
    drop_source();
  }
  call->end(status);
}

void BackupStreamer::count_end(const Status& status, bool is_over) {
  BackupMetrics& backups = environment_->backups;
  backups.is_running.store(false);
  if (!status.ok()) {
    backups.failed.fetch_add(1);
  } else if (is_over) {
    backups.interrupted.fetch_add(1);
  } else {
    backups.last_complete.store(seconds_since_1970());
    backups.complete.fetch_add(1);
  }
}

// The snapshot of the backup that the client wants to go on with, or a new one.
Status BackupStreamer::find_source(BackupCall* call, bool* is_new) {
  const Result<Database*> database = call->database();
  if (!database.ok()) return database.status();
  const v1::BackupRequest& request = call->request();
  if (request.bytes_per_second() != 0 && request.bytes_per_second() < kRateMin) {
    return Status::invalid({"bytes_per_second", "0, or " + std::to_string(kRateMin) + " or more",
                            std::to_string(request.bytes_per_second()), ""});
  }
  *is_new = request.backup().empty();
  if (*is_new) {
    {
      const std::lock_guard lock(mutex_);
      drop_source();
    }
    Result<std::unique_ptr<BackupSource>> opened = (*database)->open_backup();
    if (!opened.ok()) return opened.status();
    source_ = std::move(*opened);
    began_ = Clock::now();
    return {};
  }
  if (source_ == nullptr || is_too_old() || request.backup() != text_of(source_->id())) return not_kept();
  if (request.after().kind() > UINT8_MAX) {
    return Status::invalid({"after.kind", "0 to 255", std::to_string(request.after().kind()), ""});
  }
  return source_->seek({.frame = request.after().frame(),
                        .crc = request.after().crc(),
                        .kind = static_cast<std::uint8_t>(request.after().kind()),
                        .key = request.after().key()});
}

Status BackupStreamer::send_all(BackupCall* call) {
  std::string frame;
  for (;;) {
    if (call->is_over()) return {};
    if (is_too_old()) return not_kept();
    if (Status allowed = call->database().status(); !allowed.ok()) return allowed;
    const Result<bool> has_more = source_->next(&frame);
    if (!has_more.ok()) return has_more.status();
    if (!*has_more) return wait_for_turn(call, 0);  // until it is sent: only then is it complete
    if (Status status = charge(call, frame.size()); !status.ok()) return status;
    Status sent = send_frame(call, frame);
    environment_->answers.release(call->caller().client.get(), 2 * frame.size());
    if (!sent.ok() || call->is_over()) return sent;
  }
}

// A frame is here twice while it is made: as a frame, and as its entries.
Status BackupStreamer::charge(BackupCall* call, std::uint64_t bytes) {
  return environment_->answers.charge(call->caller().client.get(), 2 * bytes);
}

Status BackupStreamer::send_frame(BackupCall* call, const std::string& frame) {
  v1::BackupResponse answer;
  for (std::size_t begin = 0; begin < frame.size(); begin += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, frame.size() - begin);
    if (Status status = wait_for_turn(call, bytes); !status.ok() || call->is_over()) return status;
    answer.Clear();
    if (!announced_) {
      announced_ = true;
      answer.set_backup(text_of(source_->id()));
      answer.set_boundary(source_->boundary());
      answer.set_estimated_bytes(source_->estimated_bytes());
    }
    answer.set_data(frame.data() + begin, bytes);
    call->send(answer);
    environment_->backups.sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  return {};
}

// Ok: it is the turn of these bytes, or the call has ended. However slow the client is, it does not keep the snapshot,
// and the place of other backups, for longer than it may.
Status BackupStreamer::wait_for_turn(BackupCall* call, std::uint64_t bytes) {
  const std::uint64_t most = environment_->options.backup_rate_max, wanted = call->request().bytes_per_second();
  const std::uint64_t rate = wanted == 0 ? most : std::min(wanted, most);
  for (;;) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return draining();
      seen = changes_;
    }
    if (call->is_over()) return {};
    if (is_too_old()) return not_kept();
    const Clock::time_point now = Clock::now();
    const bool is_sent = call->is_sent();
    if (is_sent && now >= next_turn_) {
      const auto share = std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
      next_turn_ = std::max(next_turn_, now - std::chrono::milliseconds(100)) + share;
      return {};
    }
    std::unique_lock lock(mutex_);
    const auto has_changed = [&] { return changes_ != seen; };
    if (is_sent) {
      changed_.wait_until(lock, std::min(next_turn_, end_of_age() + std::chrono::milliseconds(1)), has_changed);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(100), has_changed);
    }
  }
}

}  // namespace kilokv::server
