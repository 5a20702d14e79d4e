// Flags to runs, as a user writes them.
#include "client/bench/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "client/command_line/arguments.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::bench {
namespace {

client::Expected<std::vector<RunOptions>> parse(const std::string& line, bool lists) {
  const auto app = client::make_app("", "kilokv-bench");
  const Flags flags(app.get(), lists);
  std::istringstream text(line);
  std::vector<std::string> words{"kilokv-bench"};
  for (std::string word; text >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStderr();
  const auto code = client::parse_arguments(app.get(), static_cast<int>(argv.size()), argv.data());
  const std::string said = testing::internal::GetCapturedStderr();
  if (!code) return flags.runs();
  client::Error refused;
  refused.code = client::ErrorCode::invalid_argument;
  refused.message = said;
  return refused;
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

// The transactions and initial records of a workload with these flags, as one text.
std::string generated_by(const engine::WorkloadOptions& options) {
  auto workload = engine::Workload::create(options);
  EXPECT_TRUE(workload.ok());
  std::string text;
  workload->for_each_initial([&](const engine::InitialRecord& record) {
    text += std::string(record.key) + " " + std::to_string(record.integer) + " " + std::string(record.bytes) + "\n";
  });
  engine::TransactionColumns columns;
  engine::ColumnsBuilder builder(&columns, {});
  workload->generate(&builder, 400);
  for (std::size_t t = 0; t < columns.size(); ++t) text += engine::pack_transaction(columns, t) + "\n";
  return text;
}

std::string generated(const std::string& flags) {
  const auto runs = parse(flags, false);
  EXPECT_TRUE(runs) << flags << ": " << runs.error().message;
  return generated_by(runs->front().workload);
}

// A flag means something for a workload if what is generated is another with it, and only then is it taken.
TEST(Options, AFlagIsTakenWhereItChangesWhatIsGenerated) {
  for (const engine::WorkloadKind& kind : engine::Workload::kinds()) {
    if (!kind.is_shared) continue;
    const std::string plain =
        "--keys " + std::to_string(std::min<std::uint64_t>(kind.keys_small, 1000)) + " --workload " + kind.name;
    const std::string without = generated(plain);
    for (const std::string flag : {"--distribution zipf:0.5", "--wait-share 0.5", "--wait-timeout 3s",
                                   "--pair-order deposits-first", "--read-only-share 0.7", "--value-size 200"}) {
      const auto taken = parse(plain + " " + flag, false);
      if (taken) {
        EXPECT_NE(generated(plain + " " + flag), without) << plain << " " << flag << " means nothing, and is taken";
        continue;
      }
      const std::string name = flag.substr(0, flag.find(' '));
      EXPECT_EQ(taken.error().message.rfind(name + " means nothing for --workload " + kind.name + "; it is for ", 0),
                0u)
          << taken.error().message;
      const auto value = flag.substr(flag.find(' ') + 1);
      auto changed = parse(plain, false)->front().workload;
      if (name == "--distribution") changed.distribution = *engine::parse_distribution(value);
      if (name == "--wait-share") changed.semantic.wait_share = 0.5;
      if (name == "--wait-timeout") changed.semantic.wait_timeout_us = 3'000'000;
      if (name == "--pair-order") changed.semantic.order = engine::PairOrder::deposits_first;
      if (name == "--read-only-share") changed.semantic.read_only_share = 0.7;
      if (name == "--value-size") changed.ycsb.payload_bytes = 200;
      EXPECT_EQ(generated_by(changed), without) << plain << " " << flag << " means something, and is refused";
    }
  }
}

TEST(Options, AFlagThatMeansNothingIsNamedWithTheWorkloadsItIsFor) {
  const auto message = [](const char* line, bool lists) {
    const auto runs = parse(line, lists);
    return runs ? "taken" : runs.error().message;
  };
  EXPECT_EQ(message("--wait-share 0.5", false),
            "--wait-share means nothing for --workload bank; it is for bank-semantic");
  EXPECT_EQ(message("--workload bank,hot --value-size 10", true),
            "--value-size means nothing for --workload bank, hot; it is for ycsb-a, ycsb-b, ycsb-c, ycsb-d, ycsb-e");
  EXPECT_EQ(message("--workload bank,ycsb-a --value-size 10", true), "taken");
  const std::string unary = " means nothing with --unary, which sends one transaction a call; leave one out";
  EXPECT_EQ(message("--unary --batch-size 8", false), "--batch-size" + unary);
  EXPECT_EQ(message("--unary --encoding rows", false), "--encoding" + unary);
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
  const auto app = client::make_app("", "kilokv-bench");
  const Flags flags(app.get(), false);
  const char* const argv[] = {"kilokv-bench", "--help"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(client::parse_arguments(app.get(), 2, argv), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("points, in 16 clusters"), std::string::npos);
  EXPECT_EQ(help.find("tpcc"), std::string::npos);
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
