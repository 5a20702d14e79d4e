#include "server/core/pipeline/transaction_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace kilokv::server {
namespace {

using engine::OpKind;

engine::TransactionColumns gets(int count) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder builder(&columns, {1, 2});
  builder.begin();
  for (int i = 0; i < count; ++i) builder.op(OpKind::get, builder.key("key" + std::to_string(i)));
  builder.end();
  return columns;
}

// What a session stores of one transaction is never more than the limit, and at the limit it does not grow with the
// values any more.
TEST(TransactionCost, StoredResultsKeepToTheirLimit) {
  constexpr std::uint64_t kValue = 1000, kLargerValue = 100000;
  const engine::TransactionColumns columns = gets(3);
  const std::uint64_t without = cost_of(columns, 0, true, kValue, 1).log.at(kValue, 1) - 1;
  const TransactionCost roomy = cost_of(columns, 0, true, kValue, 1 << 20);
  const std::uint64_t stored = roomy.log.at(kValue, 1 << 20) - without;
  for (const std::uint64_t limit : {stored - 1, stored, stored + 1}) {
    const TransactionCost cost = cost_of(columns, 0, true, kValue, limit);
    EXPECT_EQ(cost.log.at(kValue, limit), without + std::min(stored, limit)) << limit - stored;
    EXPECT_EQ(cost.log.stored_values, limit <= stored ? 0u : 3u) << limit - stored;
  }
  EXPECT_GE(roomy.log.at(kLargerValue, 1 << 20), 3 * kLargerValue);
}

// One value of the database that is as long as a stored result may be makes the cost of a GET no longer than the part
// of a value that counts.
TEST(TransactionCost, ALargeValueMakesBatchesOfSessionsNotMuchShorter) {
  DatabaseOptions options;
  const std::uint64_t limit = options.result_bytes_max;
  const engine::TransactionColumns columns = gets(1);
  for (const std::uint64_t largest : {limit - 100, limit, 16 * limit}) {
    const TransactionCost cost = cost_of(columns, 0, true, largest, limit);
    EXPECT_EQ(cost.log.stored_values, 1u) << largest;
    EXPECT_GE(cost.log.at(largest, limit), std::min(largest, limit)) << "it bounds what is stored";
    EXPECT_LE(cost.log.at(largest, limit), limit + 1000);
    const std::uint64_t in_batch = kWholeBatch / BatchParts(largest, options).of(cost);
    EXPECT_GT(in_batch, 7 * options.batch_max_bytes / 2 / limit) << "a quarter of the value counts";
  }
}

