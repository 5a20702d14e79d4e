// In the steady state a batch allocates nothing, whatever strategy or platform runs it. The test counts every call of
// operator new.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* allocate(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace kilokv::test {
namespace {

using Count = std::function<std::uint64_t()>;

std::uint64_t count_of_new() { return allocations.load(); }

// How much memory a strategy needs can depend on how its threads were scheduled: a thread that runs alone takes the
// work of all. So the largest need can come late, and the batches are counted in windows until one window counts
// nothing.
constexpr std::size_t kWarmUp = 400, kCounted = 50, kWindows = 20;

// The least that is counted in any window of batches of 200 transfers, once everything has its size.
std::uint64_t counted(Engine* engine, const Count& count) {
  WorkloadOptions options;
  options.keys = 500;
  auto workload = Workload::create(options);
  workload->for_each_initial([&](const InitialRecord& record) {
    static_cast<void>(engine->load(record.key, 1, record.type, record.integer, record.bytes));
  });
  std::vector<TransactionColumns> batches(kWarmUp);
  for (TransactionColumns& columns : batches) {
    ColumnsBuilder builder(&columns, kSecret);
    workload->generate(&builder, 200);
  }
  const Column<std::uint8_t> expires(200, 1);
  BatchResults results;
  WriteColumns writes;
  BatchHeader header{0, kStamp, 2};
  const auto run = [&](std::size_t number) {
    for (std::size_t i = 0; i < number; ++i) {
      ++header.number;
      EXPECT_TRUE(engine->execute(header, batches[header.number % kWarmUp], expires, &results, &writes).ok());
      engine->release_through(header.number);
      header.first_version = results.next_version;
    }
  };
  run(kWarmUp);
  std::uint64_t least = UINT64_MAX;
  for (std::size_t window = 0; window < kWindows && least > 0; ++window) {
    const std::uint64_t before = count();
    run(kCounted);
    least = std::min(least, count() - before);
  }
  return least;
}

EngineOptions engine_options(const char* strategy, std::uint32_t threads) {
  EngineOptions options;
  options.strategy = strategy;
  options.threads = threads;
  options.secret = kSecret;
  return options;
}

TEST(serial_allocates_nothing) {
  const auto engine = std::move(*Engine::create(engine_options("serial", 0)));
  EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
}

TEST(ordered_allocates_nothing) {
  for (const std::uint32_t threads : {1u, 2u, 4u}) {
    const auto engine = std::move(*Engine::create(engine_options("ordered", threads)));
    EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
    EXPECT_EQ(std::string(engine->execution().strategy), "ordered");
  }
}

TEST(pipelined_allocates_nothing) {
  for (const std::uint32_t threads : {2u, 4u}) {
    const auto engine = std::move(*Engine::create(engine_options("pipelined", threads)));
    EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
    EXPECT_EQ(std::string(engine->execution().strategy), "pipelined");
  }
}

TEST(partitioned_allocates_nothing) {
  for (const std::uint32_t threads : {2u, 4u}) {
    const auto engine = create_partitioned_engine(engine_options("partitioned", threads), {.transactions_min = 1});
    EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
    EXPECT_EQ(std::string(engine->execution().strategy), "partitioned");
  }
}

TEST(kilo_allocates_nothing) {
  const auto engine = std::move(*Engine::create(engine_options("kilo", 2)));
  EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
  EXPECT_EQ(std::string(engine->execution().strategy), "kilo");
}

// 500 records do not all find room.
TEST(local_allocates_nothing) {
  for (const std::uint32_t staged : {64u, 1024u}) {
    EngineOptions options = engine_options("local", 2);
    options.settings["staged-records"] = std::to_string(staged);
    const auto engine = std::move(*Engine::create(options));
    EXPECT_EQ(counted(engine.get(), count_of_new), 0u);
    EXPECT_EQ(std::string(engine->execution().strategy), "local");
  }
}

// Memory of the device, and pinned memory. (The emulated device itself keeps its streams on the heap.)
TEST(nothing_is_allocated_on_a_device) {
  OpenedDevice opened = open_emulated();
  const auto* const device = static_cast<const EmulatedDevice*>(opened.device.get());
  const auto engine =
      create_engine_with(engine_options("ordered", 1), std::make_unique<DeviceExecutor>(std::move(opened)));
  EXPECT_EQ(counted(engine.get(), [device] { return device->allocations(); }), 0u);
  EXPECT_TRUE(device->allocations() > 0);
  EXPECT_TRUE(engine->execution().on_device);
}

// How many passes a batch takes can depend on how its threads were scheduled.
TEST(the_order_by_rank_allocates_once) {
  BatchResults results;
  for (std::uint32_t t = 0; t < 200; ++t) {
    results.rank.push_back(t);
    results.wrote.push_back(1);
  }
  RankOrder order;
  const std::uint64_t before = allocations.load();
  for (const std::uint32_t passes : {1u, 2u, 4u, 5u, 100u}) {
    results.passes = passes;
    order.sort(results, false);
  }
  EXPECT_EQ(allocations.load() - before, 1u);
}

TEST(the_count_counts) {
  const std::uint64_t before = allocations.load();
  const auto number = std::make_unique<int>(1);
  EXPECT_EQ(allocations.load() - before, 1u);
}

}  // namespace
}  // namespace kilokv::test
