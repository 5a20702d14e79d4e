#include "server/edge/descriptor.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace kilokv::server {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<std::uint32_t> raise_descriptor_limit(std::uint32_t connections_max) {
  constexpr rlim_t kLimitMin = 128;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Status(StatusCode::internal,
                  "cannot read the limit of descriptors: " + std::generic_category().message(errno));
  }
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;  // the limit stays as it is
  const rlim_t fit = limit.rlim_cur / 2 / 2;
  if (limit.rlim_cur >= kLimitMin) return static_cast<std::uint32_t>(std::min<rlim_t>(fit, connections_max));
  return Status(StatusCode::failed_precondition, ErrorReason::failed,
                "this process may have " + std::to_string(limit.rlim_cur) +
                    " files open, connections included, and needs " + std::to_string(kLimitMin) +
                    " at least: raise this limit (ulimit -n, or LimitNOFILE in the unit of systemd)");
}

}  // namespace kilokv::server
