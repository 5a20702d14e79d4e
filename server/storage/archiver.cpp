#include "server/storage/archiver.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "server/core/fail_point.hpp"
#include "server/storage/archive_name.hpp"
#include "server/storage/backup_format.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

// The size of one file. One record more may come. Each look makes as many files as it needs.
constexpr std::size_t kFileBytes = kArchiveFileBytes;

Status refused(const std::string& what) {
  return {StatusCode::failed_precondition, ErrorReason::failed, "--archive-dir: " + what};
}

Status write_durably(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return system_failure("cannot open " + path);
  Status status;
  while (status.ok() && !bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) status = system_failure("cannot write " + path);
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (status.ok() && ::fsync(file) != 0) status = system_failure("cannot sync " + path);
  ::close(file);
  return status;
}

}  // namespace

Archiver::Archiver(const StorageOptions& options, const Store* store, LogPins* pins, const LogHistory* history,
                   const DatabaseIdentity& identity, std::function<BatchNumber()> durable)
    : options_(options),
      store_(store),
      pins_(pins),
      history_(history),
      identity_(identity),
      durable_(std::move(durable)),
      folder_(archive_folder(options.archive_dir, identity.incarnation)) {}

Archiver::~Archiver() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The directory itself must be there: a path that was mistyped, or a disk that is not mounted, must not count as one.
Status Archiver::make_folder() const {
  std::error_code error;
  if (!std::filesystem::is_directory(options_.archive_dir, error)) {
    return refused(options_.archive_dir + " is no directory; make it first");
  }
  if (::mkdir(folder_.c_str(), S_IRWXU) == 0) return sync_directory(options_.archive_dir);
  return errno == EEXIST ? Status() : refused(system_failure("cannot create " + folder_).message());
}

// After the last batch in the archive, or with the first record that the log still has.
Status Archiver::find_begin() {
  BatchNumber last = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const auto batches = batches_of_archive_file(it->path().filename().string());
    if (batches) last = std::max(last, batches->second);
  }
  if (error) return refused("cannot list " + folder_ + ": " + error.message());
  if (last > durable_()) {
    return refused(folder_ + " has batch " + std::to_string(last) + ", but the database ends with batch " +
                   std::to_string(durable_()) + ": the archive is of another copy of the database. Choose another one");
  }
  const BatchNumber first = history_->first_batch();
  const BatchNumber next = first == 0 ? durable_() + 1 : first;
  if (last + 1 < next && (last != 0 || next > 1)) {
    store_->metrics().archive_gap_batches.store(next - 1 - last, std::memory_order_relaxed);
    problem("the archive lacks the batches " + std::to_string(last + 1) + " to " + std::to_string(next - 1) +
                ", which the log does not have any more; make a new backup now",
            false);
  }
  batch_.store(std::max(last, next - 1));
  return {};
}

Status Archiver::start() {
  if (Status status = make_folder(); !status.ok()) return status;
  const std::lock_guard lock(pins_->mutex());
  if (Status status = find_begin(); !status.ok()) return status;
  pin_ = pins_->add(batch() + 1, options_.archive_required);
  lag_bytes_.store(history_->bytes_from(batch() + 1));
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "archive");
  return {};
}

Status Archiver::refusal() const {
  constexpr std::int64_t kRetryAfterUs = 1000000;
  return Status::exhausted(ErrorReason::archive_late,
                           {"archive", std::to_string(options_.archive_lag_max) + " bytes of log that it lacks",
                            std::to_string(lag_bytes()) + " bytes", "--archive-lag-max"},
                           kRetryAfterUs);
}

// Looks a few times in each interval, so that a record is never late. The last look begins after the log has stopped,
// so it finds all records.
void Archiver::run() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  const std::chrono::microseconds pause(options_.archive_interval_us / 2);
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last && !ended();) {
    is_last = stop_.wait_for(lock, pause, [this] { return stopping_; });
    lock.unlock();
    look();
    lock.lock();
  }
}

