// Flags to runs, as a user writes them.
#include "client/bench/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "client/command_line/arguments.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::bench {
namespace {

// Reads the flags of a line, and calls `use` with them.
template <class Result, class Use>
client::Expected<Result> read(const std::string& line, Purpose purpose, const Use& use) {
  const auto app = client::make_app("", "kilokv-bench");
  const Flags flags(app.get(), purpose);
  std::istringstream text(line);
  std::vector<std::string> words{"kilokv-bench"};
  for (std::string word; text >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStderr();
  const auto code = client::parse_arguments(app.get(), static_cast<int>(argv.size()), argv.data());
  const std::string said = testing::internal::GetCapturedStderr();
  if (!code) return use(flags);
  client::Error refused;
  refused.code = client::ErrorCode::invalid_argument;
  refused.message = said;
  return refused;
}

client::Expected<std::vector<RunOptions>> parse(const std::string& line, bool lists) {
  return read<std::vector<RunOptions>>(line, lists ? Purpose::sweep : Purpose::run,
                                       [](const Flags& flags) { return flags.runs(); });
}

client::Expected<TuneOptions> parse_tune(const std::string& line) {
  return read<TuneOptions>(line, Purpose::tune, [](const Flags& flags) { return flags.tune(); });
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
  const Flags flags(app.get(), Purpose::run);
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

std::vector<std::uint32_t> sizes(const client::Expected<TuneOptions>& options) {
  std::vector<std::uint32_t> sizes;
  if (!options) return sizes;
  for (const RunOptions& point : options->points) sizes.push_back(size_of(*options, point));
  return sizes;
}

const std::string kGiven = "--endpoint 127.0.0.1:1 ";
const std::string kOwn = "--server /bin/true ";  // is not started here

TEST(TuneFlags, Defaults) {
  const auto options = parse_tune(kGiven);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(sizes(options), (std::vector<std::uint32_t>{1, 4, 16, 64, 256, 1024, 4096}));
  EXPECT_EQ(options->rounds, 5u);
  EXPECT_EQ(options->server, "");
  EXPECT_FALSE(options->varies_server);
  EXPECT_EQ(options->points.front().duration_us, 2'000'000);
  EXPECT_EQ(options->p99_goal_us, 0);
}

TEST(TuneFlags, SizesAscendAndAreThereOnce) {
  EXPECT_EQ(sizes(parse_tune(kGiven + "--batch-size 64,1,64,8")), (std::vector<std::uint32_t>{1, 8, 64}));
}

TEST(TuneFlags, ItsOwnServerUnlessOneIsGiven) {
  EXPECT_EQ(parse_tune(kOwn)->server, "/bin/true");
  ::setenv("KILOKV_ENDPOINT", "127.0.0.1:1", 1);
  EXPECT_EQ(parse_tune("")->server, "") << "that of the environment";
  EXPECT_EQ(parse_tune(kOwn)->server, "/bin/true") << "a flag is stronger than the environment";
  ::unsetenv("KILOKV_ENDPOINT");
}

TEST(TuneFlags, TheLimitOfTheServerIsVariedInstead) {
  const auto options = parse_tune(kOwn + "--batch-max-transactions 4096,64,512");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options->varies_server);
  EXPECT_EQ(sizes(options), (std::vector<std::uint32_t>{64, 512, 4096}));
  for (const RunOptions& point : options->points) EXPECT_EQ(point.batch_size, 1024u);
  const auto smaller = parse_tune(kOwn + "--batch-max-transactions 4096,64 --batch-size 16");
  ASSERT_TRUE(smaller) << smaller.error().message;
  for (const RunOptions& point : smaller->points) EXPECT_EQ(point.batch_size, 16u);
  const auto fixed = parse_tune(kOwn + "--batch-max-transactions 4096 --batch-size 16,32");
  ASSERT_TRUE(fixed) << fixed.error().message;
  EXPECT_EQ(sizes(fixed), (std::vector<std::uint32_t>{16, 32}));
  EXPECT_EQ(fixed->points.back().server_batch_max, 4096u);
}

TEST(TuneFlags, Refusals) {
  const auto message = [](const std::string& line) {
    const auto options = parse_tune(line);
    return options ? "taken" : options.error().message;
  };
  EXPECT_EQ(message(kGiven + kOwn), "--server and --endpoint exclude each other: give one of them");
  EXPECT_EQ(message(kGiven + "--batch-max-transactions 1,2"),
            "--batch-max-transactions is for the tune's own server: leave out --endpoint, or the flag");
  EXPECT_EQ(message(kOwn + "--batch-max-transactions 1,2 --batch-size 1,2"),
            "several values of --batch-max-transactions are compared, so --batch-size takes one value");
  EXPECT_EQ(message(kGiven + "--batch-size 7"), "--batch-size has one value: give two or more to compare");
  EXPECT_EQ(message(kOwn + "--reset"),
            "--reset means nothing for the tune's own server, whose data is new; leave it out");
  EXPECT_EQ(message(kGiven + "--reset"), "taken");
  EXPECT_NE(message("--server no/such/program").find("--server: cannot run no/such/program: "), std::string::npos);
  for (const char* flag : {"--rate 5", "--unary", "--history h", "--repeats 2", "--p99-goal 0", "--connections 1,2"}) {
    EXPECT_NE(message(kGiven + flag), "taken") << flag;
  }
}

TEST(Options, AResetNeedsALoad) {
  EXPECT_EQ(parse("--reset --no-load", false).error().message,
            "--reset deletes the records, and --no-load writes none, so nothing would be there: leave one out");
  EXPECT_TRUE(parse("--reset", false)->front().reset);
  EXPECT_FALSE(parse("", false)->front().reset);
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
