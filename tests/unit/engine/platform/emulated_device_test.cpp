// The emulated device must detect each error that the driver of a device may make: the tests plant them all. Its
// pointers, atomics, streams and injected errors must also work as their comments say.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/platform/emulated_device.hpp"
#include "tests/unit/engine/child_process.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

using test::Death;
using test::run_in_child;

using Word = std::uint64_t;
constexpr auto kRelaxed = Order::relaxed;
constexpr auto kDevice = Scope::device;
constexpr std::uint64_t kSeeds = 40;

#define EXPECT_OK(status)                           \
  do {                                              \
    const Status kk_status = (status);              \
    if (!kk_status.ok()) FAIL(kk_status.message()); \
  } while (false)

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void expect_fault(const Status& status, const char* part) {
  EXPECT_EQ(status.code(), StatusCode::internal);
  if (!has(status.message(), part)) FAIL("\"" + status.message() + "\" to have \"" + part + "\"");
}

// A device with one stream.
class Rig {
 public:
  explicit Rig(const EmulatedDeviceOptions& options = {}) : device(options), stream(*device.create_stream()) {}

  template <class T>
  DevicePointer<T> allocate(std::size_t count) {
    return DevicePointer<T>(*device.allocate(count * sizeof(T)));
  }
  template <class T>
  DevicePointer<T> upload(const std::vector<T>& values) {
    const auto memory = allocate<T>(values.size());
    EXPECT_OK(device.copy_to_device(stream, memory.address(), values.data(), values.size() * sizeof(T)));
    EXPECT_OK(device.synchronize(stream));
    return memory;
  }
  template <class T>
  std::vector<T> download(DevicePointer<T> memory, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(device.copy_to_host(stream, values.data(), memory.address(), count * sizeof(T)));
    EXPECT_OK(device.synchronize(stream));
    return values;
  }
  // Of a kernel, to its end.
  Status run(const char* name, EmulatedDevice::Kernel body, EmulatedBlocks blocks = {}) {
    const Status launched = device.launch(stream, name, std::move(body), blocks);
    return launched.ok() ? device.synchronize(stream) : launched;
  }
  // The same on one thread alone.
  Status run_once(const char* name, std::function<void()> body) {
    return run(name, [body = std::move(body)](EmulatedPlatform& p) {
      if (p.thread() == 0) body();
    });
  }

  EmulatedDevice device;
  DeviceStream stream;
};

static_assert(std::is_same_v<std::pointer_traits<DevicePointer<const Cell>>::element_type, const Cell>);
static_assert(std::is_same_v<ElementOf<DevicePointer<const Cell>>, Cell>);
static_assert(std::is_convertible_v<DevicePointer<Cell>, DevicePointer<const Cell>>);
static_assert(!std::is_convertible_v<DevicePointer<const Cell>, DevicePointer<Cell>>);
static_assert(!std::is_convertible_v<DevicePointer<Cell>, DevicePointer<Word>>);
static_assert(!std::is_convertible_v<Cell*, DevicePointer<Cell>>);
static_assert(!std::is_assignable_v<decltype(std::declval<DevicePointer<const Word>>()[0]), Word>);

TEST(pointers_count_in_elements) {
  const DevicePointer<Cell> null;
  EXPECT_FALSE(static_cast<bool>(null));
  EXPECT_TRUE(null == nullptr);
  DevicePointer<Cell> p(DeviceAddress{1024});
  EXPECT_TRUE(p != nullptr && static_cast<bool>(p));
  EXPECT_EQ((p + 3).address(), 1024 + 3 * sizeof(Cell));
  EXPECT_EQ((p - 2).address(), 1024 - 2 * sizeof(Cell));
  EXPECT_EQ((p + 5) - p, 5);
  ++p;
  EXPECT_EQ(p.address(), 1024 + sizeof(Cell));
  const DevicePointer<const Cell> constant = p;
  EXPECT_EQ(constant.address(), p.address());
}

