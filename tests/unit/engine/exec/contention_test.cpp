// The contention that the sample of a batch finds. It is nothing where transactions commute or only read. It is the
// greater, the more of them meet at one record.

#include "engine/exec/run/contention.hpp"

#include <functional>
#include <string>

#include "engine/txn/columns.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{1, 2};

// Of n transactions, each built by `build` from its number.
Contention contention_of(std::size_t n, const std::function<void(std::size_t, ColumnsBuilder*)>& build,
                         ContentionSample* sample) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  for (std::size_t t = 0; t < n; ++t) {
    builder.begin();
    build(t, &builder);
    builder.end();
  }
  return sample->of(columns);
}
// As the second batch that is looked at: what is kept of the first is not mixed up with it.
Contention contention_of(std::size_t n, const std::function<void(std::size_t, ColumnsBuilder*)>& build) {
  ContentionSample sample;
  const auto hot = [](std::size_t, ColumnsBuilder* b) { b->op(OpKind::put, b->key("hot"), Operand::integer, 1); };
  EXPECT_TRUE(contention_of(100, hot, &sample) == Contention::high);
  return contention_of(n, build, &sample);
}

std::string key(const std::string& name, std::size_t i) { return name + std::to_string(i); }

TEST(records_of_their_own_are_no_contention) {
  for (const std::size_t n : {64u, 1000u, 8192u}) {
    EXPECT_TRUE(contention_of(n, [](std::size_t t, ColumnsBuilder* b) {
                  b->op(OpKind::put, b->key(key("a", t)), Operand::integer, 1);
                }) == Contention::low);
  }
}

TEST(one_record_that_all_set_is_high) {
  for (const std::size_t n : {64u, 1000u, 8192u}) {
    EXPECT_TRUE(contention_of(n, [](std::size_t t, ColumnsBuilder* b) {
                  b->op(OpKind::put, b->key("hot"), Operand::integer, 1);
                  b->op(OpKind::put, b->key(key("a", t)), Operand::integer, 1);
                }) == Contention::high);
  }
}

TEST(additions_and_reads_alone_are_none) {
  EXPECT_TRUE(contention_of(1000, [](std::size_t, ColumnsBuilder* b) {
                b->op(OpKind::add, b->key("hot"), Operand::integer, 1);
              }) == Contention::low);
  EXPECT_TRUE(contention_of(1000, [](std::size_t t, ColumnsBuilder* b) {
                b->op(OpKind::get, b->key("hot"));
                b->op(OpKind::put, b->key(key("a", t)), Operand::integer, 1);
              }) == Contention::low);
}

TEST(additions_that_others_look_at_count) {
  EXPECT_TRUE(contention_of(1000, [](std::size_t, ColumnsBuilder* b) {
                const std::uint32_t hot = b->key("hot");
                b->guard(GuardKind::greater_equal, OnFalse::fail, hot, 1);
                b->op(OpKind::add, hot, Operand::integer, -1);
              }) == Contention::high);
}

TEST(one_in_ten_at_a_record_is_some) {
  EXPECT_TRUE(contention_of(8192, [](std::size_t t, ColumnsBuilder* b) {
                const std::size_t mixed = t * 0x9E3779B97F4A7C15 >> 40;
                b->op(OpKind::put, b->key(mixed % 10 == 0 ? "hot" : key("a", t)), Operand::integer, 1);
              }) == Contention::some);
}

// As one client sends them: nobody else is in their way.
TEST(neighbours_that_meet_are_none) {
  for (const std::size_t n : {512u, 1024u, 8192u}) {
    EXPECT_TRUE(contention_of(n, [](std::size_t t, ColumnsBuilder* b) {
                  b->op(OpKind::put, b->key(key("a", t / 4)), Operand::integer, 1);
                }) == Contention::low);
  }
}

TEST(what_stays_the_same_is_looked_at_now_and_then) {
  ContentionSample sample;
  const auto hot = [](std::size_t, ColumnsBuilder* b) { b->op(OpKind::put, b->key("hot"), Operand::integer, 1); };
  const auto own = [](std::size_t t, ColumnsBuilder* b) {
    b->op(OpKind::put, b->key(key("a", t)), Operand::integer, 1);
  };
  // Until it has been alike for long, each batch counts.
  for (std::uint32_t i = 0; i < ContentionSample::kAlikeMin; ++i) {
    EXPECT_TRUE(contention_of(64, own, &sample) == Contention::low);
  }
  // Then a few pass unseen, and no more; from a change on each one counts again.
  for (std::uint32_t i = 0; i < ContentionSample::kUnseen; ++i) {
    EXPECT_TRUE(contention_of(64, hot, &sample) == Contention::low);
  }
  EXPECT_TRUE(contention_of(64, hot, &sample) == Contention::high);
  EXPECT_TRUE(contention_of(64, own, &sample) == Contention::low);
  EXPECT_TRUE(contention_of(64, hot, &sample) == Contention::high);
}

TEST(large_transactions_are_looked_at_in_part) {
  EXPECT_TRUE(contention_of(256, [](std::size_t t, ColumnsBuilder* b) {
                for (std::size_t i = 0; i < 600; ++i) {
                  b->op(OpKind::put, b->key(key("a", 600 * t + i)), Operand::integer, 1);
                }
              }) == Contention::low);
}

}  // namespace
}  // namespace kilokv::engine
