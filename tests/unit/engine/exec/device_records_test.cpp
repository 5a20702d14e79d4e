// What changes only on the host reaches the device's table: loads, batches on `serial`, and dropped tombstones. The
// amounts are below and above the limit at which the table is built anew, and more than is sent at once. After each
// change, the device reads what the host holds.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

// As DeviceRecords has them, for records that fill it far enough.
constexpr std::uint64_t kChangedMin = 4096, kChunk = std::uint64_t{1} << 15;

std::string name_of(std::uint64_t key) { return "key" + std::to_string(key); }

// An engine on the emulated device with keys 0, 1, ..., and what changes them.
class DeviceFollower {
 public:
  explicit DeviceFollower(std::uint64_t keys) : keys_(keys) {
    auto device = std::make_unique<DeviceExecutor>(open_emulated());
    device_ = device.get();
    EngineOptions options;
    options.strategy = "ordered";
    options.secret = kSecret;
    bench_.engine = create_engine_with(options, std::move(device));
    load(0, keys);
  }

  // Each of the keys changes, on the host alone, but for add().
  void load(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) bench_.load(name_of(i), ++last_value_, next_version_);
    ++next_version_;
  }
  void put_serially(std::uint64_t first, std::uint64_t count) {
    for_all(first, count,
            [this](ColumnsBuilder& b, std::uint32_t key) { b.op(OpKind::put, key, Operand::integer, ++last_value_); });
    run_serially();
  }
  void delete_serially(std::uint64_t first, std::uint64_t count) {
    for_all(first, count, [](ColumnsBuilder& b, std::uint32_t key) { b.op(OpKind::del, key); });
    run_serially();
  }
  void prepare() { bench_.engine->prepare(); }
  void drop_tombstones() { bench_.engine->drop_tombstones(next_version_, {}); }
  void add(std::uint64_t first, std::uint64_t count) {
    for_all(first, count, [](ColumnsBuilder& b, std::uint32_t key) { b.op(OpKind::add, key, Operand::integer, 1); });
    run(true);
  }

  // The device reads each `step`th of the first `count` keys as the host holds it. Nothing that it reads is written.
  void expect_the_same(std::uint64_t count, std::uint64_t step) {
    std::vector<Cell> expected;
    for (std::uint64_t i = 0; i < count; i += step) expected.push_back(bench_.engine->find(name_of(i)).cell);
    for_all(
        0, count, [](ColumnsBuilder& b, std::uint32_t key) { b.op(OpKind::get, key); }, step);
    run(true);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += bench_.results.op_cell[i] == expected[i] ? 0 : 1;
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(bench_.writes.size(), 0u);
    EXPECT_TRUE(bench_.engine->state_hash() == bench_.engine->compute_state_hash());
  }
  void expect_the_same() { expect_the_same(keys_, 1); }

  std::uint64_t builds() const { return device_->table().builds(); }
  std::size_t records() const { return bench_.engine->stats().records; }

 private:
  template <class F>
  void for_all(std::uint64_t first, std::uint64_t count, const F& f, std::uint64_t step = 1) {
    for (std::uint64_t i = first; i < first + count; i += step) {
      bench_.add([&](ColumnsBuilder& b) { f(b, b.key(name_of(i))); });
    }
  }
  void run(bool on_device) {
    EXPECT_TRUE(bench_.run(next_version_).ok());
    EXPECT_EQ(bench_.engine->execution().on_device, on_device);
    bench_.engine->release_through(bench_.batch);
    next_version_ = bench_.results.next_version;
  }
  // A batch with a range is for `serial`.
  void run_serially() {
    bench_.add([](ColumnsBuilder& b) { b.range_op(OpKind::range_get, "a", "b", 1); });
    run(false);
  }

  Bench bench_;
  const DeviceExecutor* device_;
  const std::uint64_t keys_;
  Version next_version_ = 1;
  std::int64_t last_value_ = 0;
};

