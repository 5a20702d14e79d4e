#include "server/core/memory/data_budget.hpp"

#include <gtest/gtest.h>

#include "tests/support/shown_limit.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kLimit = 200000, kData = 80000;

// A table that does not grow for a while.
engine::EngineMemory held(std::size_t values) {
  engine::EngineMemory memory;
  memory.slots = 1000;
  memory.records = 500;
  memory.table_bytes = engine::table_bytes_until(1000, 500);
  memory.value_bytes = values;
  return memory;
}

TEST(DataBudget, RefusesWhatDoesNotFitBesideWhatIsReserved) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(20000));
  const std::uint64_t room = kData - held(20000).sum();
  const NewData half{10, room / 2};
  EXPECT_TRUE(budget.reserve(half, 0).ok());
  EXPECT_TRUE(budget.reserve(half, 0).ok());
  const Status refused = budget.reserve({1, 2}, 0);
  expect_shown(refused, "raise --memory-limit", ErrorReason::memory_full);
  EXPECT_EQ(numbers_in(refused.violation()->limit).at(0), kLimit);
  budget.release(half, 0);
  EXPECT_TRUE(budget.reserve({1, 2}, 0).ok());
}

TEST(DataBudget, CountsTheGrowthOfTheTable) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(0));
  EXPECT_TRUE(budget.reserve({260, 0}, 0).ok()) << "as many as the table has room for";
  EXPECT_TRUE(budget.reserve({1, kData - engine::table_bytes_until(1000, 761)}, 0).ok()) << "it grows by a fifth";
  EXPECT_FALSE(budget.reserve({1, 1}, 0).ok()) << "the larger table takes the rest";
}

TEST(DataBudget, TakesWhatChangesNoDataAlways) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(kData));
  EXPECT_FALSE(budget.reserve({1, 1}, 0).ok());
  EXPECT_TRUE(budget.reserve({}, 0).ok());
  budget.set_held(held(0));
  EXPECT_TRUE(budget.reserve({1, 1}, 0).ok());
}

// Keys of 16 bytes may take the places of such keys, as long as there are enough for all that may still come.
TEST(DataBudget, CountsTheRoomAmongTheKeys) {
  DataBudget budget(kLimit, kData);
  engine::EngineMemory full = held(kData - held(0).sum());
  full.key_room.short_runs[5] = 10;
  budget.set_held(full);
  const NewData four{4, 4 * 20, 0, 4 * 20, 20}, longer{1, 24, 0, 24, 24}, with_index{1, 32, 0, 20, 20};
  bool in_room = false;
  EXPECT_FALSE(budget.reserve(four, 0).ok()) << "nobody asked for room";
  EXPECT_FALSE(budget.reserve(longer, 0, nullptr, &in_room).ok());
  EXPECT_FALSE(budget.reserve(with_index, 0, nullptr, &in_room).ok()) << "the index needs more";
  ASSERT_TRUE(budget.reserve(four, 0, nullptr, &in_room).ok());
  EXPECT_TRUE(in_room);
  EXPECT_FALSE(budget.reserve(four, 0, nullptr, &in_room).ok()) << "each may split a place";
  EXPECT_FALSE(budget.reserve({1, 1}, 0).ok()) << "room is not for values";
  budget.release(four, 0, nullptr, true);
  ASSERT_TRUE(budget.reserve(four, 0, nullptr, &in_room).ok());
  budget.release(four, 0, nullptr, true);
  engine::EngineMemory open = held(0);
  open.key_room.long_runs = 1;
  open.key_room.long_units = 300;
  budget.set_held(open);
  ASSERT_TRUE(budget.reserve(four, 0, nullptr, &in_room).ok());
  EXPECT_FALSE(in_room) << "there is memory";
}

// Keys that open a block need all of it at once. Keys that fit into the block that is open need no more.
TEST(DataBudget, CountsTheBlocksOfKeys) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;
  DataBudget budget(kLimit + 2 * kBlock, kData + kBlock);
  budget.set_held(held(kData - held(0).sum() + 1000));
  const NewData key{1, 20, 0, 20, 20};
  EXPECT_FALSE(budget.reserve(key, 0).ok()) << "a block is not there";
  engine::EngineMemory open = held(kData - held(0).sum() + 1000);
  open.key_room.long_runs = 1;
  open.key_room.long_units = 300;
  budget.set_held(open);
  EXPECT_TRUE(budget.reserve(key, 0).ok());
  EXPECT_FALSE(budget.reserve({60, 1200, 0, 1200, 20}, 0).ok()) << "some go to another block";
}

