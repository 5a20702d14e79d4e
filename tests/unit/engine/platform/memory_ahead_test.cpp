// Memory that is taken ahead of its use: the kernel says which pages are there.

#include "engine/platform/memory_ahead.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20;
constexpr std::chrono::seconds kPatience{30};

class Memory {
 public:
  Memory()
      : bytes_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Memory() { ::munmap(bytes_, kBytes); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  MemoryAhead::Part part(std::size_t begin, std::size_t end) { return {bytes_ + begin, end - begin}; }
  std::size_t resident() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(kBytes / page);
    if (::mincore(bytes_, kBytes, pages.data()) != 0) return 0;
    return page * static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto p) { return p & 1; }));
  }
  void wait_until_resident(std::size_t bytes) const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (resident() < bytes && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::byte* bytes_;
};

bool kernel_can() {
#ifdef MADV_POPULATE_WRITE
  Memory memory;
  return ::madvise(memory.part(0, 1).data(), 4096, MADV_POPULATE_WRITE) == 0;
#else
  return false;
#endif
}

TEST(memory_is_taken_and_keeps_what_it_holds) {
  if (!kernel_can()) {
    std::printf("the kernel cannot take memory ahead\n");
    return;
  }
  Memory memory;
  constexpr std::size_t kFirst = 5000, kLast = kBytes / 2 - 1;  // not at the borders of pages
  memory.part(kFirst, kFirst + 1)[0] = std::byte{7};
  MemoryAhead ahead;
  ahead.take({memory.part(kFirst, 6 << 20), memory.part(7 << 20, kLast)});
  memory.wait_until_resident((7 << 20) - 4096);
  EXPECT_TRUE(memory.resident() >= (7 << 20) - 4096);
  EXPECT_TRUE(memory.resident() <= kBytes / 2);
  EXPECT_TRUE(memory.part(kFirst, kFirst + 1)[0] == std::byte{7});
  ahead.take({memory.part(kBytes / 2, kBytes)});
  memory.wait_until_resident(kBytes - (2 << 20));
  EXPECT_TRUE(memory.resident() >= kBytes - (2 << 20));
}

TEST(memory_may_go_after_stop) {
  MemoryAhead ahead;
  ahead.stop();
  for (int i = 0; i < 20; ++i) {
    Memory memory;
    ahead.take({memory.part(0, kBytes)});
    ahead.stop();
    const std::size_t taken = memory.resident();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(memory.resident(), taken);
  }
}

}  // namespace
}  // namespace kilokv::engine
