// Role: see line_input.hpp.
#include "client/cli/bulk/line_input.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kilokv::client {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

}  // namespace

LineInput::LineInput(int descriptor, int idle_after_ms) : descriptor_(descriptor), idle_after_ms_(idle_after_ms) {
  struct stat status = {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
}

LineInput::Got LineInput::fill() {
  if (is_over_) return Got::end;
  pollfd wanted = {descriptor_, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, idle_after_ms_);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Got::idle;
  if (ready < 0) return Got::failed;
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(std::max(end_ + kReadBytes, 2 * buffer_.size()));
  const ssize_t size = ::read(descriptor_, buffer_.data() + end_, kReadBytes);
  if (size < 0) return errno == EINTR || errno == EAGAIN ? Got::idle : Got::failed;
  is_over_ = size == 0;
  end_ += static_cast<std::size_t>(size);
  return is_over_ ? Got::end : Got::line;
}

LineInput::Got LineInput::next(std::string_view* line) {
  while (true) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const std::size_t newline = held.find('\n', searched_);
    const bool is_last = is_over_ && newline == std::string_view::npos;
    if (newline != std::string_view::npos || (is_last && !held.empty())) {
      *line = is_last ? held : held.substr(0, newline + 1);
      begin_ += line->size();
      searched_ = 0;
      return Got::line;
    }
    if (is_last) return Got::end;
    searched_ = held.size();
    if (held.size() > kLineBytesMax) return Got::too_long;
    const Got got = fill();
    if (got == Got::idle || got == Got::failed) return got;
  }
}

LineInput::Got LineInput::next_bytes(std::size_t most, std::string_view* bytes) {
  if (begin_ == end_) {
    const Got got = fill();
    if (got != Got::line) return got;
  }
  *bytes = std::string_view(buffer_.data() + begin_, std::min(most, end_ - begin_));
  begin_ += bytes->size();
  searched_ = 0;
  return Got::line;
}

}  // namespace kilokv::client
