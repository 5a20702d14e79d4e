#include "engine/base/zeroed_array.hpp"

#include <cstdlib>
#include <cstring>

#include "engine/base/check.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#define KILOKV_HAS_MMAP 1
#else
#define KILOKV_HAS_MMAP 0
#endif

namespace kilokv::engine {
namespace {

constexpr std::size_t kMappedBytesMin = std::size_t{4} << 20;

bool is_mapped(std::size_t bytes) { return KILOKV_HAS_MMAP != 0 && bytes >= kMappedBytesMin; }

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
#if KILOKV_HAS_MMAP
  if (is_mapped(bytes)) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    KILOKV_CHECK(memory != MAP_FAILED);
#ifdef MADV_HUGEPAGE
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: a failure does no harm
#endif
    return memory;
  }
#endif
  const std::size_t rounded = (bytes + 127) / 64 * 64;
  void* memory = std::aligned_alloc(64, rounded);
  KILOKV_CHECK(memory != nullptr);
  std::memset(memory, 0, rounded);
  return memory;
}

void free_zeroed(void* memory, std::size_t bytes) {
#if KILOKV_HAS_MMAP
  if (is_mapped(bytes)) {
    ::munmap(memory, bytes);
    return;
  }
#endif
  std::free(memory);
}

}  // namespace kilokv::engine
