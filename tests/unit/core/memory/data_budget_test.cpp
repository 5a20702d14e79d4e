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
  budget.release(half);
  EXPECT_TRUE(budget.reserve({1, 2}, 0).ok());
}

TEST(DataBudget, CountsTheGrowthOfTheTable) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(0));
  EXPECT_TRUE(budget.reserve({300, 0}, 0).ok()) << "as many as the table has room for";
  EXPECT_FALSE(budget.reserve({1, 0}, 0).ok()) << "then it would hold the old and the new slots for a moment";
}

TEST(DataBudget, TakesWhatChangesNoDataAlways) {
  DataBudget budget(kLimit, kData);
  budget.set_held(held(kData));
  EXPECT_FALSE(budget.reserve({1, 1}, 0).ok());
  EXPECT_TRUE(budget.reserve({}, 0).ok());
  budget.set_held(held(0));
  EXPECT_TRUE(budget.reserve({1, 1}, 0).ok());
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

}  // namespace
}  // namespace kilokv::server