// As the interpreter uses the columns of a batch and of its results.
TEST(elements_are_read_and_written_as_plain_ones) {
  Rig rig;
  struct View {
    DevicePointer<const std::uint32_t> end;
    DevicePointer<Cell> cell;
    DevicePointer<std::uint8_t> flag;
  };
  const View view{rig.upload<std::uint32_t>({1, 2, 3}), rig.upload<Cell>({{1, 2}, {3, 4}, {5, 6}}),
                  rig.allocate<std::uint8_t>(3)};
  EXPECT_OK(rig.run_once("elements", [view] {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < view.end[2]; ++i) sum += view.end[i];
    const Cell read = view.cell[0];
    view.cell[1] = Cell{sum, read.tag};
    view.cell[2] = view.cell[1];
    view.flag[0] = sum == 6 ? 7 : 0;
    *(view.flag + 1) = view.flag[0];
    view.flag[2] = static_cast<std::uint8_t>(view.flag[1] + 1);
  }));
  EXPECT_TRUE(rig.download(view.cell, 3) == (std::vector<Cell>{{1, 2}, {6, 2}, {6, 2}}));
  EXPECT_TRUE(rig.download(view.flag, 3) == (std::vector<std::uint8_t>{7, 7, 8}));
}

TEST(atomics_are_atomic_across_the_threads_of_a_kernel) {
  constexpr Word kRounds = 2000;
  Rig rig;
  const auto words = rig.upload<Word>({0, 0, 1000, 0, 0, 0});
  const auto halves = rig.upload<std::uint32_t>({0, 0, 1000});
  EXPECT_OK(rig.run("atomics", [=](EmulatedPlatform& p) {
    for (Word i = 0; i < kRounds; ++i) {
      p.fetch_add(words, 1, kRelaxed, kDevice);
      p.fetch_max(words + 1, i * p.threads() + p.thread(), kRelaxed, kDevice);
      p.fetch_min(words + 2, 10 + p.thread(), kRelaxed, kDevice);
      Word seen = p.load(words + 3, kRelaxed, kDevice);
      for (Word before = seen + 1; before != seen;) {
        before = seen;
        seen = p.compare_exchange(words + 3, before, before + 2, Order::acquire_release, kDevice);
      }
      p.fetch_add(halves, 3, kRelaxed, kDevice);
    }
    p.fetch_add(words + 4, p.exchange(words + 5, p.thread() + 1, kRelaxed, kDevice), kRelaxed, kDevice);
    p.grid_barrier();
    if (p.thread() == 0) p.fetch_add(words + 4, p.load(words + 5, kRelaxed, kDevice), kRelaxed, kDevice);
  }));
  const std::vector<Word> got = rig.download(words, 5);
  EXPECT_TRUE(got == (std::vector<Word>{4 * kRounds, kRounds * 4 - 1, 10, 8 * kRounds, 1 + 2 + 3 + 4}));
  EXPECT_TRUE(rig.download(halves, 3) == (std::vector<std::uint32_t>{12 * kRounds, 0, 1000}));
}

TEST(barriers_order_what_threads_put_and_get) {
  constexpr std::uint32_t kRounds = 500;
  Rig rig;
  const auto words = rig.allocate<Word>(4);
  const auto sums = rig.allocate<Word>(4);
  EXPECT_OK(rig.run("barriers", [=](EmulatedPlatform& p) {
    Word sum = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      p.put(words + p.thread(), round + p.thread());
      p.grid_barrier();
      for (std::uint32_t thread = 0; thread < p.threads(); ++thread) sum += p.get(words + thread);
      p.grid_barrier();
    }
    p.put(sums + p.thread(), sum);
  }));
  const Word sum = Word{4} * kRounds * (kRounds - 1) / 2 + Word{6} * kRounds;
  EXPECT_TRUE(rig.download(sums, 4) == std::vector<Word>(4, sum));
}

TEST(shared_words_are_each_blocks_own_and_undefined_at_the_start) {
  Rig rig;
  const auto out = rig.allocate<Word>(4);
  EXPECT_OK(rig.run("shares", [=](EmulatedPlatform& p) {
    p.put(p.shared() + (EmulatedPlatform::kSharedWords - 1), p.thread());
    p.grid_barrier();
    p.put(out + p.thread(), p.get(p.shared() + (EmulatedPlatform::kSharedWords - 1)));
  }));
  EXPECT_TRUE(rig.download(out, 4) == (std::vector<Word>{0, 1, 2, 3}));
  expect_fault(rig.run("forgets", [](EmulatedPlatform& p) { p.get(p.shared() + EmulatedPlatform::kSharedWords - 1); }),
               "forgets reads 8 bytes");
}

