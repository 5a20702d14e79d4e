// Memory that is taken ahead of its use: the kernel says which pages are there.

#include "engine/platform/memory_ahead.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
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

 private:
  std::byte* bytes_;
};

void wait_for(const MemoryAhead& ahead) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!ahead.is_done() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(memory_is_taken_and_stays_zero) {
  Memory memory;
  constexpr std::size_t kFirst = 5000, kLast = kBytes / 2 - 1;  // not at the borders of pages
  MemoryAhead ahead;
  EXPECT_TRUE(ahead.is_done());
  ahead.take({memory.part(kFirst, 6 << 20), memory.part(7 << 20, kLast)});
  wait_for(ahead);
  EXPECT_TRUE(ahead.is_done());
  EXPECT_EQ(memory.resident(), std::size_t{(7 << 20) - 4096});
  ahead.take({memory.part(kBytes / 2, kBytes)});
  wait_for(ahead);
  EXPECT_EQ(memory.resident(), kBytes - 4096 - (1 << 20));
  const MemoryAhead::Part all = memory.part(0, kBytes);
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(memory_may_go_after_stop) {
  MemoryAhead ahead;
  ahead.stop();
  for (int i = 0; i < 20; ++i) {
    Memory memory;
    ahead.take({memory.part(0, kBytes)});
    ahead.stop();
    EXPECT_TRUE(ahead.is_done());
    const std::size_t taken = memory.resident();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(memory.resident(), taken);
  }
}

}  // namespace
}  // namespace kilokv::engine
