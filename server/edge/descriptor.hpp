// A file descriptor that closes itself, and the limit of descriptors. Thread safety: none; raise_descriptor_limit() is
// for the start.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/base/status.hpp"

namespace kilokv::server {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// Raises the process's limit of descriptors as far as the system allows. Returns how many connections may be open at
// once: half of the descriptors are kept for storage and everything else, and each connection takes two. At most
// `connections_max`. Errors: FAILED_PRECONDITION: the limit is too low for a server.
Result<std::uint32_t> raise_descriptor_limit(std::uint32_t connections_max);

}  // namespace kilokv::server
