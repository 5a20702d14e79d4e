#include "engine/base/growing_array.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/base/check.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#define KILOKV_HAS_MMAP 1
#else
#define KILOKV_HAS_MMAP 0
#endif

namespace kilokv::engine {
namespace {

#if KILOKV_HAS_MMAP

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// A smaller array would waste the rest of its huge page. An array that grows step by step takes small pages for longer,
// because its steps are parts of a huge page.
constexpr std::size_t kHugePagesFrom = std::size_t{4} << 20;
constexpr std::size_t kHugePagesFromSteps = std::size_t{16} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }
std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return round_up(bytes, page);
}

// Returns a null pointer if the system refuses. Addresses without access count as no memory, whatever the system's rule
// for overcommitment is.
std::byte* reserve(std::size_t bytes) {
  bytes = whole_pages(bytes);
  void* const range = ::mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(range);
  const std::size_t before = round_up(address, kHugePage) - address;
  std::byte* const aligned = static_cast<std::byte*>(range) + before;
  if (before > 0) ::munmap(range, before);
  if (before < kHugePage) ::munmap(aligned + bytes, kHugePage - before);
  return aligned;
}

void release(std::byte* range, std::size_t bytes) { ::munmap(range, whole_pages(bytes)); }

// Gives access to the bytes from `from` to `to`.
void open(std::byte* range, std::size_t reserved, std::size_t from, std::size_t to) {
#ifdef MADV_HUGEPAGE
  const bool at_once = from == 0 && to >= kHugePagesFrom;
  const std::size_t unused = round_up(from, kHugePage);
  if (at_once || (from < kHugePagesFromSteps && to >= kHugePagesFromSteps)) {
    ::madvise(range + unused, whole_pages(reserved) - unused, MADV_HUGEPAGE);  // a hint: a failure does no harm
  }
#else
  static_cast<void>(reserved);
#endif
  from = whole_pages(from);
  to = whole_pages(to);
  if (from < to) KILOKV_CHECK(::mprotect(range + from, to - from, PROT_READ | PROT_WRITE) == 0);
}

#else

std::byte* reserve(std::size_t bytes) {
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  void* const range = std::aligned_alloc(64, rounded);
  if (range != nullptr) std::memset(range, 0, rounded);
  return static_cast<std::byte*>(range);
}

void release(std::byte* range, std::size_t) { std::free(range); }

void open(std::byte*, std::size_t, std::size_t, std::size_t) {}

#endif

}  // namespace

GrowingMemory::GrowingMemory(std::size_t reserved_bytes) {
  if (KILOKV_HAS_MMAP == 0 || reserved_bytes == 0) return;  // memory cannot be reserved without being taken
  data_ = reserve(reserved_bytes);
  if (data_ != nullptr) reserved_ = reserved_bytes;
}

GrowingMemory::~GrowingMemory() {
  if (data_ != nullptr) release(data_, reserved_);
}

void GrowingMemory::grow(std::size_t bytes) {
  KILOKV_CHECK(bytes >= bytes_);
  if (bytes > reserved_) move_to_larger_range(bytes);
  open(data_, reserved_, bytes_, bytes);
  bytes_ = bytes;
}

void GrowingMemory::move_to_larger_range(std::size_t bytes) {
  GrowingMemory larger(0);
  larger.reserved_ = 2 * bytes;
  larger.data_ = reserve(larger.reserved_);
  KILOKV_CHECK(larger.data_ != nullptr);
  open(larger.data_, larger.reserved_, 0, bytes_);
  if (bytes_ > 0) std::memcpy(larger.data_, data_, bytes_);
  larger.bytes_ = bytes_;
  swap(larger);
}

}  // namespace kilokv::engine