// Up to the bound they are sent by name, beyond it the whole table is. Each amount a second time: what was named for
// the first is forgotten.
void change_in_all_ways(DeviceFollower* follower, std::uint64_t count, bool builds, std::uint64_t step) {
  const auto expect = [&](const char* what) {
    const std::uint64_t before = follower->builds();
    follower->expect_the_same(count + 100, step);
    EXPECT_EQ(follower->builds() - before, builds ? 1u : 0u);
    if (has_failed()) FAIL(std::string(what) + " of " + std::to_string(count));
  };
  for (int i = 0; i < 2 && !has_failed(); ++i) {
    follower->load(0, count);
    expect("loads");
    follower->put_serially(0, count);
    expect("writes on the host");
  }
}

// Its slots are given back for more of them before anything else has happened on the device.
TEST(a_table_that_was_built_empty_grows) {
  DeviceFollower follower(0);
  follower.prepare();
  follower.load(0, 2 * kChangedMin);
  follower.expect_the_same(2 * kChangedMin, 1);
  EXPECT_EQ(follower.builds(), 2u);
}

TEST(changes_about_the_least_bound_reach_the_device) {
  DeviceFollower follower(4 * kChangedMin);  // so that there is room for as many more
  follower.expect_the_same();
  for (const std::uint64_t count : {std::uint64_t{1}, kChangedMin - 1, kChangedMin}) {
    change_in_all_ways(&follower, count, false, 1);
  }
  for (const std::uint64_t count : {kChangedMin + 1, kChangedMin + 900}) {
    change_in_all_ways(&follower, count, true, 1);
  }
}

// So many records that the bound lies beyond what is sent at once.
TEST(changes_of_more_than_a_chunk_reach_the_device) {
  constexpr std::uint64_t kKeys = 330'000, kStep = 3;
  static_assert(kKeys / 8 > kChunk + 1000);
  DeviceFollower follower(kKeys);
  follower.expect_the_same(kKeys, 17);
  for (const std::uint64_t count : {kChunk - 1, kChunk, kChunk + 1, kChunk + 1000}) {
    change_in_all_ways(&follower, count, false, kStep);
  }
  change_in_all_ways(&follower, kKeys / 8 + 1000, true, kStep);
  follower.expect_the_same(kKeys, 7);
}

TEST(removed_records_of_more_than_a_chunk_are_gone_on_the_device) {
  constexpr std::uint64_t kKeys = 330'000, kGone = kChunk + 1000;
  DeviceFollower follower(kKeys);
  follower.expect_the_same(kKeys, 17);
  const std::uint64_t builds = follower.builds();
  follower.delete_serially(0, kGone);
  follower.expect_the_same(kGone + 100, 3);
  EXPECT_EQ(follower.records(), kKeys - kGone);
  follower.drop_tombstones();
  follower.expect_the_same(kGone + 100, 3);
  follower.add(0, 1000);
  follower.expect_the_same(kGone + 100, 3);
  EXPECT_EQ(follower.builds(), builds);
}

// Everything in random order and amount, without a look at the device behind each.
TEST(changes_of_all_kinds_between_batches_reach_the_device) {
  constexpr std::uint64_t kKeys = 6000;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    DeviceFollower follower(kKeys);
    for (int i = 0; i < 60 && !has_failed(); ++i) {
      const std::uint64_t count = 1 + random.below(random.chance(0.3) ? kChangedMin + 500 : 300);
      const std::uint64_t first = random.below(kKeys - count);
      switch (random.below(6)) {
        case 0: follower.load(first, count); break;
        case 1: follower.put_serially(first, count); break;
        case 2: follower.delete_serially(first, count); break;
        case 3: follower.drop_tombstones(); break;
        case 4: follower.add(first, std::min<std::uint64_t>(count, 500)); break;
        default: follower.expect_the_same();
      }
    }
    follower.expect_the_same();
    EXPECT_TRUE(follower.builds() > 1);
    if (has_failed()) return FAIL("seed " + std::to_string(seed));
  }
}

}  // namespace
}  // namespace kilokv::test