void Archiver::look() {
  if (pin_->lost.load()) return end("the log was trimmed before it was archived");
  const Status copied = copy_all();
  if (copied.ok()) {
    has_problem_ = false;
    return;
  }
  store_->metrics().archive_failures.fetch_add(1, std::memory_order_relaxed);
  if (!options_.archive_required && lag_bytes() > options_.archive_lag_max) return end(copied.message());
  if (!has_problem_) problem(copied.message(), false);
  has_problem_ = true;
}

void Archiver::end(const std::string& why) {
  pin_->lost.store(true);
  ended_.store(true);
  problem("the archive has ended after batch " + std::to_string(batch()) + ": " + why +
              "; what comes later is in no archive. Start kilokvd again, and make a new backup",
          true);
}

void Archiver::problem(const std::string& why, bool ended) {
  if (options_.on_archive_problem) options_.on_archive_problem(why, ended);
}

Status Archiver::copy_all() {
  for (const BatchNumber durable = durable_(); batch() < durable;) {
    std::string file;
    BatchNumber to = 0;
    const Result<std::uint64_t> bytes = gather(durable, &file, &to);
    if (!bytes.ok()) return bytes.status();
    const std::string name = folder_ + "/" + archive_file_name(batch() + 1, to), partial = name + ".partial";
    if (fail_point("storage.archive.write")) return {StatusCode::internal, "fail point storage.archive.write"};
    if (Status status = write_durably(partial, file); !status.ok()) return status;
    if (std::rename(partial.c_str(), name.c_str()) != 0) return system_failure("cannot rename " + partial);
    if (Status status = sync_directory(folder_); !status.ok()) return status;
    batch_.store(to);
    pin_->from.store(to + 1);
    lag_bytes_.fetch_sub(std::min(*bytes, lag_bytes()));
  }
  return {};
}

// Makes a file of records up to `last`, or of fewer if they are many. Returns the bytes of the records.
Result<std::uint64_t> Archiver::gather(BatchNumber last, std::string* file, BatchNumber* to) {
  std::uint64_t index = 0, bytes = 0;
  std::uint32_t crc = 0;
  BackupEnd end;
  const BatchNumber first = batch() + 1;
  const std::unique_ptr<rocksdb::Iterator> it(
      store_->db()->NewIterator(rocksdb::ReadOptions(), store_->family(Family::log)));
  BatchNumber next = first;
  std::string payload;
  for (it->Seek(ordered_key(first)); it->Valid() && next <= last && file->size() < kFileBytes; it->Next(), ++next) {
    const std::string_view record_bytes(it->value().data(), it->value().size());
    const Result<RecordView> record = RecordView::parse(record_bytes);
    if (!record.ok()) return record.status();
    if (record->header().number != next) break;
    if (next == first) {
      const ArchiveHeader header{identity_.id, identity_.incarnation.id, first, record->previous_crc()};
      crc = encode_frame(FrameKind::archive, index++, crc, encode_archive(header), file);
    }
    put_log_entry(record_bytes, &payload);
    if (payload.size() >= kFramePayloadBytes) {
      crc = encode_frame(FrameKind::log, index++, crc, payload, file);
      payload.clear();
    }
    bytes += record_bytes.size();
    end.position = {.batch = next,
                    .next_version = record->next_version(),
                    .tombstone_floor = record->tombstone_floor(),
                    .time_us = record->header().time_us,
                    .state_hash = record->state_hash()};
  }
  if (!it->status().ok()) return store_->status_of(it->status(), "archiving the log");
  if (next == first) return Status(StatusCode::internal, "the log lacks batch " + std::to_string(first));
  if (!payload.empty()) crc = encode_frame(FrameKind::log, index++, crc, payload, file);
  end.frames = index + 1;
  encode_frame(FrameKind::archive_end, index, crc, encode_end(end), file);
  *to = next - 1;
  return bytes;
}

}  // namespace kilokv::server::storage
