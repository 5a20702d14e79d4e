// What must hold for every device: the emulated one, and a CUDA device if there is one. If there is none, the engine
// must say so. With KILOKV_TEST_DEVICE=cuda there must be one.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/platform/cuda_device.hpp"
#include "engine/platform/emulated_device.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

#define ASSERT_OK(status)              \
  do {                                 \
    const Status kk_status = (status); \
    if (!kk_status.ok()) {             \
      FAIL(kk_status.message());       \
      return;                          \
    }                                  \
  } while (false)

// There and back on two streams, with events between.
void expect_round_trip(Device& device) {
  constexpr std::size_t kBytes = 100'000;
  const auto there = device.create_stream();
  const auto back = device.create_stream();
  const auto event = device.create_event();
  const auto begin = device.create_event();
  const auto memory = device.allocate(kBytes);
  const auto pinned = device.allocate_pinned(kBytes);
  ASSERT_TRUE(there.ok() && back.ok() && event.ok() && begin.ok() && memory.ok() && pinned.ok());
  EXPECT_EQ(*memory % 256, 0);
  auto* host = static_cast<std::uint8_t*>(*pinned);
  std::vector<std::uint8_t> got(kBytes);
  for (std::uint8_t round = 1; round <= 5; ++round) {
    std::memset(host, round, kBytes);
    ASSERT_OK(device.record(*begin, *there));
    ASSERT_OK(device.copy_to_device(*there, *memory, host, kBytes));
    ASSERT_OK(device.fill(*there, *memory + 10, 99, 3));
    ASSERT_OK(device.record(*event, *there));
    ASSERT_OK(device.wait(*back, *event));
    ASSERT_OK(device.copy_to_host(*back, got.data(), *memory, kBytes));
    ASSERT_OK(device.synchronize(*back));
    const auto taken = device.seconds_between(*begin, *event);
    ASSERT_OK(taken.status());
    EXPECT_TRUE(*taken > 0 && *taken < 60);
    EXPECT_TRUE(*device.seconds_between(*event, *begin) < 0);
    std::vector<std::uint8_t> want(kBytes, round);
    std::memset(want.data() + 10, 99, 3);
    EXPECT_TRUE(got == want);
  }
  EXPECT_EQ(device.allocate(device.info().memory_bytes + 1).status().code(), StatusCode::resource_exhausted);
  ASSERT_OK(device.synchronize(*there));  // that was no error of the device
  device.free_pinned(*pinned);
  device.free(*memory);
  device.free(0);
}

TEST(the_emulated_device_carries_bytes_there_and_back) {
  EmulatedDevice device;
  EXPECT_EQ(device.info().kind, "emulated");
  expect_round_trip(device);
}

TEST(a_cuda_device_carries_bytes_there_and_back_or_says_why_there_is_none) {
  const auto device = CudaDevice::open();
  if (!device.ok()) {
    std::printf("%s\n", device.status().message().c_str());
    const char* const chosen = std::getenv("KILOKV_TEST_DEVICE");
    EXPECT_FALSE(chosen != nullptr && std::string_view(chosen) == "cuda");
    EXPECT_EQ(device.status().code(), StatusCode::unavailable);
    EXPECT_TRUE(device.status().message().find("CUDA") != std::string::npos);
    return;
  }
  EXPECT_EQ((*device)->info().kind, "cuda");
  EXPECT_TRUE((*device)->info().multiprocessors > 0 && !(*device)->info().model.empty());
  expect_round_trip(**device);
}

}  // namespace
}  // namespace kilokv::engine
