#include "server/offline/backup_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

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
  Result<Summary> finish() override;

 private:
  // What is built up while frames come.
  void forget() {
    chain_ = {};
    loader_ = verifies_ ? std::make_unique<Loader>() : nullptr;
    if (verifies_) {
      target_ = std::make_unique<storage::VisitorTarget>(loader_->visitor());
    } else {
      target_ = std::make_unique<NoTarget>();
    }
    visit_ = std::make_unique<storage::BackupVisit>(target_.get());
    resume_.reset();
    rest_.clear();
    bytes_ = 0;
  }
  Status check(const storage::Frame& frame);
  Status read_partial();
  Status write(std::string_view bytes);

  const std::string path_, partial_;
  const bool verifies_;
  int file_ = -1;
  storage::FrameChain chain_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<storage::BackupTarget> target_;
  std::unique_ptr<storage::BackupVisit> visit_;
  std::optional<Resume> resume_;
  std::string rest_;  // no whole frame yet
  std::uint64_t bytes_ = 0;
};

Status FileWriter::open() {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, error))) {
    return refused(path_ + " is there already, and is not overwritten");
  }
  file_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file_ < 0) return system_refused("cannot open " + partial_);
  if (::fchmod(file_, S_IRUSR | S_IWUSR) != 0) return system_refused("cannot close " + partial_ + " to others");
  return read_partial();
}

// What an earlier run has left. An end that was not written whole is cut off. Other damage makes the whole file
// useless.
Status FileWriter::read_partial() {
  FrameFile file(partial_);
  if (Status status = file.open(); !status.ok()) return status;
  storage::Frame frame;
  for (;;) {
    const Result<bool> has_more = file.next(&frame);
    if (!has_more.ok() || !*has_more) break;
    if (!check(frame).ok()) return start_over();
    bytes_ = file.end();
  }
  if (::ftruncate(file_, static_cast<off_t>(bytes_)) == 0) return {};
  return system_refused("cannot shorten " + partial_);
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
  return {};
}

Result<Summary> FileWriter::finish() {
  Summary summary;
  if (verifies_) {
    if (Status status = loader_->finish(visit_->position()); !status.ok()) return status;
    loader_->fill(visit_->position(), &summary);
  } else {
    fill_position(visit_->position(), &summary);
  }
  const auto& incarnation = visit_->header().identity.incarnation.id;
  summary.incarnation = hex_of(incarnation.data(), incarnation.size());
  if (::fsync(file_) != 0) return system_refused("cannot sync " + partial_);
  // Not a rename: another program may have made a file of this name meanwhile.
  if (::link(partial_.c_str(), path_.c_str()) != 0) return system_refused("cannot name it " + path_);
  if (::unlink(partial_.c_str()) != 0) return system_refused("cannot remove " + partial_);
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  if (Status status = storage::sync_directory(parent.empty() ? "." : parent); !status.ok()) return status;
  return summary;
}

}  // namespace

Result<std::unique_ptr<BackupWriter>> BackupWriter::open(const std::string& path, bool verifies) {
  auto writer = std::make_unique<FileWriter>(path, verifies);
  if (Status status = writer->open(); !status.ok()) return status;
  return std::unique_ptr<BackupWriter>(std::move(writer));
}

}  // namespace kilokv::server::offline
