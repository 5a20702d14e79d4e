// What the samples hold, if the server goes away and comes back, and if there are too many of them.
#include "client/bench/sampler.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/fake_client.hpp"

namespace kilokv::bench {
namespace {

class Server : public FakeClient {
 public:
  bool is_there = true;
  std::uint64_t batches = 0, transactions = 0;

  client::Expected<client::ServerStatus> status(const client::CallOptions& options) override {
    if (!is_there) return make_error(client::ErrorCode::unavailable, "gone");
    EXPECT_LE(options.timeout_us.value_or(1'000'000'000), 1'000'000u) << "the run waits for this";
    client::ServerStatus status;
    status.counters = {{"batches", batches}, {"transactions", transactions}};
    return status;
  }
  void work(std::uint64_t more_batches, std::uint64_t more_transactions) {
    batches += more_batches;
    transactions += more_transactions;
  }
};

Tally tally_of(std::uint64_t committed, std::uint64_t guard_failed, std::int64_t latency_us) {
  Tally tally;
  tally.counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = committed;
  tally.counts.outcomes[static_cast<std::size_t>(client::Outcome::guard_failed)] = guard_failed;
  tally.latency_us.record(latency_us, committed + guard_failed);
  return tally;
}

TEST(Sampler, ASampleHasWhatHappenedSinceTheLastOne) {
  Server server;
  server.work(1'000, 5'000);  // before the run
  Sampler sampler(&server, {});
  sampler.start_at(10'000'000);
  server.work(10, 640);
  sampler.take(tally_of(600, 40, 250), 11'000'000);
  server.work(5, 20);
  sampler.take(tally_of(20, 0, 300), 12'500'000);
  const std::vector<Sample> samples = sampler.samples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].committed, 600u);
  EXPECT_EQ(samples[0].others, 40u);
  EXPECT_EQ(samples[0].p99_us, 250);
  EXPECT_DOUBLE_EQ(samples[0].server.mean_size(), 64);
  EXPECT_EQ(samples[1].end_us, 2'500'000);
  EXPECT_EQ(samples[1].length_us, 1'500'000);
  EXPECT_DOUBLE_EQ(samples[1].server.mean_size(), 4);
  EXPECT_FALSE(samples[1].server_cpu) << "the server is hidden";
  EXPECT_DOUBLE_EQ(sampler.server().mean_size(), 44);
}

TEST(Sampler, AShortRestCountsForTheBatchesOnly) {
  Server server;
  Sampler sampler(&server, {});
  sampler.start_at(0);
  server.work(2, 20);
  sampler.take(tally_of(20, 0, 1), kSampleLeastUs - 1);
  EXPECT_TRUE(sampler.samples().empty());
  EXPECT_EQ(sampler.server().batches, 2u);
}

TEST(Sampler, AServerThatRestartsCountsFromItsStart) {
  Server server;
  server.work(100, 1'000);
  Sampler sampler(&server, {});
  sampler.start_at(0);
  server.is_there = false;
  sampler.take({}, 1'000'000);
  server.is_there = true;
  server.batches = server.transactions = 7;  // a new process
  sampler.take({}, 2'000'000);
  server.work(2, 8);
  sampler.take({}, 3'000'000);
  EXPECT_EQ(sampler.server().batches, 2u);
  EXPECT_DOUBLE_EQ(sampler.server().mean_size(), 4);
  EXPECT_DOUBLE_EQ(ServerBatches{}.mean_size(), 0);
}

TEST(Sampler, ALongRunHasFewerSamplesWithTheSameSums) {
  std::vector<Sample> samples;
  std::uint64_t committed = 0;
  for (std::size_t i = 0; i < kSamplesMax + 1; ++i) {
    samples.push_back({.end_us = static_cast<std::int64_t>(i + 1) * 1'000'000,
                       .length_us = 1'000'000,
                       .committed = i,
                       .p99_us = static_cast<std::int64_t>(i % 7),
                       .server_cpu = i % 2 == 0 ? std::optional(0.5) : std::nullopt,
                       .client_cpu = i % 2 == 0 ? 0.5 : 0.25,
                       .server = {1, 10}});
    committed += i;
  }
  const Sample last = samples.back();
  limit_samples(&samples);
  ASSERT_EQ(samples.size(), kSamplesMax / 2 + 1);
  std::uint64_t sum = 0;
  for (const Sample& sample : samples) sum += sample.committed;
  EXPECT_EQ(sum, committed);
  EXPECT_EQ(samples[0].end_us, 2'000'000);
  EXPECT_EQ(samples[0].length_us, 2'000'000);
  EXPECT_EQ(samples[0].p99_us, 1);
  EXPECT_EQ(samples[0].server_cpu, 0.5) << "as far as it is known";
  EXPECT_EQ(samples[0].client_cpu, 0.375);
  EXPECT_EQ(samples[0].server.transactions, 20u);
  EXPECT_EQ(samples.back().end_us, last.end_us);
  EXPECT_EQ(samples.back().length_us, last.length_us);
}

}  // namespace
}  // namespace kilokv::bench
