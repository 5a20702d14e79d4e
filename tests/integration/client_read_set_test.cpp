// Commits with large read sets by the client library, against the real kilokvd: their guards are uploaded in chunks.
#include <algorithm>
#include <atomic>
#include <iostream>

#include "kilokv/interactive.hpp"
#include "tests/integration/client_fixture.hpp"

namespace kilokv::client {
namespace {

class ClientReadSet : public ClientIntegration {
 protected:
  static std::string key(int i) { return "k/" + std::to_string(10'000'000 + i); }
  static std::vector<std::string> keys(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(key(i));
    return all;
  }
  // Writes `count` keys. Returns the version of each.
  std::vector<std::uint64_t> fill(int count) {
    constexpr int kAtOnce = 50'000;
    std::vector<std::uint64_t> versions;
    Batch batch;
    for (int begin = 0; begin < count; begin += kAtOnce) {
      batch.clear();
      for (int i = begin; i < std::min(begin + kAtOnce, count); ++i) {
        batch.begin();
        batch.put(batch.key(key(i)), std::int64_t{i});
        batch.end();
      }
      const auto written = session_->execute(batch);
      EXPECT_TRUE(written) << written.error().message;
      for (std::size_t i = 0; i < batch.size(); ++i) versions.push_back(*written->results.at(i).version);
    }
    return versions;
  }

  // Reads all, changes one meanwhile (none: -1), and writes the sum.
  void expect_interactive(int count, int changed, Session* session) {
    InteractiveTransaction t(client_.get(), session);
    const auto values = t.get_many(keys(count));
    ASSERT_TRUE(values) << values.error().message;
    std::int64_t sum = 0;
    for (const Value& value : *values) sum += std::get<std::int64_t>(value);
    t.put("sum", sum);
    if (changed >= 0) put(key(changed), std::int64_t{changed});
    const auto committed = t.commit();
    ASSERT_TRUE(committed) << committed.error().message;
    EXPECT_EQ(*committed, changed < 0 ? CommitResult::committed : CommitResult::conflict);
    EXPECT_EQ(t.conflicting_key(), changed < 0 ? "" : key(changed));
    EXPECT_EQ(t.version().has_value(), changed < 0);
    if (changed < 0) {
      EXPECT_EQ(integer("sum"), sum);
    }
    EXPECT_EQ(client_->status()->counters.at("uploads_bytes"), 0u);
  }

  // Tells how long it took.
  void expect_batch(const std::vector<std::uint64_t>& versions, int changed) {
    const auto result = session_->execute(guarded_sum(versions));
    ASSERT_TRUE(result) << result.error().message;
    const ResultView answer = result->results.at(0);
    EXPECT_EQ(answer.outcome, changed < 0 ? Outcome::committed : Outcome::guard_failed);
    if (changed >= 0) {
      EXPECT_EQ(answer.failed_index, static_cast<std::uint32_t>(changed));
    }
    std::cout << versions.size() << " keys, " << (changed < 0 ? "committed" : "conflict at " + std::to_string(changed))
              << ": " << (result->return_us - result->invoke_us) / 1000 << " ms\n";
  }

  void expect_commits(int count) {
    std::vector<std::uint64_t> versions = fill(count);
    expect_batch(versions, -1);
    for (const int changed : {0, count / 2, count - 1}) {
      std::uint64_t& version = versions[static_cast<std::size_t>(changed)];
      --version;
      expect_batch(versions, changed);
      ++version;
    }
    expect_interactive(count, count / 2, session_.get());
  }

  static Batch guarded_sum(const std::vector<std::uint64_t>& versions) {
    Batch batch;
    batch.begin();
    for (std::size_t i = 0; i < versions.size(); ++i)
      batch.guard_version(batch.key(key(static_cast<int>(i))), versions[i]);
    batch.add(batch.key("sum"), std::int64_t{1});
    batch.end();
    return batch;
  }
};

TEST_F(ClientReadSet, OfTenKeys) { expect_commits(10); }
TEST_F(ClientReadSet, OfTenThousandKeys) {
  expect_commits(10'000);
  for (const int changed : {-1, 0, 9'999}) expect_interactive(10'000, changed, session_.get());
  expect_interactive(10'000, -1, nullptr);
}
TEST_F(ClientReadSet, OfAMillionKeys) { expect_commits(1'000'000); }

// The server ends again and again, at whatever point the commits are; each is applied once.
TEST_F(ClientReadSet, AKilledServerCostsNothingButAnotherUpload) {
  constexpr int kCommits = 12;
  const Batch batch = guarded_sum(std::vector<std::uint64_t>(100'000, 0));
  std::atomic<int> done = 0;
  std::thread committer([&] {
    for (int i = 0; i < kCommits; ++i, ++done) {
      const auto result = session_->execute(batch);
      ASSERT_TRUE(result) << to_string(result.error().code) << ": " << result.error().message;
      EXPECT_EQ(result->results.outcome(0), Outcome::committed);
    }
  });
  for (int kills = 0; done < kCommits && kills < 4; ++kills) {
    while (done < kCommits && client_->status()->counters.at("uploads") == 0) std::this_thread::yield();
    server_.kill();
    server_.start();
  }
  committer.join();
  EXPECT_EQ(integer("sum"), kCommits);
  EXPECT_EQ(client_->status()->counters.at("uploads"), 0u);
}

TEST_F(ClientReadSet, ARequestThatWasGivenUpIsResumed) {
  const Batch batch = guarded_sum(std::vector<std::uint64_t>(5'000, 0));
  server_.kill();
  CallOptions hurried;
  hurried.timeout_us = 200'000;
  const auto lost = session_->execute(batch, hurried);
  ASSERT_FALSE(lost);
  server_.start();
  const auto next = session_->execute(batch);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->request, 2u);
  EXPECT_EQ(integer("sum"), 1) << "the first never got as far as its commit";
  const auto known = session_->resume(next->request, batch);
  ASSERT_FALSE(known) << "it is acknowledged";
  EXPECT_EQ(known.error().code, ErrorCode::failed_precondition);
}

}  // namespace
}  // namespace kilokv::client
