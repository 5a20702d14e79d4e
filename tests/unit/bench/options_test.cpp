// Flags to runs, as a user writes them.
#include "client/bench/options.hpp"

#include <gtest/gtest.h>

namespace kilokv::bench {
namespace {

client::Expected<std::vector<RunOptions>> parse(const std::string& line, bool lists) {
  CLI::App app;
  const Flags flags(&app, lists);
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    client::Error refused;
    refused.code = client::ErrorCode::invalid_argument;
    refused.message = error.what();
    return refused;
  }
  return flags.runs();
}

TEST(Options, Defaults) {
  const auto runs = parse("", false);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().workload.name, "bank");
  EXPECT_EQ(runs->front().workload.keys, 100'000u);
  EXPECT_EQ(runs->front().batch_size, 1024u);
  EXPECT_EQ(runs->front().give_up_after_us, 60'000'000);
  EXPECT_TRUE(runs->front().load);
}

TEST(Options, RunReadsEveryFlag) {
  const auto runs = parse(
      "--endpoint 127.0.0.1:1 --wait=2s --workload ycsb-a --keys 50 --distribution zipf:0.99 --batch-size 7 "
      "--connections 2 "
      "--in-flight 3 --rate 1000 --duration 500ms --warmup 0 --seed 9 --encoding rows --value-size 4KiB --no-load "
      "--give-up-after 5s --json - --history h",
      false);
  ASSERT_TRUE(runs) << runs.error().message;
  const RunOptions& run = runs->front();
  EXPECT_EQ(run.server.endpoint, "127.0.0.1:1");
  EXPECT_EQ(run.server.wait_for_server_us, 2'000'000u);
  EXPECT_EQ(run.workload.name, "ycsb-a");
  EXPECT_DOUBLE_EQ(run.workload.distribution.theta, 0.99);
  EXPECT_EQ(run.workload.ycsb.payload_bytes, 4096u);
  EXPECT_EQ(run.workload.seed, 9u);
  EXPECT_EQ(run.batch_size, 7u);
  EXPECT_EQ(run.duration_us, 500'000);
  EXPECT_EQ(run.warmup_us, 0);
  EXPECT_EQ(run.encoding, client::Encoding::rows);
  EXPECT_DOUBLE_EQ(run.rate_per_s, 1000);
  EXPECT_EQ(run.history_path, "h");
  EXPECT_FALSE(run.load);
}

TEST(Options, SweepIsEveryCombination) {
  const auto runs = parse("--batch-size 1,16,128 --connections 1,4 --encoding columns,rows", true);
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->size(), 12u);
  EXPECT_EQ(runs->front().batch_size, 1u);
  EXPECT_EQ(runs->back().batch_size, 128u);
  EXPECT_EQ(runs->back().connections, 4u);
  EXPECT_EQ(runs->back().encoding, client::Encoding::rows);
}

TEST(Options, UnaryIsOneTransactionACall) {
  const auto runs = parse("--unary", false);
  ASSERT_TRUE(runs);
  EXPECT_EQ(runs->front().batch_size, 1u);
}

TEST(Options, EveryLetterOfYcsb) {
  const auto runs = parse("--workload ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f", true);
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->size(), 6u);
}

TEST(Options, HelpTellsTheWorkloads) {
  CLI::App app;
  const Flags flags(&app, false);
  EXPECT_NE(app.help().find("points, in 16 clusters"), std::string::npos);
  EXPECT_EQ(app.help().find("tpcc"), std::string::npos);
}

TEST(Options, PairsStayOpenAcrossCallsOfOneTransaction) {
  const auto runs = parse("--workload bank-semantic --batch-size 1 --in-flight 8", false);
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_TRUE(runs->front().workload.semantic.across_calls);
  EXPECT_LT(runs->front().workload.semantic.wait_lag, 8u);
}

TEST(Options, Refusals) {
  for (const char* line : {"--workload nope", "--workload mixed", "--workload skiplist", "--workload tpcc",
                           "--workload vacation", "--keys 1", "--distribution zip", "--encoding xml", "--batch-size 0",
                           "--batch-size 1,2", "--connections 0", "--in-flight 0", "--duration 0", "--duration 3",
                           "--rate -1", "--unary --history h", "--wait-share 2 --workload bank-semantic",
                           "--workload bank-semantic --batch-size 1 --in-flight 1", "--colour red"}) {
    EXPECT_FALSE(parse(line, false)) << line;
  }
}

}  // namespace
}  // namespace kilokv::bench
