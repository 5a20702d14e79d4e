#include "server/core/access/access.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace kilokv::server {
namespace {

AccessChange role(const std::string& name) {
  return {
      .kind = AccessChange::Kind::put_role, .role = {.name = name, .read = {}, .write = {}}, .user = {}, .token = {}};
}

class AccessTest : public testing::Test {
 protected:
  void make(const AccessChange& change, BatchNumber batch, std::uint64_t bytes = 10) {
    Result<AccessTable> after = access_.latest()->after({&change, 1}, true);
    ASSERT_TRUE(after.ok());
    access_.install(std::move(*after), {change}, bytes, batch, position_);
  }
  void answer(BatchNumber batch) {
    Position position;
    position.batch = batch;
    position_.set(position);
  }
  std::size_t answered_roles() {
    Position at;
    const std::size_t roles = access_.answered(position_, &at)->roles().size();
    EXPECT_EQ(at.batch, position_.batch());
    return roles;
  }

  // Five batches are not answered yet, and sometimes somebody asks for the answered table.
  void make_many(std::uint64_t bytes) {
    for (BatchNumber batch = 1; batch <= 100; ++batch) {
      make(role("r" + std::to_string(batch)), batch, bytes);
      answer(batch > 5 ? batch - 5 : 0);
      if (batch % 7 == 0) {
        EXPECT_EQ(answered_roles(), position_.batch());
      }
    }
    EXPECT_EQ(answered_roles(), 95u);
    answer(100);
    make(role("last"), 101, bytes);
    EXPECT_EQ(answered_roles(), 100u);
  }

  SharedPosition position_;
  Access access_;
};

TEST_F(AccessTest, TheAnsweredTableHasTheChangesOfAnsweredBatches) {
  make(role("a"), 1);
  make(role("b"), 3);
  make(role("c"), 3);
  make(role("d"), 4);
  EXPECT_EQ(access_.latest()->roles().size(), 4u);
  for (const std::size_t expected : {0u, 1u, 1u, 3u, 4u, 4u}) {
    EXPECT_EQ(answered_roles(), expected) << position_.batch();
    answer(position_.batch() + 1);
  }
  EXPECT_EQ(access_.hash(), access_.latest()->hash());
}

TEST_F(AccessTest, SmallChangesComeWhileOthersAreNotAnswered) { make_many(10); }
TEST_F(AccessTest, LargeChangesComeWhileOthersAreNotAnswered) { make_many(600000); }

}  // namespace
}  // namespace kilokv::server