// A client that has reserved little of the room leaves the rest to others.
TEST(DataBudget, ClientsShareTheRoomAmongTheKeys) {
  DataBudget budget(kLimit, kData);
  engine::EngineMemory full = held(kData - held(0).sum());
  full.key_room.short_runs[5] = 100;
  budget.set_held(full);
  const NewData key{1, 20, 0, 20, 20};
  Held first{0}, second{0};
  bool in_room = false;
  ASSERT_TRUE(budget.reserve(key, 0, &first, &in_room).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(budget.reserve(key, 0, &second, &in_room).ok()) << i;
  int more = 0;
  while (budget.reserve(key, 0, &second, &in_room).ok()) ++more;
  EXPECT_LT(more, 50) << "it has no more than its share";
}

// Empty blocks go back to the system, also if somebody has reserved room in them.
TEST(DataBudget, RoomThatHasGoneIsMemoryAgain) {
  DataBudget budget(kLimit, kData);
  engine::EngineMemory full = held(kData - held(0).sum());
  full.key_room.short_runs[5] = 100;
  budget.set_held(full);
  const NewData keys{40, 40 * 20, 0, 40 * 20, 20}, value{1, 800};
  bool in_room = false;
  ASSERT_TRUE(budget.reserve(keys, 0, nullptr, &in_room).ok());
  ASSERT_TRUE(in_room);
  budget.set_held(held(kData - held(0).sum() - 800));
  EXPECT_FALSE(budget.reserve(value, 0).ok()) << "the keys need it";
  budget.release(keys, 0, nullptr, true);
  EXPECT_TRUE(budget.reserve(value, 0).ok());
}

// Waiting does not help a request that is too large even for an empty database.
TEST(DataBudget, OffersNoRetryToWhatNeverFits) {
  DataBudget budget(kLimit, kData);
  EXPECT_TRUE(budget.reserve({1, kData / 2}, 0).ok());
  EXPECT_TRUE(budget.reserve({1, kData / 2}, 0).retry_after_us().has_value());
  EXPECT_FALSE(budget.reserve({1, kData}, 0).retry_after_us().has_value());
}

TEST(DataBudget, SaysWhatTheStoredDataNeeds) {
  const DataBudget budget(kLimit, kData);
  EXPECT_TRUE(budget.check_stored(kData).ok());
  const Status refused = budget.check_stored(kData + kData / 2);
  EXPECT_EQ(refused.reason(), ErrorReason::memory_full);
  EXPECT_EQ(refused.message(),
            "memory is 120000 bytes needed by the stored data, for which a limit of 300001 bytes is enough; the limit "
            "is 200000 bytes, of which 80000 are for data (raise --memory-limit)");
  EXPECT_TRUE(budget.check_replay(kLimit).ok());
  EXPECT_FALSE(budget.check_replay(kLimit + 1).ok());
}

TEST(DataBudget, HasNoLimitWithoutOne) {
  DataBudget budget(0, 0);
  budget.set_held(held(kData));
  EXPECT_TRUE(budget.reserve({1000000, std::uint64_t{1} << 60}, 0).ok());
  EXPECT_TRUE(budget.check_stored(std::uint64_t{1} << 60).ok());
}

TEST(DataBudget, ClientsShareWhatMayBeReserved) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(20000));
  const std::uint64_t room = kData - held(20000).sum();
  Held greedy{0}, light{0};
  ASSERT_TRUE(budget.reserve({1, room / 2}, 0, &greedy).ok()) << "the first may take much";
  ASSERT_TRUE(budget.reserve({1, room / 4}, 0, &greedy).ok());
  const Status refused = budget.reserve({1, room / 8}, 0, &greedy);
  expect_shown(refused, "raise --memory-limit", ErrorReason::memory_full);
  EXPECT_NE(refused.message().find("this client"), std::string::npos) << refused.message();
  EXPECT_TRUE(refused.retry_after_us().has_value());
  EXPECT_EQ(greedy.load(), room / 2 + room / 4) << "what is refused is not counted";
  EXPECT_TRUE(budget.reserve({1, room / 8}, 0, &light).ok());
  EXPECT_FALSE(budget.reserve({1, room / 8 + 1000}, 0, nullptr).ok()) << "the limit holds for all";
  budget.release({1, room / 2}, 0, &greedy);
  budget.release({1, room / 4}, 0, &greedy);
  budget.release({1, room / 8}, 0, &light);
  EXPECT_EQ(greedy.load() + light.load(), 0u);
}

// A copy counts with the largest value that was known, from the reservation to its release.
TEST(DataBudget, AShareOfCopiesIsGivenBackAsItWasTaken) {
  DataBudget budget(kLimit, kData);
  Held client{0};
  ASSERT_TRUE(budget.reserve({1, 10, 3}, 100, &client).ok());
  EXPECT_GE(client.load(), 310u);
  ASSERT_TRUE(budget.reserve({1, 10, 0}, 1000, &client).ok()) << "a larger value comes";
  budget.release({1, 10, 3}, 100, &client);
  budget.release({1, 10, 0}, 1000, &client);
  EXPECT_EQ(client.load(), 0u);
}

}  // namespace
}  // namespace kilokv::server