TEST(blocks_of_a_cluster_share_their_words) {
  Rig rig;
  const EmulatedBlocks blocks{.words = 3, .in_cluster = 2};
  const auto out = rig.allocate<Word>(4);
  const auto shares = [=](EmulatedPlatform& p) {
    p.put(p.block_words(p.thread() % 2) + 2, p.thread());
    p.grid_barrier();
    p.put(out + p.thread(), p.get(p.block_words(1 - p.thread() % 2) + 2));
  };
  EXPECT_OK(rig.run("shares", shares, blocks));
  EXPECT_TRUE(rig.download(out, 4) == (std::vector<Word>{1, 0, 3, 2}));
  expect_fault(rig.run(
                   "forgets", [](EmulatedPlatform& p) { p.get(p.block_words(0) + 2); }, blocks),
               "forgets reads 8 bytes");
  const auto put_at = [](std::uint32_t block, std::uint32_t word) {
    return [=](EmulatedPlatform& p) { p.put(p.block_words(block) + word, 1); };
  };
  expect_fault(Rig().run("leaves", put_at(1, 3), blocks), "leaves writes 8 bytes at offset 232448");
  expect_fault(Rig().run("strays", put_at(2, 0), blocks), "strays writes 8 bytes at a null pointer");
  expect_fault(Rig().run("asks", put_at(0, 0)), "asks writes 8 bytes at a null pointer");
}

TEST(a_host_pointer_on_the_device_is_noticed) {
  Rig rig;
  Word host = 0;
  const DevicePointer<Word> wrong(reinterpret_cast<DeviceAddress>(&host));
  expect_fault(rig.run_once("confused", [wrong] { wrong[0] = 5; }), "confused writes 8 bytes at 0x");
  EXPECT_EQ(host, 0);

  Rig copying;
  EXPECT_OK(copying.device.copy_to_device(copying.stream, wrong.address(), &host, sizeof host));
  expect_fault(copying.device.synchronize(copying.stream), "which is a pointer of the host");

  Rig stripped;  // all but its tag is right
  const auto memory = stripped.upload<Word>({1});
  const DevicePointer<Word> untagged(memory.address() << 10 >> 10);
  expect_fault(stripped.run_once("stripped", [=] { untagged[0] = 5; }), "which is a pointer of the host");

  Rig null;
  expect_fault(null.run_once("null", [] { DevicePointer<Word>()[0] = 1; }), "at a null pointer");
}

TEST(a_device_pointer_on_the_host_ends_the_process) {
  Rig rig;
  const auto memory = rig.upload<Word>({1});
  const Death reading = run_in_child([&] { static_cast<void>(DeviceSpace::to_read(memory)); });
  EXPECT_TRUE(reading.died());
  EXPECT_TRUE(has(reading.words, "the host uses a pointer of the emulated device"));
  const Death writing = run_in_child([&] { memory[0] = 1; });
  EXPECT_TRUE(writing.died());
  const Death raw = run_in_child([&] { *reinterpret_cast<volatile Word*>(memory.address()) = 1; });
  EXPECT_TRUE(raw.died());
  const Death nothing = run_in_child([] {});
  EXPECT_FALSE(nothing.died());
}

TEST(a_read_before_the_write_is_noticed) {
  Rig rig;
  const auto memory = rig.allocate<Word>(32);
  EXPECT_OK(rig.device.fill(rig.stream, memory.address(), 0, 20 * sizeof(Word)));
  EXPECT_OK(rig.run_once("writes", [=] { memory[20] = memory[19]; }));
  EXPECT_OK(rig.run_once("reads", [=] { memory[20] = memory[20] + 1; }));
  expect_fault(rig.run_once("hasty", [=] { memory[0] = memory[21]; }), "hasty reads 8 bytes at offset 168");

  Rig atomics;
  const auto word = atomics.allocate<Word>(1);
  expect_fault(atomics.run("adds", [=](EmulatedPlatform& p) { p.fetch_add(word, 1, kRelaxed, kDevice); }),
               "never written");

  Rig parts;  // one byte of a word is missing
  const auto part = parts.allocate<std::uint8_t>(64);
  EXPECT_OK(parts.device.fill(parts.stream, part.address(), 0, 63));
  const DevicePointer<const Word> last(part.address() + 56);
  expect_fault(parts.run_once("parts", [=] { static_cast<void>(last[0]); }), "never written");
}

TEST(what_was_never_written_is_poison_on_the_host) {
  Rig rig;
  const auto memory = rig.allocate<std::uint8_t>(4);
  EXPECT_OK(rig.device.fill(rig.stream, memory.address() + 1, 9, 2));
  EXPECT_TRUE(rig.download(memory, 4) == (std::vector<std::uint8_t>{kDevicePoison, 9, 9, kDevicePoison}));
}

