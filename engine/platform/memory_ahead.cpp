#include "engine/platform/memory_ahead.hpp"

#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace kilokv::engine {
namespace {

#ifdef MADV_POPULATE_WRITE

// The kernel takes one huge page at a time, so that whoever maps memory meanwhile does not wait for long.
constexpr std::uintptr_t kPieceBytes = std::uintptr_t{2} << 20;

void take_part(MemoryAhead::Part part, const std::stop_token& stop) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t end = begin + part.size();
  for (std::uintptr_t at = begin / page * page; at < end && !stop.stop_requested();) {
    const std::uintptr_t next = std::min(end, (at / kPieceBytes + 1) * kPieceBytes);
    if (::madvise(reinterpret_cast<void*>(at), next - at, MADV_POPULATE_WRITE) != 0) return;
    at = next;
  }
}

#else

void take_part(MemoryAhead::Part, const std::stop_token&) {}

#endif

}  // namespace

struct MemoryAhead::Worker {
  std::jthread thread;
};

MemoryAhead::MemoryAhead() : worker_(std::make_unique<Worker>()) {}
MemoryAhead::~MemoryAhead() = default;

void MemoryAhead::take(std::vector<Part> parts) {
  stop();
  try {
    worker_->thread = std::jthread([parts = std::move(parts)](const std::stop_token& stop) {
      for (const Part part : parts) take_part(part, stop);
    });
  } catch (const std::system_error&) {  // no thread: the first use takes the memory
  }
}

void MemoryAhead::stop() { worker_->thread = {}; }

}  // namespace kilokv::engine
