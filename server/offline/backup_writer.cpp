#include "server/offline/backup_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "server/core/hex.hpp"
#include "server/offline/backup_verifier.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/backup_visit.hpp"
#include "server/storage/data_directory.hpp"

namespace kilokv::server::offline {
namespace {

Status refused(const std::string& what) { return {StatusCode::failed_precondition, ErrorReason::failed, what}; }

Status system_refused(const std::string& what) { return refused(what + ": " + std::generic_category().message(errno)); }

// Checks what a backup holds, and keeps nothing of it.
class NoTarget final : public storage::BackupTarget {
 public:
  Status header(const storage::BackupHeader&) override { return {}; }
  Status state(const StoredRecord&, std::string_view) override { return {}; }
  Status session(const StoredSession&, std::string_view) override { return {}; }
  Status log(const storage::RecordView&, std::string_view) override { return {}; }
};

class FileWriter final : public BackupWriter {
 public:
  FileWriter(std::string path, bool verifies)
      : path_(std::move(path)), partial_(path_ + ".partial"), verifies_(verifies) {
    forget();
  }
  ~FileWriter() override {
    if (file_ >= 0) ::close(file_);
  }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  Status open();
  Status take(std::string_view data) override;
  void interrupted() override { rest_.clear(); }
  std::optional<Resume> resume() const override { return resume_; }
  Status start_over() override;
  bool is_complete() const override { return visit_->complete(); }
  std::uint64_t bytes() const override { return bytes_; }
  const std::string& forgotten() const override { return forgotten_; }
  void remove_if_empty() override;
  Result<Summary> finish() override;

 private:
  // What is built up while frames come.
  void forget() {
    chain_ = {};
    verifier_ = verifies_ ? std::make_unique<BackupVerifier>() : nullptr;
    if (verifies_) {
      target_ = std::make_unique<storage::VisitorTarget>(verifier_->visitor());
    } else {
      target_ = std::make_unique<NoTarget>();
    }
    visit_ = std::make_unique<storage::BackupVisit>(target_.get());
    resume_.reset();
    rest_.clear();
    bytes_ = written_back_ = 0;
  }
  Status check(const storage::Frame& frame);
  Status open_partial();
  Status read_partial();
  Status forget_partial(const std::string& why);
  Result<bool> is_ours() const;
  Status check_unchanged() const;
  Status give_name() const;
  Status write(std::string_view bytes);
  void begin_writing_back();

  const std::string path_, partial_;
  const bool verifies_;
  int file_ = -1;
  storage::FrameChain chain_;
  std::unique_ptr<BackupVerifier> verifier_;
  std::unique_ptr<storage::BackupTarget> target_;
  std::unique_ptr<storage::BackupVisit> visit_;
  std::optional<Resume> resume_;
  std::string rest_;  // no whole frame yet
  std::uint64_t bytes_ = 0;
  std::uint64_t written_back_ = 0;  // bytes that the system was told to write to the disk
  std::string forgotten_;
};

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

// Another backup may give the partial file its name between the open and the lock. So what is locked is looked at
// again.
Status FileWriter::open() {
  for (;;) {
    if (is_there(path_)) return refused(path_ + " is there already, and is not overwritten");
    if (Status status = open_partial(); !status.ok()) return status;
    const Result<bool> ours = is_ours();
    if (!ours.ok()) return ours.status();
    if (*ours) return read_partial();
    ::close(std::exchange(file_, -1));
  }
}

// The lock is on the file, and ends with the program. Without it, a second program with the same path would write into
// what the first one has checked.
Status FileWriter::open_partial() {
  file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file_ < 0) return system_refused("cannot open " + partial_);
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK)
    return refused("another backup writes " + partial_ + "; wait for it, or choose another file");
  return system_refused("cannot lock " + partial_);
}

// Whether the partial file is the one that is locked. A file with two names is not touched: the other name may be a
// backup.
Result<bool> FileWriter::is_ours() const {
  struct stat locked = {}, named = {};
  if (::fstat(file_, &locked) != 0) return system_refused("cannot look at " + partial_);
  if (::lstat(partial_.c_str(), &named) != 0) {
    if (errno == ENOENT) return false;
    return system_refused("cannot look at " + partial_);
  }
  if (locked.st_dev != named.st_dev || locked.st_ino != named.st_ino) return false;
  if (locked.st_nlink == 1) return true;
  return refused(partial_ + " is another name of a file that may be a backup; remove this name");
}

// What an earlier run has left. A file of another kind is not touched. An end that was not written whole is cut off.
// Other damage makes the whole file useless. A file that is complete is useless, too: no server was asked, so it would
// pass off old data as a new backup.
Status FileWriter::read_partial() {
  FrameFile file(partial_);
  if (Status status = file.open(); !status.ok()) return status;
  if (Status status = file.check_is_ours(); !status.ok()) return status;
  if (::fchmod(file_, S_IRUSR | S_IWUSR) != 0) return system_refused("cannot close " + partial_ + " to others");
  storage::Frame frame;
  for (;;) {
    const Result<bool> has_more = file.next(&frame);
    if (!has_more.ok() || !*has_more) break;
    if (!check(frame).ok()) return forget_partial("does not fit together");
    bytes_ = file.end();
  }
  if (visit_->complete()) return forget_partial("is complete, and was made earlier");
  if (::ftruncate(file_, static_cast<off_t>(bytes_)) == 0) return {};
  return system_refused("cannot shorten " + partial_);
}