TEST(an_access_out_of_range_or_not_aligned_is_noticed) {
  constexpr std::int64_t kFar = std::int64_t{1} << 32;
  for (const std::int64_t index : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{5}, kFar, -kFar}) {
    Rig rig;
    const auto before = rig.upload<Word>({1, 2, 3, 4});
    const auto memory = rig.upload<Word>({1, 2, 3, 4});
    const auto behind = rig.upload<Word>({1, 2, 3, 4});
    const std::string where = "at offset " + std::to_string(index * 8) + " of allocation ";
    const Status status = rig.run_once("strays", [=] { memory[index] = 9; });
    expect_fault(status, where.c_str());
    expect_fault(status, "which has 32 bytes");
    static_cast<void>(before);
    static_cast<void>(behind);
  }
  Rig rig;
  const auto memory = rig.upload<Word>({1, 2});
  const DevicePointer<Word> between(memory.address() + 4);
  expect_fault(rig.run_once("between", [=] { between[0] = 1; }), "not aligned to 8");

  Rig copying;
  const auto small = copying.upload<Word>({1, 2});
  std::array<Word, 3> host{};
  EXPECT_OK(copying.device.copy_to_host(copying.stream, host.data(), small.address(), sizeof host));
  expect_fault(copying.device.synchronize(copying.stream), "copy_to_host reads 24 bytes at offset 0");
}

TEST(a_use_after_free_is_noticed) {
  Rig rig;
  const auto memory = rig.upload<Word>({1, 2});
  rig.device.free(memory.address());
  const auto next = rig.upload<Word>({3, 4});  // does not take its place
  EXPECT_TRUE(next != memory);
  expect_fault(rig.run_once("late", [=] { static_cast<void>(static_cast<Word>(memory[0])); }), "which is freed");

  Rig queued;
  const auto used = queued.upload<Word>({1, 2});
  Word host = 0;
  EXPECT_OK(queued.device.copy_to_host(queued.stream, &host, used.address(), sizeof host));
  queued.device.free(used.address());
  expect_fault(queued.device.synchronize(queued.stream), "which is freed");
}

TEST(an_address_is_not_used_again_soon) {
  Rig rig;
  std::set<DeviceAddress> seen;
  for (int i = 0; i < 2000; ++i) {
    const DeviceAddress address = *rig.device.allocate(1);
    EXPECT_TRUE(seen.insert(address).second);
    rig.device.free(address);
  }
}

TEST(a_wrong_free_is_noticed) {
  Rig twice;
  const auto memory = twice.upload<Word>({1, 2});
  twice.device.free(memory.address());
  twice.device.free(memory.address());
  expect_fault(twice.device.synchronize(twice.stream), "which is freed");

  Rig inside;
  inside.device.free(inside.upload<Word>({1, 2}).address() + 8);
  expect_fault(inside.device.synchronize(inside.stream), "free() at offset 8");

  Rig nothing;
  nothing.device.free(0);
  EXPECT_OK(nothing.device.synchronize(nothing.stream));
}

TEST(memory_of_another_device_is_noticed) {
  Rig one;
  Rig other;
  const auto memory = other.upload<Word>({1});
  expect_fault(one.run_once("foreign", [=] { memory[0] = 2; }), "another device's");
  EXPECT_TRUE(other.download(memory, 1) == (std::vector<Word>{1}));
}

TEST(a_barrier_that_not_all_come_to_is_noticed) {
  Rig early;  // one ends, the others meet
  expect_fault(early.run("early",
                         [](EmulatedPlatform& p) {
                           if (p.thread() != 3) p.grid_barrier();
                         }),
               "early: not every thread came to a barrier");
  Rig often;  // one meets once more
  expect_fault(often.run("often",
                         [](EmulatedPlatform& p) {
                           for (std::uint32_t i = p.thread() == 0 ? 0 : 1; i < 10; ++i) p.grid_barrier();
                         }),
               "often: not every thread came to a barrier");
  Rig astray;  // a fault is why: it is what is told
  const auto memory = astray.upload<Word>({1, 1, 1});
  expect_fault(astray.run("astray",
                          [=](EmulatedPlatform& p) {
                            if (p.get(memory + p.thread()) == 1) p.grid_barrier();
                          }),
               "astray reads 8 bytes");
}

