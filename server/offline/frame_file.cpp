#include "server/offline/frame_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "server/storage/bytes.hpp"

namespace kilokv::server::offline {
namespace {

std::string reason() { return std::generic_category().message(errno); }

bool is_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

// Whether these are the first bytes of a backup, or damaged ones. `head`: up to kFrameHeadBytes.
bool may_begin_a_backup(std::string_view head) {
  std::string magic;
  storage::put(&magic, storage::kFrameMagic);
  int flipped = 0;
  for (std::size_t i = 0; i < std::min(head.size(), magic.size()); ++i) {
    flipped += std::popcount(static_cast<unsigned char>(head[i] ^ magic[i]));
  }
  if (flipped <= 2 || is_zero(head)) return true;
  if (head.size() < storage::kFrameHeadBytes) return false;
  // The index, and the checksum of the frame before it.
  return storage::load<std::uint32_t>(head.data() + 4) == static_cast<std::uint32_t>(storage::FrameKind::header) &&
         is_zero(head.substr(8, 12));
}

// Whether a file of an archive begins so.
bool begins_an_archive_file(std::string_view head) {
  return head.size() >= storage::kFrameHeadBytes && storage::load<std::uint32_t>(head.data()) == storage::kFrameMagic &&
         storage::load<std::uint32_t>(head.data() + 4) == static_cast<std::uint32_t>(storage::FrameKind::archive);
}

}  // namespace

FrameFile::~FrameFile() {
  if (file_ >= 0) ::close(file_);
}

Status FrameFile::open() {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ >= 0) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed, "cannot open " + path_ + ": " + reason()};
}

Status FrameFile::read(std::size_t bytes) {
  constexpr std::size_t kReadBytes = std::size_t{1} << 20;
  while (buffer_.size() < bytes) {
    const std::size_t had = buffer_.size();
    buffer_.resize(had + kReadBytes);  // also for a long frame, whose length may be damaged
    const ssize_t got = ::read(file_, buffer_.data() + had, buffer_.size() - had);
    buffer_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {StatusCode::internal, "cannot read " + path_ + ": " + reason()};
    if (got == 0) return {};
  }
  return {};
}

Status FrameFile::check_is_backup() {
  const auto other = [this](const std::string& what) {
    return Status(StatusCode::invalid_argument, path_ + " is no backup: " + what);
  };
  struct stat found = {};
  if (::fstat(file_, &found) == 0 && S_ISDIR(found.st_mode)) return other("it is a directory");
  if (Status status = read(storage::kFrameHeadBytes); !status.ok()) return status;
  const std::string_view head = std::string_view(buffer_).substr(0, storage::kFrameHeadBytes);
  if (begins_an_archive_file(head)) return other("it is a file of an archive, and the archive is the directory");
  return may_begin_a_backup(head) ? Status() : other("it does not begin as one");
}

Status FrameFile::check_is_ours() {
  if (Status status = check_is_backup(); !status.ok()) return status;
  std::string begin;
  storage::put(&begin, storage::kFrameMagic);
  storage::put(&begin, static_cast<std::uint32_t>(storage::FrameKind::header));
  const std::size_t compared = std::min(begin.size(), buffer_.size());
  if (buffer_.compare(0, compared, begin, 0, compared) == 0) return {};
  if (is_zero(buffer_) && !has_other_than_zeros()) return {};
  return {StatusCode::invalid_argument, path_ + " is no backup: it does not begin exactly as one"};
}

// Looks at the whole file, and leaves the place of the next frame as it is.
bool FrameFile::has_other_than_zeros() const {
  std::string piece(std::size_t{1} << 20, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(file_, piece.data(), piece.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0;
    if (!is_zero(std::string_view(piece).substr(0, static_cast<std::size_t>(got)))) return true;
    at += got;
  }
}

Result<bool> FrameFile::next(storage::Frame* frame) {
  buffer_.erase(0, end_ - offset_);
  offset_ = end_;
  const auto damaged = [this](const std::string& what) {
    return Status(StatusCode::data_loss, path_ + ", byte " + std::to_string(offset_) + ": " + what);
  };
  if (Status status = read(storage::kFrameHeadBytes); !status.ok()) return status;
  if (buffer_.empty()) return false;
  can_go_on_ = false;
  const Result<std::size_t> length = storage::frame_length(buffer_);
  if (!length.ok()) return damaged(length.status().message());
  if (*length == 0) return damaged("the file ends in a frame");
  if (Status status = read(*length); !status.ok()) return status;
  if (buffer_.size() < *length) return damaged("the file ends in a frame, or the length of the frame is damaged");
  can_go_on_ = true;
  end_ = offset_ + *length;
  const Result<storage::Frame> decoded = storage::decode_frame(std::string_view(buffer_).substr(0, *length));
  if (decoded.status().code() == StatusCode::data_loss) return damaged(decoded.status().message());
  if (!decoded.ok()) return decoded.status();
  *frame = *decoded;
  return true;
}

}  // namespace kilokv::server::offline
