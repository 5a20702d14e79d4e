// Measures how many cache lines in random places the machine's threads can change in a second, alone and together. No
// engine can touch more records than that. The lines are prefetched some places ahead, as the engine does it.
//
//   random_lines [MEGABYTES [SECONDS]]
//
// The default is 80 MB, which is the record table of 2.5 million accounts, for 1 second.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/prefetch.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::bench {
namespace {

struct alignas(64) Line {
  std::uint64_t words[8];
};

// Changes lines until `ends`. Returns how many.
std::uint64_t change_lines(std::vector<Line>* lines, std::uint64_t seed, const std::atomic<bool>& ends) {
  constexpr std::size_t kAhead = 16, kRun = 4096;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  std::size_t places[kAhead];
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const auto place = static_cast<std::size_t>((state >> 32) * lines->size() >> 32);
    engine::prefetch_for_write(&(*lines)[place]);
    return place;
  };
  for (std::size_t& place : places) place = next();
  std::uint64_t changed = 0;
  for (; !ends.load(std::memory_order_relaxed); changed += kRun) {
    for (std::size_t i = 0; i < kRun; ++i) {
      std::size_t& place = places[i % kAhead];
      // Two threads may change one line. Nobody reads the sums.
      std::atomic_ref((*lines)[place].words[0]).store(i, std::memory_order_relaxed);
      place = next();
    }
  }
  return changed;
}

void measure(std::size_t megabytes, double seconds, std::uint32_t threads) {
  std::vector<Line> lines(megabytes * 1'000'000 / sizeof(Line));
  std::atomic<bool> ends = false;
  std::vector<std::uint64_t> changed(threads);
  std::vector<std::thread> all;
  const engine::Stopwatch watch;
  for (std::uint32_t i = 0; i < threads; ++i) {
    all.emplace_back([&, i] { changed[i] = change_lines(&lines, i + 1, ends); });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  ends = true;
  for (std::thread& thread : all) thread.join();
  double sum = 0;
  for (const std::uint64_t each : changed) sum += static_cast<double>(each);
  std::printf("%zu MB, %u threads: %.1f million lines/s\n", megabytes, threads, sum / watch.seconds() * 1e-6);
}

}  // namespace
}  // namespace kilokv::bench

int main(int argc, char** argv) {
  const std::size_t megabytes = std::max(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 80, 1ul);
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 1;
  const std::uint32_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  for (std::uint32_t threads = 1; threads < cores; threads *= 2) kilokv::bench::measure(megabytes, seconds, threads);
  kilokv::bench::measure(megabytes, seconds, cores);
}
