// Buffers give their memory back: when they grow, when they are released, and when they end. The device here holds only
// a little more than they need at once, so that memory which is kept would be missing.

#include "engine/exec/device/device_buffer.hpp"

#include <cstddef>
#include <cstring>

#include "engine/platform/emulated_device.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kMemory = std::size_t{1} << 24;
constexpr std::size_t kMost = kMemory / 2 + 1;  // two of these do not fit

// How much of the device's memory is in use, beside what the device itself takes.
class SmallDevice : public EmulatedDevice {
 public:
  SmallDevice() : EmulatedDevice({.memory_bytes_max = kMemory}) {}
  bool has_room(std::size_t bytes) {
    const auto address = allocate(bytes);
    if (!address.ok()) return false;
    free(*address);
    return true;
  }
};

TEST(a_buffer_gives_its_memory_back_when_it_ends) {
  SmallDevice device;
  for (int i = 0; i < 3; ++i) {
    DeviceBuffer buffer(&device);
    EXPECT_TRUE(buffer.reserve(kMost).ok());
    EXPECT_EQ(buffer.bytes(), kMost);
    EXPECT_FALSE(device.has_room(kMost));
  }
  EXPECT_TRUE(device.has_room(kMost));
}

TEST(a_buffer_that_grows_gives_its_memory_back_first) {
  SmallDevice device;
  DeviceBuffer buffer(&device);
  EXPECT_TRUE(buffer.reserve(kMemory / 3).ok());
  EXPECT_TRUE(buffer.reserve(kMost).ok());
  const DeviceAddress address = buffer.address();
  EXPECT_TRUE(buffer.reserve(kMost).ok());
  EXPECT_EQ(buffer.address(), address);  // there is room
  buffer.release();
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_EQ(buffer.address(), DeviceAddress{0});
  EXPECT_TRUE(device.has_room(kMost));
  buffer.release();
}

TEST(a_buffer_that_finds_no_room_is_empty) {
  SmallDevice device;
  DeviceBuffer buffer(&device);
  EXPECT_TRUE(buffer.reserve(kMost).ok());
  EXPECT_EQ(buffer.reserve(2 * kMemory).code(), StatusCode::resource_exhausted);
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_TRUE(device.has_room(kMost));
}

TEST(a_growing_buffer_has_room_for_more) {
  SmallDevice device;
  DeviceBuffer buffer(&device);
  EXPECT_TRUE(buffer.reserve_growing(10'000).ok());
  EXPECT_TRUE(buffer.reserve_growing(10'001).ok());
  EXPECT_EQ(buffer.bytes(), 15'000u);
}

TEST(shared_memory_is_given_back_when_its_owner_ends) {
  SmallDevice device;
  for (int i = 0; i < 3; ++i) {
    SharedBuffer buffer(&device);
    EXPECT_TRUE(buffer.reserve(kMost).ok());
    EXPECT_EQ(buffer.bytes(), kMost);
    EXPECT_EQ(*buffer.host<unsigned char>(kMost - 1), 0);
    EXPECT_TRUE(buffer.reserve(kMost).ok());  // once
    EXPECT_FALSE(device.has_room(kMost));
  }
  EXPECT_TRUE(device.has_room(kMost));
  const SharedBuffer unused(&device);
}

// One copy moves all columns of a block.
TEST(columns_of_a_block_do_not_overlap) {
  BlockLayout layout;
  const std::size_t bytes = layout.add<std::uint8_t>(17), words = layout.add<std::uint64_t>(3);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(words, 32u);
  EXPECT_EQ(layout.bytes(), 64u);
}

}  // namespace
}  // namespace kilokv::engine
