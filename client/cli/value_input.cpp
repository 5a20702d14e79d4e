// Role: see value_input.hpp.
#include "client/cli/value_input.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace kilokv::client {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{64} << 10;

Error too_long(std::size_t bytes_max) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.not_run = true;
  error.field = "value";
  error.limit = std::to_string(bytes_max) + " bytes";
  error.actual = "more than " + error.limit;
  error.setting = "--message-bytes-max";
  error.message = "standard input has " + error.actual + ", and no server takes a value so long";
  return error;
}

Error unreadable() {
  Error error;
  error.code = ErrorCode::failed_precondition;
  error.not_run = true;
  error.message = "cannot read standard input: " + std::generic_category().message(errno);
  return error;
}

}  // namespace

Expected<std::string> read_value(int descriptor, std::size_t bytes_max) {
  std::string value;
  value.reserve(bytes_max + 1);  // takes addresses, and memory only as it is filled: the text is never copied to grow
  std::vector<char> block(kBlockBytes);
  while (value.size() <= bytes_max) {
    const ssize_t size = ::read(descriptor, block.data(), std::min(block.size(), bytes_max + 1 - value.size()));
    if (size == 0) return value;
    if (size > 0) {
      value.append(block.data(), static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      pollfd wanted = {descriptor, POLLIN, 0};
      static_cast<void>(::poll(&wanted, 1, -1));
    } else if (errno != EINTR) {
      return unreadable();
    }
  }
  return too_long(bytes_max);
}

}  // namespace kilokv::client
