#include "server/storage/archiver.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

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

// The checksum of the last log record in a file of the archive.
Result<std::uint32_t> last_crc_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  FrameChain chain;
  std::uint32_t crc = 0;
  bool has_ended = false;
  for (std::string_view rest = content; !rest.empty();) {
    const Result<std::size_t> length = frame_length(rest);
    if (!length.ok()) return length.status();
    if (*length == 0 || *length > rest.size()) return Status(StatusCode::data_loss, "a frame is cut short");
    const Result<Frame> frame = decode_frame(rest.substr(0, *length));
    if (!frame.ok()) return frame.status();
    Status status = chain.check(*frame);
    if (status.ok() && frame->kind == FrameKind::log) {
      status = each_log_entry(frame->payload, [&crc](std::string_view bytes) -> Status {
        const Result<RecordView> record = RecordView::parse(bytes);
        if (record.ok()) crc = record->crc();
        return record.status();
      });
    }
    if (!status.ok()) return status;
    has_ended = frame->kind == FrameKind::archive_end;
    rest.remove_prefix(*length);
  }
  if (!has_ended) return Status(StatusCode::data_loss, "the end is missing");
  return crc;
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
  if (lock_ >= 0) ::close(lock_);
}

// The directory itself must be there: a path that was mistyped, or a disk that is not mounted, must not count as one.
Status Archiver::make_folder() const {
  std::error_code error;
  if (!std::filesystem::is_directory(options_.archive_dir, error)) {
    return refused(options_.archive_dir + " is no directory; make it first");
  }
  if (::mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return refused(system_failure("cannot create " + folder_).message());
  }
  return sync_directory(options_.archive_dir);  // also of a start that was killed here
}

// Two servers that work on copies of one database would mix their batches. The lock is on a file, because some network
// file systems lock no folder.
Status Archiver::lock_folder() {
  const std::string path = folder_ + "/lock";
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (lock_ < 0) return refused(system_failure("cannot open " + path).message());
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return refused("another server writes to " + folder_);
  return refused(system_failure("cannot lock " + path).message());
}

// After the last batch in the archive, or with the first record that the log still has.
Status Archiver::find_begin() {
  using File = std::pair<BatchNumber, BatchNumber>;
  std::vector<File> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (const auto batches = batches_of_archive_file(it->path().filename().string())) files.push_back(*batches);
  }
  if (error) return refused("cannot list " + folder_ + ": " + error.message());
  std::sort(files.begin(), files.end());
  File newest;
  for (const File& file : files) {
    if (newest.second != 0 && file.first > newest.second + 1) {
      lacks(newest.second + 1, file.first - 1,
            "which no file has; make a new backup, and remove the files before them");
    }
    if (file.second > newest.second) newest = file;
  }
  const BatchNumber last = newest.second;
  if (last > durable_()) {
    return refused(folder_ + " has batch " + std::to_string(last) + ", but the database ends with batch " +
                   std::to_string(durable_()) + ": the archive is of another copy of the database. Choose another one");
  }
  if (last != 0) {
    const std::string path = folder_ + "/" + archive_file_name(newest.first, newest.second);
    if (Status status = check_follows(newest, path); !status.ok()) return status;
  }
  const BatchNumber first = history_->first_batch();
  const BatchNumber next = first == 0 ? durable_() + 1 : first;
  if (last + 1 < next && (last != 0 || next > 1)) {
    lacks(last + 1, next - 1, "which the log does not have any more; make a new backup now");
  }
  batch_.store(std::max(last, next - 1));
  return {};
}

void Archiver::lacks(BatchNumber first, BatchNumber last, const std::string& why) const {
  store_->metrics().archive_gap_batches.fetch_add(last - first + 1, std::memory_order_relaxed);
  problem("the archive lacks the batches " + std::to_string(first) + " to " + std::to_string(last) + ", " + why, false);
}

// A copy of the database may have gone on in another way, up to the same batch or beyond it. The numbers of its batches
// do not show this, but the checksums of their records do.
Status Archiver::check_follows(std::pair<BatchNumber, BatchNumber> batches, const std::string& path) const {
  const BatchNumber last = batches.second;
  const Result<std::uint32_t> crc = last_crc_in(path);
  if (!crc.ok()) {
    lacks(batches.first, last,
          "because " + path + " is damaged: " + crc.status().message() + "; make a new backup now");
    return {};
  }
  const std::unique_ptr<rocksdb::Iterator> it(
      store_->db()->NewIterator(rocksdb::ReadOptions(), store_->family(Family::log)));
  it->Seek(ordered_key(last));
  if (!it->status().ok()) return store_->status_of(it->status(), "comparing the log with the archive");
  if (!it->Valid()) return {};
  const Result<RecordView> record = RecordView::parse(std::string_view(it->value().data(), it->value().size()));
  if (!record.ok()) return record.status();
  const BatchNumber number = record->header().number;
  if (number > last + 1) return {};  // a gap
  if (*crc == (number == last ? record->crc() : record->previous_crc())) return {};
  return refused(folder_ + " has another batch " + std::to_string(last) +
                 " than the database: the archive is of another copy of the database. Choose another one");
}