TEST(a_kernel_that_a_fault_keeps_for_ever_ends_the_process) {
  const Death death = run_in_child([] {
    Rig rig({.threads = 1});
    static_cast<void>(rig.run("waits", [](EmulatedPlatform& p) {
      while (p.load(DevicePointer<Word>(), kRelaxed, kDevice) == 0) {
      }
    }));
  });
  EXPECT_TRUE(death.died());
  EXPECT_TRUE(has(death.words, "waits reads 8 bytes at a null pointer"));
}

TEST(the_first_fault_is_told_and_the_device_is_lost) {
  Rig rig;
  const auto memory = rig.upload<Word>({1});
  const auto idle = *rig.device.create_stream();
  bool ran = false;
  EXPECT_OK(rig.device.launch(rig.stream, "first", [=](EmulatedPlatform& p) {
    p.put(memory + 1, 1);
    p.get(memory - 1);
  }));
  EXPECT_OK(rig.device.launch(rig.stream, "second", [&ran](EmulatedPlatform&) { ran = true; }));
  expect_fault(rig.device.synchronize(rig.stream), "first writes 8 bytes");
  EXPECT_FALSE(ran);
  expect_fault(rig.device.synchronize(idle), "the device is lost");
  expect_fault(rig.device.allocate(8).status(), "first writes 8 bytes");
  expect_fault(rig.run_once("third", [] {}), "the device is lost");
  rig.device.free(memory.address());
}

// A copy on one stream, a kernel that needs it on another.
Status run_two_streams(std::uint64_t seed, bool ordered) {
  Rig rig({.seed = seed});
  const auto other = *rig.device.create_stream();
  const auto event = *rig.device.create_event();
  const auto memory = rig.allocate<Word>(1);
  const Word host = 7;
  EXPECT_OK(rig.device.copy_to_device(rig.stream, memory.address(), &host, sizeof host));
  if (ordered) {
    EXPECT_OK(rig.device.record(event, rig.stream));
    EXPECT_OK(rig.device.wait(other, event));
  }
  EXPECT_OK(rig.device.launch(other, "needs", [=](EmulatedPlatform& p) { p.get(memory); }));
  return rig.device.synchronize(other);
}

TEST(a_missing_order_of_two_streams_is_noticed) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_OK(run_two_streams(seed, true));
    const Status status = run_two_streams(seed, false);
    if (status.ok()) continue;
    ++found;
    expect_fault(status, "needs reads 8 bytes");
  }
  EXPECT_TRUE(found > 0 && found < kSeeds);
  EXPECT_EQ(run_two_streams(1, false).code(), run_two_streams(1, false).code());
}

// wait() is for the record() before it: a later one of the same event is not waited for, or this would never end.
TEST(a_wait_is_for_the_last_record_before_it) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig({.seed = seed});
    const auto other = *rig.device.create_stream();
    const auto there = *rig.device.create_event();
    const auto back = *rig.device.create_event();
    std::vector<int> order;
    const auto note = [&order](int what) {
      return [&order, what](EmulatedPlatform& p) {
        if (p.thread() == 0) order.push_back(what);
      };
    };
    EXPECT_OK(rig.device.wait(rig.stream, there));  // never recorded
    EXPECT_OK(rig.device.launch(rig.stream, "one", note(1)));
    EXPECT_OK(rig.device.record(there, rig.stream));
    EXPECT_OK(rig.device.wait(other, there));
    EXPECT_OK(rig.device.launch(other, "two", note(2)));
    EXPECT_OK(rig.device.record(back, other));
    EXPECT_OK(rig.device.wait(rig.stream, back));
    EXPECT_OK(rig.device.launch(rig.stream, "three", note(3)));
    EXPECT_OK(rig.device.record(there, rig.stream));
    EXPECT_OK(rig.device.synchronize(rig.stream));
    EXPECT_TRUE(order == (std::vector<int>{1, 2, 3}));
  }
}

TEST(streams_run_as_late_as_they_may) {
  Rig rig;
  const auto memory = rig.allocate<Word>(1);
  Word from = 1;
  Word to = 0;
  EXPECT_OK(rig.device.copy_to_device(rig.stream, memory.address(), &from, sizeof from));
  EXPECT_OK(rig.device.copy_to_host(rig.stream, &to, memory.address(), sizeof to));
  EXPECT_EQ(to, 0);
  from = 2;
  EXPECT_OK(rig.device.synchronize(rig.stream));
  EXPECT_EQ(to, 2);
}

