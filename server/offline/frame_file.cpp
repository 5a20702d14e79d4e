#include "server/offline/frame_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace kilokv::server::offline {
namespace {

std::string reason() { return std::generic_category().message(errno); }

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
