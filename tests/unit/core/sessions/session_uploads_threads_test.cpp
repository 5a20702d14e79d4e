// Uploads of one session under many threads: all send the same chunks, take what is whole, give it back or use it,
// acknowledge, drop what is idle, and at last close the session under each other.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/txn/columns.hpp"
#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kKeys = 60, kChunk = 20, kNumbers = 150;
constexpr TimeUs kNow = 1'000'000;
constexpr DurationUs kIdleUs = 10'000;

SessionLimits upload_limits() {
  SessionLimits limits = kTestLimits;
  limits.uploads = {kKeys, 1 << 20, 1 << 20, 1 << 20, kIdleUs};
  return limits;
}

class Client {
 public:
  Client(SessionTable* table, std::size_t seed) : table_(*table), seed_(seed) {
    for (std::uint64_t i = 0; i < kKeys; ++i) keys_.push_back("key" + std::to_string(i)), versions_.push_back(i);
  }

  // Uploads a read set and commits beside it, or finds that others did.
  void run(std::uint64_t number, std::atomic<int>* taken) {
    for (std::uint64_t offset = 0; offset < kKeys; offset += kChunk) {
      ReadSetChunk chunk{{session_id(7), number, number > 8 ? number - 8 : 0, {}}, offset, {}, {}};
      chunk.keys.assign(keys_.begin() + static_cast<std::ptrdiff_t>(offset),
                        keys_.begin() + static_cast<std::ptrdiff_t>(offset + kChunk));
      chunk.versions = std::span(versions_).subspan(offset, kChunk);
      const Result<std::uint64_t> there = table_.upload(chunk, secret_, kNow);
      if (there.ok()) {
        EXPECT_GE(*there, offset + kChunk);
      } else {
        EXPECT_EQ(there.status().code(), StatusCode::failed_precondition) << there.status().message();
      }
    }
    engine::TransactionColumns columns;
    engine::ColumnsBuilder builder(&columns, secret_);
    builder.begin();
    builder.op(engine::OpKind::get, builder.key("own"));
    builder.end();
    Result<std::shared_ptr<Upload>> upload = table_.take_upload(session_id(7), number, nullptr, {kKeys, {}}, &columns);
    if (!upload.ok() || *upload == nullptr) return;
    ASSERT_EQ(columns.guard_end.back(), kKeys);
    EXPECT_EQ(columns.key(columns.guard_key[kKeys - 1]), keys_.back());
    EXPECT_EQ(columns.key(columns.op_key[0]), "own");
    taken->fetch_add(1);
    if (++seed_ % 3 == 0) table_.put_back(session_id(7), number, std::move(*upload), &columns);
  }

 private:
  SessionTable& table_;
  std::size_t seed_;
  engine::KeyHashSecret secret_{1, 2};
  std::vector<std::string> keys_;
  std::vector<Version> versions_;
};

TEST(SessionUploadsThreads, CountsComeOutEven) {
  SessionTable table(upload_limits());
  ASSERT_TRUE(table.open(session_id(7), kLeaseUs, kNow).ok());
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&table, &taken, i] {
      Client client(&table, i);
      for (std::uint64_t number = 1; number <= kNumbers; ++number) {
        client.run(number, &taken);
        if (i == 2 && number % 5 == 0) static_cast<void>(table.expire(kNow + kIdleUs));  // whatever is there
      }
      if (i == 3) static_cast<void>(table.close(session_id(7)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(taken, static_cast<int>(kNumbers) / 4);
  table.free_ended(SIZE_MAX);
  EXPECT_EQ(table.upload_counts().uploads, 0u);
  EXPECT_EQ(table.upload_counts().bytes.held(), 0u);
}

}  // namespace
}  // namespace kilokv::server
