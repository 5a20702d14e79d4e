#include "client/lib/src/read_set.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/client/session_fixture.hpp"

namespace kilokv::client {
namespace {

Batch two_guards(std::uint64_t wait_timeout_us, OnFalse of_the_last) {
  Batch batch;
  batch.begin({.wait_timeout_us = wait_timeout_us});
  batch.guard_version(batch.key("a"), 1);
  batch.guard_version(batch.key("b"), 2);
  if (of_the_last == OnFalse::wait) batch.guard_exists(batch.key("c"), OnFalse::wait);
  batch.add(batch.key("sum"), 1);
  batch.end();
  return batch;
}

TEST(ReadSet, IsTheVersionGuardsAtTheBeginningOfOneTransaction) {
  Batch batch = two_guards(0, OnFalse::fail);
  EXPECT_EQ(uploadable_guards(batch), 2u);
  batch.begin();
  batch.guard_version(batch.key("d"), 1);
  batch.end();
  EXPECT_EQ(uploadable_guards(batch), 0u) << "two transactions";

  Batch other;
  other.begin();
  other.guard_version(other.key("a"), 1);
  other.guard_exists(other.key("b"));
  other.guard_version(other.key("c"), 1);
  other.end();
  EXPECT_EQ(uploadable_guards(other), 1u);
}

TEST(ReadSet, OfATransactionThatMayWaitIsEmpty) {
  EXPECT_EQ(uploadable_guards(two_guards(1'000, OnFalse::fail)), 0u);
  EXPECT_EQ(uploadable_guards(two_guards(0, OnFalse::wait)), 0u);
}

// 16 bytes for each key, and 16 for its place in the message: 1 MiB has 32,768 of them.
TEST_F(SessionTest, AReadSetIsUploadedInMessagesOfOneMebibyte) {
  std::vector<int> keys;
  std::vector<std::uint64_t> offsets;
  server_.on_upload = [&](const v1::UploadReadSetRequest& request) {
    keys.push_back(request.keys_size());
    offsets.push_back(request.offset());
  };
  server_.on_execute = [](const auto&, v1::ExecuteResponse*, auto*) { return grpc::Status::OK; };
  open();
  Batch batch;
  batch.begin();
  for (int i = 0; i < 70'000; ++i) {
    std::array<char, 17> key{};
    std::snprintf(key.data(), key.size(), "key%013d", i);
    batch.guard_version(batch.key(key.data()), 1);
  }
  batch.add(batch.key("sum"), 1);
  batch.end();
  ASSERT_TRUE(needs_upload(batch));
  (void)session_->execute(batch, within(20'000'000));
  EXPECT_EQ(keys, (std::vector<int>{32'768, 32'768, 4'464}));
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 32'768, 65'536}));
}

}  // namespace
}  // namespace kilokv::client
