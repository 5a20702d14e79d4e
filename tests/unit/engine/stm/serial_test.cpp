// The specification of a batch, exactly: order, passes, ranks and versions.

#include <limits>

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

// Waits until `key` is at least 100. If that is in vain, it adds 1 to `missed`.
void wait_or_miss(ColumnsBuilder& b, std::string_view key, std::string_view missed) {
  b.guard(GuardKind::greater_equal, OnFalse::wait, b.key(key), 100);
  b.begin_else();
  b.op(OpKind::add, b.key(missed), Operand::integer, 1);
  b.op(OpKind::get, b.key(key));
}

TEST(else_runs_if_it_expires) {
  Bench bench;
  bench.load("a", 7, 9);
  bench.add_last([](auto& b) { wait_or_miss(b, "a", "missed"); });
  bench.add([](auto& b) { deposit(b, "a", 1); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::wait_expired);
  EXPECT_EQ(bench.failure(0), "1.0");
  EXPECT_EQ(describe(*bench.engine, bench.results.guard_cell[0]), "8@101");
  EXPECT_EQ(bench.results.rank[0], 4u);  // 2 passes x 2 + position 0
  EXPECT_EQ(bench.results.wrote[0], 1u);
  EXPECT_EQ(bench.read(1), "8@101");
  EXPECT_EQ(bench.results.next_version, Version{106});  // one more pass
  EXPECT_EQ(bench.written(), "a=8@101 missed=1@104");
}

TEST(no_pass_of_last_tries_without_need) {
  Bench bench;
  bench.load("a", 99, 9);
  bench.add_last([](auto& b) { wait_or_miss(b, "a", "missed"); });  // commits
  bench.add([](auto& b) { deposit(b, "a", 1); });
  bench.add_last([](auto& b) { withdraw(b, "b", 1); }, false);                 // expires, and has no expire_runs_else
  bench.add([](auto& b) { wait_or_miss(b, "b", "missed"); }, 0, false, true);  // may wait longer
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::committed);
  EXPECT_EQ(bench.outcome(2), Outcome::wait_expired);
  EXPECT_EQ(bench.outcome(3), Outcome::postponed);
  EXPECT_EQ(bench.results.rank[2], 14u);
  EXPECT_EQ(bench.results.passes, 3u);
  EXPECT_EQ(bench.results.next_version, Version{112});
  EXPECT_EQ(bench.written(), "a=100@101");
}

// All that are on their last try take part. Each sees what the ones before it left. Guards are evaluated again.
TEST(last_tries_run_in_order) {
  Bench bench;
  bench.load("a", 1, 9);
  bench.add_last([](auto& b) { withdraw(b, "b", 60); }, false);  // still waits
  bench.add_last([](auto& b) {
    b.guard(GuardKind::exists, OnFalse::wait, b.key("nobody"), 0);
    b.begin_else();
    deposit(b, "b", 70);
  });
  bench.add([](auto& b) { withdraw(b, "b", 1); });               // may wait longer
  bench.add_last([](auto& b) { withdraw(b, "b", 30); }, false);  // commits
  bench.add_last([](auto& b) {
    const auto b_key = b.key("b");
    b.guard(GuardKind::equal, OnFalse::fail, b_key, 0);
    b.guard(GuardKind::exists, OnFalse::wait, b.key("nobody"), 0);
    b.begin_else();
    deposit(b, "b", 5);
  });
  EXPECT_TRUE(bench.run().ok());
  const Outcome outcomes[] = {Outcome::wait_expired, Outcome::wait_expired, Outcome::postponed, Outcome::committed,
                              Outcome::guard_failed};
  for (std::size_t t = 0; t < 5; ++t) {
    EXPECT_EQ(bench.outcome(t), outcomes[t]);
    EXPECT_EQ(bench.results.rank[t], 5 + t);
  }
  EXPECT_EQ(bench.failure(3), "0.-1");
  EXPECT_EQ(bench.failure(4), "1.0");
  EXPECT_EQ(bench.results.next_version, Version{110});
  EXPECT_EQ(bench.written(), "b=70@106 b=40@108 b=45@109");
  EXPECT_FALSE(bench.engine->would_wait(bench.ran, 2, kStamp));
}

TEST(else_of_an_expiry_that_overflows_is_undone) {
  Bench bench;
  bench.load("a", std::numeric_limits<std::int64_t>::max(), 9);
  bench.add_last([](auto& b) {
    b.guard(GuardKind::exists, OnFalse::wait, b.key("nobody"), 0);
    b.begin_else();
    deposit(b, "c", 1);
    deposit(b, "a", 1);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::overflow);
  EXPECT_EQ(bench.failure(0), "3.1");
  EXPECT_EQ(bench.results.next_version, Version{102});
  EXPECT_EQ(bench.written(), "");
  EXPECT_EQ(bench.get("c"), "-");
}

TEST(else_of_an_expiry_may_have_ranges) {
  Bench bench;
  bench.load("a", 1, 9);
  bench.load("b", 2, 9);
  bench.add_last([](auto& b) {
    b.guard(GuardKind::exists, OnFalse::wait, b.key("nobody"), 0);
    b.begin_else();
    b.range_op(OpKind::range_get, "a", "z", 5);
    b.range_op(OpKind::delete_range, "a", "b", 5);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::wait_expired);
  EXPECT_EQ(bench.results.range_end[0], 2u);
  EXPECT_EQ(bench.written(), "a=-@101");
  EXPECT_EQ(bench.get("a"), "-@101");
}

// The pass of last tries comes after a 16th pass, too. Link 16 would have run in a 17th pass.
TEST(last_tries_after_the_pass_limit) {
  constexpr int kLinks = 20;
  Bench bench;
  bench.load("link0", 1);
  for (int i = kLinks - 1; i >= 0; --i) bench.add_last([i](auto& b) { link(b, i, i + 1); });
  EXPECT_TRUE(bench.run(1000).ok());
  EXPECT_EQ(bench.results.next_version, Version{1000 + 17 * kLinks});
  for (std::size_t t = 0; t < 4; ++t) EXPECT_EQ(bench.results.rank[t], 16 * kLinks + t);
  EXPECT_EQ(bench.outcome(2), Outcome::wait_expired);
  EXPECT_EQ(bench.outcome(3), Outcome::committed);
  EXPECT_EQ(bench.get("link17"), "1@" + std::to_string(1000 + 16 * kLinks + 3));
  EXPECT_EQ(bench.get("link18"), "-");
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