// Transactions of all shapes: whatever is said to cost the same does, and most of what is alike is found.
TEST(TransactionCost, WhatHasTheSameShapeCostsTheSame) {
  using engine::GuardKind;
  using engine::OnFalse;
  using engine::Operand;
  std::mt19937_64 random(7);
  const auto one_of = [&random](std::uint64_t count) { return random() % count; };
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, {1, 2});
  const auto key = [&] { return b.key(std::string(10 + one_of(2), static_cast<char>('a' + one_of(26)))); };
  const auto operation = [&] {
    switch (one_of(7)) {
      case 0: return b.op(OpKind::get, key());
      case 1: return b.op(OpKind::put, key(), Operand::bytes, b.value(std::string(100 * one_of(2), 'v')));
      case 2: return b.op(OpKind::put, key(), Operand::integer, 5);
      case 3: return b.op(OpKind::add, key(), Operand::integer, 5);
      case 4: return b.op(OpKind::del, key());
      case 5: return b.range_op(OpKind::range_get, "a", "b", 10 + static_cast<std::uint32_t>(one_of(2)));
      default: return b.range_op(OpKind::delete_range, "a", "b", 10 + static_cast<std::uint32_t>(one_of(2)));
    }
  };
  std::mt19937_64 shapes(8);
  for (std::uint64_t t = 0, shape = 0; t < 20000; ++t) {
    if (shapes() % 2 == 0) shape = shapes();  // otherwise as before
    random.seed(shape);
    b.begin();
    for (std::uint64_t g = one_of(2); g > 0; --g) {
      one_of(2) == 0 ? b.guard(GuardKind::exists, OnFalse::fail, key(), 0)
                     : b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", "b", 1);
    }
    for (std::uint64_t i = 1 + one_of(2); i > 0; --i) operation();
    if (one_of(3) == 0) {
      b.begin_else();
      operation();
    }
    b.end();
  }
  const auto as_text = [&columns](std::size_t t) {
    const TransactionCost cost = cost_of(columns, t, true, 1000, 2000);
    std::string text;
    for (const std::uint64_t number :
         {cost.log.bytes, cost.log.copied_values, cost.log.stored_values, cost.guards, cost.reads, cost.steps,
          cost.stored_bytes, cost.data.records, cost.data.bytes, cost.data.copied_values, cost.named_bytes,
          std::uint64_t{cost.use == LogUse::new_data}}) {
      text += std::to_string(number) + ' ';
    }
    return text;
  };
  int same = 0, said = 0;
  for (std::size_t t = 1; t < columns.size(); ++t) {
    const bool costs_same = as_text(t) == as_text(t - 1);
    same += costs_same ? 1 : 0;
    if (!costs_as_before(columns, t)) continue;
    ++said;
    EXPECT_TRUE(costs_same) << as_text(t - 1) << "and " << as_text(t);
  }
  EXPECT_GT(said, 9000);
  EXPECT_GT(said, same / 2);
  TransactionCost sum, product = cost_of(columns, 0, true, 1000, 2000).times(3);
  for (int i = 0; i < 3; ++i) sum += cost_of(columns, 0, true, 1000, 2000);
  EXPECT_EQ(sum.log.bytes, product.log.bytes);
  EXPECT_EQ(sum.data.bytes, product.data.bytes);
  EXPECT_GT(sum.data.entry_bytes, 0u);
  EXPECT_EQ(sum.data.entry_bytes, product.data.entry_bytes);
  EXPECT_EQ(sum.data.longest_entry, product.data.longest_entry);
  EXPECT_EQ(sum.stored_bytes, product.stored_bytes);
}

// A transaction counts with all bytes that a batch copies for it, also with the constants of its guards and with
// operations that do not run.
TEST(TransactionCost, WhatATransactionNamesCounts) {
  using engine::GuardKind;
  using engine::OnFalse;
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, {1, 2});
  const std::string large(1 << 20, 'v');
  for (const bool is_large : {false, true, true}) {
    b.begin();
    b.guard(GuardKind::bytes_equal, OnFalse::fail, b.key("k"), b.value(is_large ? large : "v"));
    b.end();
  }
  b.begin();
  b.op(OpKind::get, b.key("k"));
  b.begin_else();
  b.op(OpKind::put, b.key("k"), engine::Operand::bytes, b.value(large));
  b.end();
  b.begin();
  b.range_op(OpKind::range_get, std::string(1000, 'a'), std::string(1000, 'b'), 1);
  b.end();
  const DatabaseOptions options;
  const BatchParts parts(16, options);
  const auto part = [&](std::size_t t) { return parts.of(cost_of(columns, t, false, 16, 65536)); };
  EXPECT_LT(part(0), kWholeBatch / 4096);
  EXPECT_GE(part(1), kWholeBatch / 17) << "a batch has 16 MiB";
  EXPECT_FALSE(costs_as_before(columns, 1));
  EXPECT_TRUE(costs_as_before(columns, 2));
  EXPECT_GE(part(3), kWholeBatch / 17);
  EXPECT_EQ(cost_of(columns, 4, false, 16, 65536).named_bytes, 2000u);
}

