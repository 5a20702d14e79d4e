// What calls of the system say, as a Status, and random bytes of the kernel. Thread safety: pure functions.
#pragma once

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// INTERNAL, with the reason in errno. `what`: what failed, such as "cannot open FILE".
inline Status system_failure(const std::string& what) {
  return {StatusCode::internal, what + ": " + std::generic_category().message(errno)};
}

template <class Byte, std::size_t kCount>
Status fill_with_random(std::array<Byte, kCount>* bytes) {
  static_assert(sizeof(Byte) == 1 && kCount <= 256, "the kernel gives at most 256 bytes at once");
  if (::getrandom(bytes->data(), kCount, 0) == static_cast<ssize_t>(kCount)) return {};
  return system_failure("getrandom");
}

}  // namespace kilokv::server::storage
