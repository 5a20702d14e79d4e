#include "server/core/pipeline/pool.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "server/core/pipeline/batch.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {
namespace {

TEST(Pool, KeepsNoMoreThanItsBytes) {
  Pool<Request> pool(10, 100000);
  for (int i = 0; i < 10; ++i) {
    auto request = std::make_unique<Request>();
    request->transactions.key_bytes.reserve(40000);
    pool.give(std::move(request));
  }
  EXPECT_EQ(pool.bytes(), 80000u);
  auto batch = std::make_unique<Batch>();
  batch->writes.value_bytes.reserve(40000);
  EXPECT_GE(capacity_bytes(*batch), 40000u);
  EXPECT_GE(pool.take()->transactions.key_bytes.capacity(), 40000u);
  EXPECT_EQ(pool.bytes(), 40000u);
  pool.clear();
  EXPECT_EQ(pool.bytes(), 0u);
  EXPECT_EQ(pool.take()->transactions.key_bytes.capacity(), 0u);
}

}  // namespace
}  // namespace kilokv::server