Status FileWriter::forget_partial(const std::string& why) {
  forgotten_ = partial_ + " " + why;
  return start_over();
}

Status FileWriter::start_over() {
  forget();
  return ::ftruncate(file_, 0) == 0 ? Status() : system_refused("cannot shorten " + partial_);
}

Status FileWriter::check(const storage::Frame& frame) {
  if (Status status = chain_.check(frame); !status.ok()) return status;
  if (Status status = visit_->take(frame); !status.ok()) return status;
  const Result<BackupPoint> point = storage::point_after(frame);
  if (!point.ok()) return point.status();
  const BackupId& id = visit_->header().id;
  resume_ =
      Resume{{reinterpret_cast<const char*>(id.data()), id.size()}, point->frame, point->crc, point->kind, point->key};
  return {};
}

Status FileWriter::take(std::string_view data) {
  if (visit_->complete()) return {StatusCode::data_loss, "the server has sent more after the end of the backup"};
  rest_.append(data);
  std::size_t taken = 0;
  while (!visit_->complete()) {
    const std::string_view left = std::string_view(rest_).substr(taken);
    const Result<std::size_t> length = storage::frame_length(left);
    if (!length.ok()) return length.status();
    if (*length == 0 || left.size() < *length) break;
    const Result<storage::Frame> frame = storage::decode_frame(left.substr(0, *length));
    if (!frame.ok()) return frame.status();
    if (Status status = check(*frame); !status.ok()) return status;
    if (Status status = write(left.substr(0, *length)); !status.ok()) return status;
    taken += *length;
  }
  rest_.erase(0, taken);
  return {};
}

Status FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_refused("cannot write " + partial_);
    bytes_ += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  begin_writing_back();
  return {};
}

// Lets the system write what has come, a little at a time. Without it, the system writes much at once, and a server
// that syncs to the same disk waits for it. Nothing depends on it: finish() syncs the file.
void FileWriter::begin_writing_back() {
  constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20;
  if (bytes_ - written_back_ < kStepBytes) return;
  ::sync_file_range(file_, static_cast<off_t>(written_back_), static_cast<off_t>(bytes_ - written_back_),
                    SYNC_FILE_RANGE_WRITE);
  written_back_ = bytes_;
}

void FileWriter::remove_if_empty() {
  struct stat locked = {};
  const Result<bool> ours = is_ours();
  if (!ours.ok() || !*ours || ::fstat(file_, &locked) != 0 || locked.st_size != 0) return;
  ::unlink(partial_.c_str());  // if this fails, the file is in nobody's way
}

// Whether the partial file is still what this program has written, as far as its name and its size can tell.
Status FileWriter::check_unchanged() const {
  struct stat written = {};
  if (::fstat(file_, &written) != 0) return system_refused("cannot look at " + partial_);
  const Result<bool> ours = is_ours();
  if (!ours.ok()) return ours.status();
  if (*ours && static_cast<std::uint64_t>(written.st_size) == bytes_) return {};
  return refused("another program has changed " + partial_ + "; remove it, and start the backup again");
}

Result<Summary> FileWriter::finish() {
  Summary summary;
  if (Status status = check_unchanged(); !status.ok()) return status;
  if (verifies_) {
    if (Status status = verifier_->finish(partial_, visit_->position(), &summary); !status.ok()) return status;
  } else {
    fill_position(visit_->position(), &summary);
  }
  const auto& incarnation = visit_->header().identity.incarnation.id;
  summary.incarnation = hex_of(incarnation);
  if (Status status = check_unchanged(); !status.ok()) return status;
  if (::fsync(file_) != 0) return system_refused("cannot sync " + partial_);
  if (Status status = give_name(); !status.ok()) return status;
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  if (Status status = storage::sync_directory(parent.empty() ? "." : parent); !status.ok()) return status;
  return summary;
}

// Another program may have made a file of this name meanwhile, and it must stay. Some file systems cannot rename so.
// Some of these cannot link either: there, a moment between the look and the rename is left.
Status FileWriter::give_name() const {
  const auto failed = [this] { return system_refused("cannot name it " + path_); };
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return failed();
  if (::link(partial_.c_str(), path_.c_str()) == 0) {
    return ::unlink(partial_.c_str()) == 0 ? Status() : system_refused("cannot remove " + partial_);
  }
  if (errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP) return failed();
  if (is_there(path_)) return refused(path_ + " is there already, and is not overwritten");
  return std::rename(partial_.c_str(), path_.c_str()) == 0 ? Status() : failed();
}

}  // namespace

Result<std::unique_ptr<BackupWriter>> BackupWriter::open(const std::string& path, bool verifies) {
  auto writer = std::make_unique<FileWriter>(path, verifies);
  if (Status status = writer->open(); !status.ok()) return status;
  return std::unique_ptr<BackupWriter>(std::move(writer));
}

}  // namespace kilokv::server::offline