TEST(a_stream_that_nobody_waits_for_may_be_left_behind) {
  std::uint64_t left = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rig rig({.seed = seed, .threads = 1});
    const auto other = *rig.device.create_stream();
    bool ran = false;
    EXPECT_OK(rig.device.launch(other, "other", [&ran](EmulatedPlatform&) { ran = true; }));
    EXPECT_OK(rig.run_once("own", [] {}));
    left += ran ? 0 : 1;
    EXPECT_OK(rig.device.synchronize(other));
    EXPECT_TRUE(ran);
  }
  EXPECT_TRUE(left > 0 && left < kSeeds);
}

TEST(memory_is_bounded) {
  Rig rig({.memory_bytes_max = 1024});
  const Result<DeviceAddress> half = rig.device.allocate(512);
  EXPECT_TRUE(half.ok());
  EXPECT_EQ(*half % 256, 0);
  const Status refused = rig.device.allocate(513).status();
  EXPECT_EQ(refused.code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(has(refused.message(), "513 bytes: 512 are left"));
  EXPECT_TRUE(rig.device.allocate(512).ok());
  EXPECT_FALSE(rig.device.allocate(1).ok());
  rig.device.free(*half);
  EXPECT_TRUE(rig.device.allocate(1).ok());
}

// Every call that there is, as somebody who drives a device makes them.
Status drive(EmulatedDevice& device, Word* answer) {
  const auto stream = device.create_stream();
  if (!stream.ok()) return stream.status();
  const auto event = device.create_event();
  if (!event.ok()) return event.status();
  const auto pinned = device.allocate_pinned(sizeof(Word));
  if (!pinned.ok()) return pinned.status();
  const auto memory = device.allocate(2 * sizeof(Word));
  if (!memory.ok()) return memory.status();
  const DevicePointer<Word> words(*memory);
  auto* host = static_cast<Word*>(*pinned);
  *host = 20;
  const std::vector<std::function<Status()>> steps{
      [&] { return device.fill(*stream, *memory, 0, 2 * sizeof(Word)); },
      [&] { return device.copy_to_device(*stream, *memory, host, sizeof(Word)); },
      [&] { return device.record(*event, *stream); },
      [&] { return device.wait(*stream, *event); },
      [&] {
        return device.launch(*stream, "adds", [=](EmulatedPlatform& p) { p.fetch_add(words, 1, kRelaxed, kDevice); });
      },
      [&] { return device.copy_to_host(*stream, answer, *memory, sizeof(Word)); },
      [&] { return device.synchronize(*stream); },
  };
  for (const auto& step : steps) {
    if (Status status = step(); !status.ok()) return status;
  }
  device.free(*memory);
  device.free_pinned(host);
  return {};
}

TEST(each_call_can_be_made_to_fail) {
  EmulatedDevice fine;
  Word answer = 0;
  EXPECT_OK(drive(fine, &answer));
  EXPECT_EQ(answer, 24);
  const std::uint64_t calls = fine.calls();
  EXPECT_EQ(calls, 11);
  for (const InjectedError error : {InjectedError::exhausted, InjectedError::lost, InjectedError::asynchronous}) {
    for (std::uint64_t n = 1; n <= calls; ++n) {
      EmulatedDevice device({.fail_at_call = n, .fail_as = error});
      answer = 0;
      const Status status = drive(device, &answer);
      const bool is_exhausted = error == InjectedError::exhausted;
      EXPECT_EQ(status.code(), is_exhausted ? StatusCode::resource_exhausted : StatusCode::internal);
      EXPECT_TRUE(has(status.message(), "injected error"));
      // What a stream was given fails only when it runs: whoever waits for it hears of it.
      const bool is_told_late = error == InjectedError::asynchronous && n >= 5;
      EXPECT_EQ(device.calls(), is_told_late ? calls : n);
      EXPECT_EQ(answer, 0);
      EXPECT_EQ(device.create_stream().ok(), is_exhausted);
    }
  }
}

TEST(a_call_from_now_on_can_be_made_to_fail) {
  Rig rig;
  rig.device.fail_call(2, InjectedError::exhausted);
  EXPECT_TRUE(rig.device.allocate(8).ok());
  EXPECT_EQ(rig.device.allocate(8).status().code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(rig.device.allocate(8).ok());
  rig.device.fail_call(1, InjectedError::lost);
  EXPECT_EQ(rig.device.synchronize(rig.stream).code(), StatusCode::internal);
  EXPECT_EQ(rig.device.synchronize(rig.stream).code(), StatusCode::internal);
}

}  // namespace
}  // namespace kilokv::engine