// A batch makes the keys of all operations, also of those that do not run.
TEST(TransactionCost, OperationsThatDoNotRunCountAsWork) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, {1, 2});
  const auto add_all = [&b] {
    for (int i = 0; i < 1000; ++i) b.op(OpKind::add, b.key("k" + std::to_string(i)), engine::Operand::integer, 1);
  };
  b.begin();
  b.begin_else();
  add_all();
  b.end();
  b.begin();
  b.guard(engine::GuardKind::exists, engine::OnFalse::fail, b.key("g"), 0);
  add_all();
  b.begin_else();
  add_all();
  b.end();
  const auto cost = [&](std::size_t t) { return cost_of(columns, t, false, 16, 65536); };
  EXPECT_EQ(cost(0).steps, 2000u);
  EXPECT_EQ(cost(0).data.records, 1000u) << "they are there for a moment";
  EXPECT_EQ(cost(0).use, LogUse::new_data);
  EXPECT_EQ(cost(1).steps, 4000u);
  EXPECT_EQ(cost(1).data.records, 2000u);
  const DatabaseOptions options;
  EXPECT_GE(BatchParts(16, options).of(cost(0)), kWholeBatch / 33) << "a batch has 32,768 of them";
}

TEST(TransactionCost, ReadsThatCannotRunAreWorkTheirKeysAreLookedUp) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, {1, 2});
  const auto get_all = [&b] {
    for (int i = 0; i < 1000; ++i) b.op(OpKind::get, b.key("k"));
  };
  b.begin();
  b.begin_else();
  get_all();
  b.end();
  b.begin();
  get_all();
  b.end();
  const auto cost = [&](std::size_t t) { return cost_of(columns, t, false, 16, 65536); };
  EXPECT_EQ(cost(0).reads, 0u);
  EXPECT_EQ(cost(0).steps, 1000u);
  EXPECT_EQ(cost(1).reads, 1000u);
  EXPECT_EQ(cost(1).steps, 0u);
  const DatabaseOptions options;
  EXPECT_GE(BatchParts(16, options).of(cost(0)), kWholeBatch / 66) << "a batch has 65,536 of them";
}

TEST(TransactionCost, GuardsThatWaitAndRangesAreMoreWork) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, {1, 2});
  for (const engine::OnFalse on_false : {engine::OnFalse::fail, engine::OnFalse::wait}) {
    b.begin(0, 1000);
    for (int i = 0; i < 10; ++i) b.guard(engine::GuardKind::greater_equal, on_false, b.key("k"), 1);
    b.end();
  }
  b.begin();
  b.range_op(OpKind::range_get, "a", "b", 1);
  b.end();
  const auto cost = [&](std::size_t t) { return cost_of(columns, t, false, 16, 65536); };
  EXPECT_EQ(cost(0).steps, 0u);
  EXPECT_EQ(cost(1).steps, 30u) << "the passes of a batch look at them again";
  EXPECT_EQ(cost(2).reads, 1u);
  EXPECT_EQ(cost(2).steps, 16u);
}

// A batch whose parts add up to a whole keeps each of its limits.
TEST(TransactionCost, APartOfABatchIsTheLargestOfItsParts) {
  DatabaseOptions options;
  options.batch_max_transactions = 100;
  options.batch_max_bytes = 1 << 20;
  options.batch_max_reads = 1000;
  const BatchParts parts(16, options);
  TransactionCost cost;
  EXPECT_EQ(parts.of(cost), kWholeBatch / 100);
  cost.reads = 500;
  EXPECT_EQ(parts.of(cost), kWholeBatch / 2);
  cost.guards = 500;
  EXPECT_EQ(parts.of(cost), kWholeBatch);
  cost.steps = kBatchWorkMax + kBatchWorkMax / 2 - 1000;
  EXPECT_EQ(parts.of(cost), kWholeBatch + kWholeBatch / 2);
  cost.log.bytes = 2 << 20;
  EXPECT_EQ(parts.of(cost), 2 * kWholeBatch);
  cost.log = {1 << 20, 1 << 16, 1 << 18};  // copies of 16 bytes, and stored values at a quarter
  EXPECT_EQ(parts.of(cost), 3 * kWholeBatch);
  cost.log.bytes = ~std::uint64_t{0} >> 1;
  EXPECT_EQ(parts.of(cost), ~std::uint32_t{0});
}

}  // namespace
}  // namespace kilokv::server
