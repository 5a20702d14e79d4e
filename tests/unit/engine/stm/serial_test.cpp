// The specification of a batch, exactly: order, passes, ranks and versions.

#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

void withdraw(ColumnsBuilder& b, std::string_view key, std::int64_t amount) {
  const auto account = b.key(key);
  b.guard(GuardKind::greater_equal, OnFalse::wait, account, amount);
  b.op(OpKind::add, account, Operand::integer, -amount);
}

void deposit(ColumnsBuilder& b, std::string_view key, std::int64_t amount) {
  b.op(OpKind::add, b.key(key), Operand::integer, amount);
}

// Waits until `from` is 1, then sets `to` to 1.
void link(ColumnsBuilder& b, int from, int to) {
  b.guard(GuardKind::equal, OnFalse::wait, b.key("link" + std::to_string(from)), 1);
  b.op(OpKind::put, b.key("link" + std::to_string(to)), Operand::integer, 1);
}

TEST(withdrawal_before_its_deposit_in_one_batch) {
  Bench bench;
  bench.add([](auto& b) { withdraw(b, "a", 30); });
  bench.add([](auto& b) { deposit(b, "a", 50); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::committed);
  EXPECT_EQ(bench.results.rank[0], 2u);  // pass 1, position 0, of 2
  EXPECT_EQ(bench.results.rank[1], 1u);
  EXPECT_EQ(bench.results.passes, 2u);
  EXPECT_EQ(bench.results.next_version, Version{104});
  EXPECT_EQ(bench.written(), "a=50@101 a=20@102");
  EXPECT_EQ(bench.get("a"), "20@102");
}

TEST(precedence_comes_before_arrival) {
  Bench bench;
  bench.add([](auto& b) { withdraw(b, "a", 30); }, 2);
  bench.add([](auto& b) { withdraw(b, "a", 10); }, 1);
  bench.add([](auto& b) { deposit(b, "a", 35); }, 0);
  bench.add([](auto& b) { deposit(b, "a", 5); }, 0);
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.results.passes, 1u);
  EXPECT_EQ(bench.written(), "a=35@100 a=40@101 a=30@102 a=0@103");
  EXPECT_EQ(bench.results.rank[0], 3u);
  EXPECT_EQ(bench.results.rank[2], 0u);
}

TEST(a_pass_that_finishes_none_is_the_last) {
  Bench bench;
  bench.load("a", 7, 9);
  bench.add([](auto& b) { withdraw(b, "a", 100); }, 0, true);
  bench.add([](auto& b) { withdraw(b, "a", 100); });
  bench.add([](auto& b) { deposit(b, "a", 1); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.results.passes, 2u);
  EXPECT_EQ(bench.results.next_version, Version{106});
  EXPECT_EQ(bench.outcome(0), Outcome::wait_expired);
  EXPECT_EQ(bench.results.rank[0], 6u);  // passes x n + position
  EXPECT_EQ(bench.failure(0), "1.0");
  EXPECT_EQ(describe(*bench.engine, bench.results.guard_cell[0]), "8@102");
  EXPECT_EQ(bench.outcome(1), Outcome::postponed);
  EXPECT_EQ(bench.results.rank[1], 7u);
}

TEST(nobody_finishes_in_pass_0) {
  Bench bench;
  bench.add([](auto& b) { withdraw(b, "a", 1); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.results.passes, 1u);
  EXPECT_EQ(bench.results.next_version, Version{101});
  EXPECT_EQ(bench.outcome(0), Outcome::postponed);
  EXPECT_EQ(bench.get("a"), "-");
}

// A chain against the order: each pass frees exactly the next one, until the limit.
TEST(reversed_chain_and_the_pass_limit) {
  constexpr int kLinks = 20;
  Bench bench;
  bench.load("link0", 1);
  for (int i = kLinks - 1; i >= 0; --i) bench.add([i](auto& b) { link(b, i, i + 1); });
  EXPECT_TRUE(bench.run(1000).ok());
  EXPECT_EQ(bench.results.passes, kWaitPassesMax);
  EXPECT_EQ(bench.results.next_version, Version{1000 + 16 * kLinks});
  for (int i = 0; i < kLinks; ++i) {
    const auto t = static_cast<std::size_t>(kLinks - 1 - i);
    const bool done = i < static_cast<int>(kWaitPassesMax);
    EXPECT_EQ(bench.outcome(t), done ? Outcome::committed : Outcome::postponed);
    if (done) EXPECT_EQ(bench.results.rank[t], static_cast<std::uint32_t>(i) * kLinks + t);
  }
  EXPECT_EQ(bench.get("link16"), "1@" + std::to_string(1000 + 15 * kLinks + 4));
  EXPECT_EQ(bench.get("link17"), "-");
}

// In order, one pass does it all.
TEST(chain_in_order) {
  Bench bench;
  bench.load("link0", 1);
  for (int i = 0; i < 100; ++i) bench.add([i](auto& b) { link(b, i, i + 1); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.results.passes, 1u);
  EXPECT_EQ(bench.get("link100"), "1@199");
}

TEST(empty_batch) {
  Bench bench;
  EXPECT_TRUE(bench.run(42).ok());
  EXPECT_EQ(bench.results.passes, 0u);
  EXPECT_EQ(bench.results.next_version, Version{42});
  EXPECT_EQ(bench.writes.size(), std::size_t{0});
}

}  // namespace
}  // namespace kilokv::test
