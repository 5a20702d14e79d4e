// What `auto` chooses for each set of strategies, and where other programs need the cores.

#include "engine/exec/run/chooser.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/txn/columns.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr Chooser::Able kCanPipeline = {.pipelined = true}, kAll = {true, true, true};

struct Deposits {
  TransactionColumns columns;

  explicit Deposits(std::uint32_t transactions) {
    ColumnsBuilder builder(&columns, {1, 2});
    for (std::uint32_t i = 0; i < transactions; ++i) {
      builder.begin();
      builder.op(OpKind::add, builder.key("account" + std::to_string(i)), Operand::integer, 1);
      builder.end();
    }
  }
};

// Runs 300 batches, of which `pipelined` takes half the time, and as much of a helper. Returns how many it ran.
int run_pipelined(Chooser* chooser, const TransactionColumns& columns) {
  int times = 0;
  for (int i = 0; i < 300; ++i) {
    const bool pipelines = chooser->choose(columns, kCanPipeline).way == Way::pipelined;
    chooser->took(true, pipelines ? 1e-4 : 2e-4, pipelines ? 2e-4 : 0);
    times += pipelines ? 1 : 0;
  }
  return times;
}

// After the first look of CpuPressure, which comes after a fifth of a second, the file says that work always waits.
// Then it says that none does.
TEST(helpers_are_for_cores_that_nobody_waits_for) {
  const Deposits deposits(2048);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("kilokv-chooser-" + std::to_string(getpid()) + ".txt")).string();
  const auto say = [&](unsigned long long seconds) {
    std::ofstream(path, std::ios::trunc) << "some avg10=0.00 avg60=0.00 avg300=0.00 total=" << seconds * 1'000'000
                                         << '\n';
  };
  say(0);
  Chooser chooser(2, path);
  chooser.begin({});
  EXPECT_TRUE(run_pipelined(&chooser, deposits.columns) > 250);
  // A loaded machine may sleep for longer than the second after which a look does not count.
  int times = 300;
  unsigned long long waited = 0;
  for (int i = 0; i < 50 && times > 100; ++i) {
    say(waited += 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(210));
    times = run_pipelined(&chooser, deposits.columns);
  }
  EXPECT_TRUE(times <= 100);
  for (int i = 0; i < 50 && times < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(210));
    times = run_pipelined(&chooser, deposits.columns);
  }
  EXPECT_TRUE(times >= 200);
  EXPECT_TRUE(chooser.text().ends_with("; work waits for a core 0% of the time"));
  std::filesystem::remove(path);
}

TEST(each_set_of_strategies_has_a_choice_of_its_own) {
  const Deposits deposits(2048);
  Chooser chooser(4);
  chooser.begin({"ordered", "prstm"});
  int times[4] = {}, of_executor[2] = {};
  for (int i = 0; i < 300; ++i) {
    const Chooser::Chosen chosen = chooser.choose(deposits.columns, kAll);
    ++times[static_cast<int>(chosen.way)];
    if (chosen.way == Way::parallel) ++of_executor[chosen.strategy];
    chooser.took(true, chosen.way == Way::parallel && chosen.strategy == 1 ? 1e-4 : 2e-4, 0);
    EXPECT_TRUE(chooser.has_chosen());
  }
  for (const int each : times) EXPECT_TRUE(each > 0);
  EXPECT_TRUE(of_executor[0] > 0);
  EXPECT_TRUE(of_executor[1] > 200);
  EXPECT_TRUE(chooser.text().find("prstm 48 ns") != std::string::npos ||
              chooser.text().find("prstm 49 ns") != std::string::npos);
  EXPECT_TRUE(chooser.choose(deposits.columns, kCanPipeline).way == Way::serial);
  EXPECT_TRUE(chooser.text().find("pipelined not timed yet") != std::string::npos);
}

TEST(partitioned_needs_threads) {
  const Deposits deposits(2048);
  Chooser chooser(3);
  chooser.begin({});
  static_cast<void>(chooser.choose(deposits.columns, {.partitioned = true}));
  EXPECT_FALSE(chooser.has_chosen());
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(chooser.choose(deposits.columns, {.pipelined = true, .partitioned = true}).way != Way::partitioned);
    chooser.took(true, 1e-4, 0);
  }
}

TEST(small_batches_are_not_measured) {
  Chooser chooser(2);
  chooser.begin({});
  for (const std::uint32_t transactions : {1u, 1023u}) {
    EXPECT_TRUE(chooser.choose(Deposits(transactions).columns, kCanPipeline).way == Way::serial);
    EXPECT_FALSE(chooser.has_chosen());
  }
  EXPECT_TRUE(chooser.text().starts_with("serial: no batch yet had"));
  static_cast<void>(chooser.choose(Deposits(2048).columns, {}));
  EXPECT_FALSE(chooser.has_chosen());
  static_cast<void>(chooser.choose(Deposits(1024).columns, kCanPipeline));
  EXPECT_TRUE(chooser.has_chosen());
}

}  // namespace
}  // namespace kilokv::engine
