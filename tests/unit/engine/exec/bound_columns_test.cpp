// The memory of the columns that arguments list, on the host and on a device (base/section.hpp).

#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/exec/device/device_block.hpp"
#include "engine/exec/device/kept_columns.hpp"
#include "engine/exec/run/host_columns.hpp"
#include "engine/platform/concept.hpp"
#include "engine/platform/device_pointer.hpp"
#include "engine/platform/emulated_device.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint8_t kFill = 0x5A;

// A column of each section, and one that the host has the results of.
template <class Space>
struct Arguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  Pointer<const std::uint32_t> sent = {};
  Pointer<std::uint64_t> results = {}, words = {}, zeroed = {}, scratch = {}, kept = {};
  std::uint32_t number = 0;

  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    column(sent, shape.transactions, Section::sent);
    column(kept, shape.records, Section::kept, kFill);
    column(scratch, shape.transactions, Section::scratch);
    column(zeroed, shape.transactions, Section::zeroed);
    column(results, shape.transactions, Section::returned);
    column(words, 3, Section::returned);
  }
};

BatchShape shape_of(std::size_t transactions, std::size_t records) {
  BatchShape shape;
  shape.transactions = transactions;
  shape.records = records;
  return shape;
}

constexpr std::uint64_t filled() {
  std::uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | kFill;
  return word;
}

bool all_are(const std::uint64_t* column, std::size_t count, std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) {
    if (column[i] != value) return false;
  }
  return true;
}

// The batch's own columns stay where they are.
TEST(the_host_owns_what_nobody_else_has) {
  HostColumns columns;
  const std::vector<std::uint32_t> sent(10, 1);
  std::vector<std::uint64_t> results(10, 2);
  Arguments<HostSpace> a;
  a.sent = sent.data();
  a.results = results.data();
  columns.bind(shape_of(10, 5), &a);
  EXPECT_TRUE(a.sent == sent.data());
  EXPECT_TRUE(a.results == results.data());
  EXPECT_EQ(results[9], 2u);
  EXPECT_TRUE(a.scratch != nullptr);
  EXPECT_TRUE(all_are(a.zeroed, 10, 0));
  EXPECT_TRUE(all_are(a.words, 3, 0));
  EXPECT_TRUE(all_are(a.kept, 5, filled()));
}

TEST(the_host_has_no_memory_for_columns_without_elements) {
  HostColumns columns;
  Arguments<HostSpace> a;
  columns.bind(shape_of(0, 0), &a);
  EXPECT_TRUE(a.sent == nullptr && a.results == nullptr && a.zeroed == nullptr);
  EXPECT_TRUE(a.scratch == nullptr && a.kept == nullptr);
  EXPECT_TRUE(all_are(a.words, 3, 0));
}

TEST(the_host_zeroes_and_keeps_for_each_batch) {
  HostColumns columns;
  Arguments<HostSpace> first;
  columns.bind(shape_of(10, 6), &first);
  const std::size_t bytes = columns.memory_bytes();
  first.zeroed[9] = first.words[2] = first.kept[4] = 7;
  Arguments<HostSpace> second;
  columns.bind(shape_of(9, 5), &second);
  EXPECT_TRUE(second.zeroed == first.zeroed && second.scratch == first.scratch && second.kept == first.kept);
  EXPECT_TRUE(all_are(second.zeroed, 9, 0));
  EXPECT_TRUE(all_are(second.words, 3, 0));
  EXPECT_EQ(second.kept[4], 7u);
  EXPECT_EQ(second.kept[5], filled());
  EXPECT_EQ(columns.memory_bytes(), bytes);
  columns.refill_kept();
  Arguments<HostSpace> third;
  columns.bind(shape_of(10, 6), &third);
  EXPECT_TRUE(all_are(third.kept, 6, filled()));
}

