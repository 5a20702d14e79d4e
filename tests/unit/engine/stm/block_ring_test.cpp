// The ring on one thread, where nothing happens at the same time: what the producer takes back, the consumer passes
// over. The simulator checks the rest (validator_sim_test.cpp).

#include "engine/stm/block_ring.hpp"

#include <cstdint>
#include <vector>

#include "engine/platform/host.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kSlots = 8;

// Both sides of a ring.
struct Ring {
  Ring() { words[kRingCut] = kNoCut; }

  // Publishes entries with one check each: number 0, 1, ...
  void publish(std::uint64_t count) {
    producer.open();
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(producer.has_room());
      producer.publish({.first = i, .offset = i, .count = 1});
    }
  }
  std::uint64_t take() { return consumer.take().first; }

  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kRingWords);
  std::vector<std::uint64_t> entries = std::vector<std::uint64_t>(std::size_t{kRingEntryWords} * kSlots);
  RingArguments<HostSpace> arguments{words.data(), entries.data(), kSlots};
  ThreadTeam team{1};
  HostPlatform platform{&team, 0, nullptr};
  RingProducer<HostPlatform> producer{platform, arguments};
  RingConsumer<HostPlatform> consumer{platform, arguments};
};

TEST(entries_come_in_order_but_for_those_that_are_taken_back) {
  Ring ring;
  ring.publish(5);
  EXPECT_EQ(ring.take(), 0u);
  ring.consumer.done(kNothingFound);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ring.producer.take_back());
  EXPECT_EQ(ring.take(), 1u);
  EXPECT_TRUE(ring.producer.take_back());
  EXPECT_FALSE(ring.producer.take_back());  // entry 1 may be at the consumer
  ring.consumer.done(7);
  EXPECT_EQ(ring.producer.head(), 2u);
  EXPECT_EQ(ring.producer.found(), 7u);
  ring.producer.publish({});
  EXPECT_EQ(ring.consumer.take().count, 0u);
}

// The producer gives the consumer up, and ends its service. The consumer comes back late: it must not begin what was
// taken back, because the memory of these entries may be in use for something else.
TEST(the_end_is_the_next_thing_after_all_is_taken_back) {
  for (const std::uint64_t done : {0, 1, 3}) {
    Ring ring;
    ring.publish(5);
    for (std::uint64_t i = 0; i < done; ++i) {
      EXPECT_EQ(ring.take(), i);
      ring.consumer.done(kNothingFound);
    }
    ring.producer.take_all_back();
    ring.producer.publish({});
    const RingEntry next = ring.consumer.take();
    EXPECT_EQ(next.count, 0u);
    ring.consumer.done(kNothingFound);
    EXPECT_EQ(ring.producer.head(), ring.producer.tail());
  }
}

TEST(what_was_taken_back_before_is_no_matter_after_the_next_opening) {
  Ring ring;
  ring.publish(3);
  ring.producer.take_all_back();
  for (std::uint64_t i = 0; i < 3; ++i) ring.consumer.done(kNothingFound);
  ring.publish(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ring.take(), i);
    ring.consumer.done(kNothingFound);
  }
}

}  // namespace
}  // namespace kilokv::engine
