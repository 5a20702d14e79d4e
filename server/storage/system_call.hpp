// What calls of the system say, as a Status, and random bytes of the kernel. Thread safety: any thread.
#pragma once

#include <sys/random.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// Why a call failed whose errno this is. If the process may not open more files, no other setting helps, so the reason
// says which limit to raise.
inline std::string system_reason(int error) {
  std::string reason = std::generic_category().message(error);
  rlimit limit = {};
  if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    reason += "; this process may have " + std::to_string(limit.rlim_cur) +
              " files open, and has them: raise this limit (ulimit -n, or LimitNOFILE in the unit of systemd)";
  } else if (error == ENFILE) {
    reason += "; raise the limit of this machine (sysctl fs.file-max)";
  }
  return reason;
}

// INTERNAL, with the reason in errno. `what`: what failed, such as "cannot open FILE".
inline Status system_failure(const std::string& what) {
  return {StatusCode::internal, what + ": " + system_reason(errno)};
}

template <class Byte, std::size_t kCount>
Status fill_with_random(std::array<Byte, kCount>* bytes) {
  static_assert(sizeof(Byte) == 1 && kCount <= 256, "the kernel gives at most 256 bytes at once");
  if (::getrandom(bytes->data(), kCount, 0) == static_cast<ssize_t>(kCount)) return {};
  return system_failure("getrandom");
}

}  // namespace kilokv::server::storage