Status Archiver::start() {
  if (Status status = make_folder(); !status.ok()) return status;
  if (Status status = lock_folder(); !status.ok()) return status;
  const std::lock_guard lock(pins_->mutex());
  if (Status status = find_begin(); !status.ok()) return status;
  pin_ = pins_->add(batch() + 1, options_.archive_required);
  start_batch_ = durable_();
  backlog_bytes_.store(history_->bytes_from(batch() + 1));
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

// The log that it keeps must not become too much only because its interval is long.
void Archiver::appended(std::uint64_t bytes) {
  const std::uint64_t lag = lag_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (lag < std::min<std::uint64_t>(kFileBytes, options_.archive_lag_max / 4)) return;
  if (has_problem_.load() || is_wanted_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  stop_.notify_all();
}

// Looks a few times in each interval, so that a record is never late, and at once if records are left from before the
// start. The last look begins after the log has stopped, so it finds all records.
void Archiver::run() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  std::chrono::microseconds pause(batch() < start_batch_ ? 0 : options_.archive_interval_us / 2);
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last && !ended_.load();) {
    stop_.wait_for(lock, pause, [this] { return stopping_ || is_wanted_.load(); });
    is_last = stopping_;
    is_wanted_.store(false);
    lock.unlock();
    pause = std::chrono::microseconds(options_.archive_interval_us / 2);
    look();
    lock.lock();
  }
}

void Archiver::look() {
  if (pin_->lost.load()) {
    return end("it kept more log than --archive-lag-max allows, or the data disk is short of space");
  }
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

void Archiver::problem(const std::string& why, bool ended) const {
  if (options_.on_archive_problem) options_.on_archive_problem(why, ended);
}

Status Archiver::copy_all() {
  for (const BatchNumber durable = durable_(); batch() < durable;) {
    const Result<Gathered> gathered = gather(durable);
    if (!gathered.ok()) return gathered.status();
    const std::string name = folder_ + "/" + archive_file_name(batch() + 1, gathered->to);
    const std::string partial = folder_ + "/next.partial";  // one name, so that what a failure leaves is used again
    if (fail_point("storage.archive.write")) return {StatusCode::internal, "fail point storage.archive.write"};
    if (Status status = write_durably(partial, gathered->file); !status.ok()) return status;
    if (std::rename(partial.c_str(), name.c_str()) != 0) return system_failure("cannot rename " + partial);
    if (Status status = sync_directory(folder_); !status.ok()) return status;
    copied(*gathered);
  }
  return {};
}

void Archiver::copied(const Gathered& gathered) {
  batch_.store(gathered.to);
  pin_->from.store(gathered.to + 1);
  lag_bytes_.fetch_sub(std::min(gathered.new_bytes, lag_bytes_.load()));
  const std::uint64_t backlog = backlog_bytes_.load();
  backlog_bytes_.store(gathered.to < start_batch_ ? backlog - std::min(backlog, gathered.old_bytes) : 0);
}

// Makes a file of records up to `last`, or of fewer if they are many.
Result<Archiver::Gathered> Archiver::gather(BatchNumber last) const {
  Gathered gathered;
  std::uint64_t index = 0;
  std::uint32_t crc = 0;
  BackupEnd end;
  const BatchNumber first = batch() + 1;
  const std::unique_ptr<rocksdb::Iterator> it(
      store_->db()->NewIterator(rocksdb::ReadOptions(), store_->family(Family::log)));
  BatchNumber next = first;
  std::string payload;
  for (it->Seek(ordered_key(first)); it->Valid() && next <= last && gathered.file.size() < kFileBytes;
       it->Next(), ++next) {
    const std::string_view record_bytes(it->value().data(), it->value().size());
    const Result<RecordView> record = RecordView::parse(record_bytes);
    if (!record.ok()) return record.status();
    if (record->header().number != next) break;
    if (next == first) {
      const ArchiveHeader header{identity_.id, identity_.incarnation.id, first, record->previous_crc()};
      crc = encode_frame(FrameKind::archive, index++, crc, encode_archive(header), &gathered.file);
    }
    put_log_entry(record_bytes, &payload);
    if (Status status = check_payload(payload); !status.ok()) return status;
    if (payload.size() >= kFramePayloadBytes) {
      crc = encode_frame(FrameKind::log, index++, crc, payload, &gathered.file);
      payload.clear();
    }
    (next <= start_batch_ ? gathered.old_bytes : gathered.new_bytes) += record_bytes.size();
    end.position = {.batch = next,
                    .next_version = record->next_version(),
                    .tombstone_floor = record->tombstone_floor(),
                    .time_us = record->header().time_us,
                    .state_hash = record->state_hash()};
  }
  if (!it->status().ok()) return store_->status_of(it->status(), "archiving the log");
  if (next == first) return Status(StatusCode::internal, "the log lacks batch " + std::to_string(first));
  if (!payload.empty()) crc = encode_frame(FrameKind::log, index++, crc, payload, &gathered.file);
  end.frames = index + 1;
  encode_frame(FrameKind::archive_end, index, crc, encode_end(end), &gathered.file);
  gathered.to = next - 1;
  return gathered;
}

}  // namespace kilokv::server::storage