TEST(what_the_host_keeps_is_filled_when_it_grows) {
  HostColumns columns;
  Arguments<HostSpace> a;
  columns.bind(shape_of(1, 5), &a);
  a.kept[4] = 7;
  a = {};
  columns.bind(shape_of(1, 100'000), &a);
  EXPECT_TRUE(all_are(a.kept, 100'000, filled()));
  EXPECT_TRUE(columns.memory_bytes() >= 100'000 * sizeof(std::uint64_t));
}

// A device, and what a batch on it needs.
struct OnDevice {
  explicit OnDevice(const EmulatedDeviceOptions& options = {}) : device(options) { stream = *device.create_stream(); }
  // Runs a batch of n transactions whose kernel is `kernel`.
  template <class F>
  Status run(std::size_t n, std::size_t records, const F& kernel) {
    const BatchShape shape = shape_of(n, records);
    host = {};
    sent.assign(n, 3);
    results.assign(n, 0);
    host.sent = sent.data();
    host.results = results.data();
    host.number = 11;
    block.clear();
    const std::size_t first = block.add(shape, &host);
    if (Status status = block.reserve(); !status.ok()) return status;
    arguments = block.bind<Arguments<DeviceSpace>>(first, shape, &host);
    if (Status status = kept.bind(stream, shape, &arguments); !status.ok()) return status;
    block.pack();
    Status status = block.send(stream);
    if (status.ok()) status = block.zero(stream);
    if (status.ok()) {
      status = device.launch(stream, "kernel", [a = arguments, n, kernel](EmulatedPlatform& p) {
        if (p.thread() == 0) kernel(a, n);
      });
    }
    if (status.ok()) status = block.fetch(stream);
    if (status.ok()) status = device.synchronize(stream);
    if (status.ok()) block.unpack();
    return status;
  }

  EmulatedDevice device;
  DeviceStream stream;
  DeviceBlock block{&device};
  KeptColumns kept{&device};
  std::vector<std::uint32_t> sent;
  std::vector<std::uint64_t> results;
  Arguments<HostSpace> host;
  Arguments<DeviceSpace> arguments;
};

TEST(a_device_gets_what_is_sent_and_gives_back_what_is_returned) {
  OnDevice on;
  const auto kernel = [](const Arguments<DeviceSpace>& a, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      a.scratch[at] = std::uint64_t{a.sent[at]} + a.zeroed[at] + a.results[at] + a.number;
      a.results[at] = a.scratch[at] + i;
      a.zeroed[at] = std::uint64_t{99};
    }
    a.words[2] = static_cast<std::uint64_t>(a.words[2]) + 5;
  };
  for (const std::size_t n : {5u, 1000u, 7u}) {
    const Status status = on.run(n, 1, kernel);
    ASSERT_EQ(status.message(), "");
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(on.results[i], 14 + i);
    EXPECT_EQ(on.host.words[2], 5u);
  }
  EXPECT_TRUE(on.block.sent_bytes() >= 7 * sizeof(std::uint32_t));
  EXPECT_TRUE(on.block.returned_bytes() >= 10 * sizeof(std::uint64_t));
}

TEST(scratch_on_a_device_is_undefined) {
  OnDevice on;
  const Status status = on.run(5, 1, [](const Arguments<DeviceSpace>& a, std::size_t) { a.words[0] = a.scratch[0]; });
  EXPECT_FALSE(status.ok());
}

TEST(columns_without_elements_are_null_on_a_device) {
  OnDevice on;
  EXPECT_TRUE(on.run(0, 0, [](const Arguments<DeviceSpace>&, std::size_t) {}).ok());
  EXPECT_TRUE(on.arguments.sent == nullptr && on.arguments.results == nullptr && on.arguments.kept == nullptr);
  EXPECT_TRUE(on.arguments.words != nullptr);
}

// One that counts in the kept column, from the fill on.
TEST(a_device_keeps_columns_until_they_grow_or_are_filled_again) {
  OnDevice on;
  const auto count = [](const Arguments<DeviceSpace>& a, std::size_t) {
    a.kept[0] = static_cast<std::uint64_t>(a.kept[0]) + 1;
    a.words[0] = a.kept[0];
  };
  const auto counted = [&](std::size_t records) {
    EXPECT_TRUE(on.run(1, records, count).ok());
    return on.host.words[0] - filled();
  };
  EXPECT_EQ(counted(5), 1u);
  EXPECT_EQ(counted(6), 2u);
  const std::uint64_t allocations = on.device.allocations();
  EXPECT_EQ(counted(5), 3u);
  EXPECT_EQ(on.device.allocations(), allocations);
  on.kept.refill();
  EXPECT_EQ(counted(5), 1u);
  EXPECT_EQ(counted(100'000), 1u);
}

// A device without memory for the column, once: the fill is not forgotten.
TEST(a_fill_that_failed_comes_with_the_next_batch) {
  OnDevice on;
  const auto look = [](const Arguments<DeviceSpace>& a, std::size_t) { a.words[0] = a.kept[0]; };
  EXPECT_TRUE(on.run(1, 5, [](const Arguments<DeviceSpace>& a, std::size_t) { a.kept[0] = std::uint64_t{1}; }).ok());
  on.kept.refill();
  EXPECT_EQ(on.run(1, std::size_t{1} << 40, look).code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(on.run(1, 5, look).ok());
  EXPECT_EQ(on.host.words[0], filled());
}

}  // namespace
}  // namespace kilokv::engine
