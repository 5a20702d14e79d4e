#include "server/core/pipeline/transaction_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
  const std::uint64_t without = cost_of(columns, 0, true, kValue, 1).log.bytes - 1;
  const TransactionCost roomy = cost_of(columns, 0, true, kValue, 1 << 20);
  const std::uint64_t stored = roomy.log.at(kValue, 1 << 20) - without;
  for (const std::uint64_t limit : {stored - 1, stored, stored + 1}) {
    const TransactionCost cost = cost_of(columns, 0, true, kValue, limit);
    EXPECT_EQ(cost.log.at(kValue, limit), without + std::min(stored, limit)) << limit - stored;
    EXPECT_EQ(cost.log.stored_values, limit <= stored ? 0u : 3u) << limit - stored;
  }
  EXPECT_GE(roomy.log.at(kLargerValue, 1 << 20), 3 * kLargerValue);
}

// A batch whose parts add up to a whole keeps each of its three limits.
TEST(TransactionCost, APartOfABatchIsTheLargestOfItsThreeParts) {
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
  cost.log.bytes = 2 << 20;
  EXPECT_EQ(parts.of(cost), 2 * kWholeBatch);
  cost.log = {1 << 20, 1 << 16, 1 << 20};  // copies of 16 bytes, and stored values at a sixteenth
  EXPECT_EQ(parts.of(cost), 3 * kWholeBatch);
  cost.log.bytes = ~std::uint64_t{0} >> 1;
  EXPECT_EQ(parts.of(cost), ~std::uint32_t{0});
}

}  // namespace
}  // namespace kilokv::server
