// The page holds its data in a form that no text of the data can leave, and marks the right runs.
#include "client/bench/html_report.hpp"

#include <gtest/gtest.h>

#include "tests/support/json.hpp"

namespace kilokv::bench {
namespace {

RunReport run_of(std::uint32_t batch_size, std::uint64_t committed_per_s, std::uint32_t connections = 1) {
  RunReport report;
  report.options.batch_size = batch_size;
  report.options.connections = connections;
  report.measured_us = 1'000'000;
  report.measured.counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = committed_per_s;
  report.checked = true;
  return report;
}

std::string data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const std::vector<RunReport>& reports) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const SweepChoice& choice : choices_of(reports)) pairs.emplace_back(choice.chosen, choice.best);
  return pairs;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(HtmlReport, ItHasTheReportAndWhatThePlotsNeed) {
  RunReport report = run_of(64, 3'000);
  report.measured.latency_us.record(100, 3'000);
  report.options.workload.seed = 18'446'744'073'709'551'615u;
  report.samples.emplace_back().server_cpu = 0.25;
  const std::string page = html_text({report}, {false, "kilokv-bench run", "2026-11-29"});
  const Json data = Json::parse(data_of(page));
  EXPECT_EQ(data["kind"], "run");
  EXPECT_EQ(data["command"], "kilokv-bench run");
  EXPECT_EQ(data["report"]["committed"], 3'000);
  EXPECT_EQ(data["details"][0]["seed"], "18446744073709551615");
  EXPECT_EQ(data["details"][0]["latency_counts"][0][1], 3'000);
  EXPECT_EQ(data["details"][0]["samples"][0]["server_cpu"], 0.25);
  EXPECT_TRUE(data["details"][0]["samples"][0]["client_cpu"].is_null());
  EXPECT_EQ(Json::parse(data_of(html_text({report, report}, {true, {}, {}})))["report"].size(), 2u);
}

TEST(HtmlReport, EveryFileOfThePageIsThere) {
  const std::string page = html_text({run_of(1, 1)}, {});
  for (const char* part : {"The MIT License", "uPlot=function", ".uplot", "function runPage", "function sweepPage"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("<script src"), std::string::npos);
  EXPECT_EQ(page.find("<link rel=\"stylesheet"), std::string::npos);
}

TEST(HtmlReport, NoTextOfTheDataLeavesItsElement) {
  const std::string planted = "</script><script>planted()</script><!--{{page.css}}";
  RunReport report = run_of(1, 1);
  report.server.version = report.server.device = report.failure = report.state.violation = planted;
  const std::string page = html_text({report}, {false, planted, planted});
  EXPECT_EQ(page.find("<script>planted"), std::string::npos);
  const Json data = Json::parse(data_of(page));
  EXPECT_EQ(data["command"], planted);
  EXPECT_EQ(data["report"]["server"]["device"], planted);
}

TEST(HtmlReport, BytesThatAreNoTextAreReplaced) {
  const Json data = Json::parse(data_of(html_text({run_of(1, 1)}, {false, "a\xff", {}})));
  EXPECT_EQ(data["command"], "a\xef\xbf\xbd");
}

TEST(HtmlReport, TheSmallestSizeNearTheBestIsChosenInEachSeries) {
  EXPECT_EQ(pairs_of({run_of(1, 10), run_of(64, 96), run_of(256, 100)}), (Pairs{{1, 2}}));
  EXPECT_EQ(pairs_of({run_of(256, 100), run_of(64, 94), run_of(1, 10)}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of({run_of(1, 10, 1), run_of(1, 20, 4), run_of(64, 99, 1), run_of(64, 21, 4)}),
            (Pairs{{2, 2}, {1, 3}}));
}

TEST(HtmlReport, NothingIsChosenWithoutSeveralGoodSizes) {
  EXPECT_EQ(pairs_of({run_of(64, 100)}), Pairs{});
  EXPECT_EQ(pairs_of({run_of(1, 0), run_of(64, 0)}), Pairs{});
  RunReport failed = run_of(256, 1'000), early = run_of(512, 1'000);
  failed.failure = "INVARIANT VIOLATED";
  early.interrupted_by = 2;
  EXPECT_EQ(pairs_of({run_of(64, 100), failed}), Pairs{});
  EXPECT_EQ(pairs_of({run_of(64, 100), run_of(128, 101), failed, early}), (Pairs{{0, 1}}));
}

TEST(HtmlReport, TheCommandIsOneThatAShellReadsBack) {
  EXPECT_EQ(shell_line({"kilokv-bench", "run", "--batch-size", "1,16", "--html", "a/b.html"}),
            "kilokv-bench run --batch-size 1,16 --html a/b.html");
  EXPECT_EQ(shell_line({"a b", "", "it's", "$HOME"}), "'a b' '' 'it'\\''s' '$HOME'");
}

}  // namespace
}  // namespace kilokv::bench
