// The report holds what the contract names, and says so when a run ended badly.
#include "client/bench/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/json.hpp"

namespace kilokv::bench {
namespace {

RunReport sample() {
  RunReport report;
  report.measured_us = 2'000'000;
  report.measured.counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = 3'000;
  report.measured.counts.outcomes[static_cast<std::size_t>(client::Outcome::guard_failed)] = 5;
  report.whole = report.measured.counts;
  for (std::int64_t value = 1; value <= 1'000; ++value) report.measured.latency_us.record(value);
  report.measured.longest_gap_us = 250;
  report.checked = true;
  report.state.statement = "the balances sum to 5";
  return report;
}

Json to_json(const RunReport& report) { return Json::parse(json_text(report)); }

TEST(Report, JsonHasTheContractsFields) {
  const Json json = to_json(sample());
  EXPECT_EQ(json["committed"], 3'000);
  EXPECT_DOUBLE_EQ(json["committed_per_s"].number(), 1'500);
  EXPECT_EQ(json["guard_failed"], 5);
  for (const char* field : {"wait_expired", "cancelled", "errors", "unknown"}) EXPECT_EQ(json[field], 0) << field;
  EXPECT_EQ(json["latency_us"]["p50"], 500);
  EXPECT_EQ(json["latency_us"]["p90"], 900);
  EXPECT_EQ(json["latency_us"]["p99"], 990);
  EXPECT_EQ(json["latency_us"]["p999"], 999);
  EXPECT_EQ(json["latency_us"]["max"], 1'000);
  EXPECT_EQ(json["longest_gap_us"], 250);
  EXPECT_EQ(json["config"]["workload"], "bank");
  EXPECT_EQ(json["verified"]["holds"], true);
  EXPECT_TRUE(json["failure"].is_null());
}

TEST(Report, WhatWasOfferedShows) {
  RunReport report = sample();
  report.whole.sent = 3'005;
  EXPECT_TRUE(to_json(report)["due"].is_null()) << "a closed loop";
  EXPECT_TRUE(to_json(report)["in_flight_full_share"].is_null());
  EXPECT_EQ(to_json(report)["sent"], 3'005);
  report.options.rate_per_s = 2'000;
  report.options.connections = 2;
  report.options.warmup_us = 500'000;
  report.whole.due = 5'000;
  report.whole.not_sent = 1'995;
  report.whole.full_us = 4'000'000;
  EXPECT_EQ(to_json(report)["due"], 5'000);
  EXPECT_EQ(to_json(report)["not_sent"], 1'995);
  EXPECT_DOUBLE_EQ(to_json(report)["in_flight_full_share"].number(), 0.8);
}

TEST(Report, TheBatchesOfTheServerShow) {
  RunReport report = sample();
  EXPECT_TRUE(to_json(report)["server_batches"].is_null()) << "they are not known";
  report.batches = {4, 100};
  EXPECT_EQ(to_json(report)["server_batches"]["batches"], 4);
  EXPECT_EQ(to_json(report)["server_batches"]["transactions"], 100);
  EXPECT_DOUBLE_EQ(to_json(report)["server_batches"]["mean_size"].number(), 25);
}

TEST(Report, RefusalsAndTheirDelaysShow) {
  RunReport report = sample();
  Counts counts;
  counts.refusals = {3, 1, 30'000, 45'000};
  report.whole.merge(counts);
  report.whole.merge(counts);
  const Json refusals = to_json(report)["refusals"];
  EXPECT_EQ(refusals["count"], 6);
  EXPECT_EQ(refusals["early"], 2);
  EXPECT_DOUBLE_EQ(refusals["asked_seconds"].number(), 0.06);
  EXPECT_DOUBLE_EQ(refusals["waited_seconds"].number(), 0.09);
  report.options.unary = true;
  EXPECT_TRUE(to_json(report)["refusals"].is_null()) << "calls without sessions do not tell";
}

TEST(Report, AnEndBySignalShowsWithWhatWasCheckedAndWhatWasNot) {
  RunReport report = sample();
  EXPECT_TRUE(to_json(report)["interrupted_by"].is_null());
  report.interrupted_by = 2;
  EXPECT_EQ(to_json(report)["interrupted_by"], 2);
  EXPECT_EQ(to_json(report)["measured_seconds"], 2);
  EXPECT_EQ(to_json(report)["verified"]["holds"], true);
  EXPECT_NE(to_text(report).find("ended    by signal 2, 2.0 s of 10.0 s measured"), std::string::npos)
      << to_text(report);
  EXPECT_NE(sweep_table({report}).find("holds, ended early"), std::string::npos);
  report.checked = false;
  EXPECT_TRUE(to_json(report)["verified"]["holds"].is_null());
  EXPECT_NE(to_text(report).find("check    did not run"), std::string::npos);
  EXPECT_EQ(to_text(report).find("holds"), std::string::npos);
}

TEST(Report, AViolationShows) {
  RunReport report = sample();
  report.state.violation = "total: expected 5, got 4";
  report.failure = "INVARIANT VIOLATED";
  EXPECT_EQ(to_json(report)["verified"]["holds"], false);
  EXPECT_NE(to_text(report).find("VIOLATED: total: expected 5, got 4"), std::string::npos);
  EXPECT_NE(sweep_table({report}).find("FAILED"), std::string::npos);
  EXPECT_EQ(sweep_table({sample()}).find("FAILED"), std::string::npos);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The cell of a column, for rows without quotes.
std::string cell(const std::string& csv, const std::string& column) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> cells(1);
    for (const char c : line) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    return cells;
  };
  const auto rows = lines(csv);
  const auto names = split(rows.at(0)), values = split(rows.at(1));
  EXPECT_EQ(names.size(), values.size());
  const auto found = std::find(names.begin(), names.end(), column);
  return found == names.end() ? "no such column" : values.at(static_cast<std::size_t>(found - names.begin()));
}

TEST(Report, CsvHasARowForEachRun) {
  RunReport report = sample();
  report.server.version = "7";
  const std::string csv = csv_text({report, report});
  EXPECT_EQ(lines(csv).size(), 3u);
  EXPECT_EQ(cell(csv, "workload"), "bank");
  EXPECT_EQ(cell(csv, "committed"), "3000");
  EXPECT_EQ(cell(csv, "committed_per_s"), "1500.0");
  EXPECT_EQ(cell(csv, "guard_failed"), "5");
  EXPECT_EQ(cell(csv, "p99_us"), "990");
  EXPECT_EQ(cell(csv, "rate_per_s"), "");
  EXPECT_EQ(cell(csv, "due"), "");
  EXPECT_EQ(cell(csv, "batch_max_transactions"), "");
  EXPECT_EQ(cell(csv, "holds"), "true");
  EXPECT_EQ(cell(csv, "repeat"), "1");
  EXPECT_EQ(cell(csv, "server_version"), "7");
  report.checked = false;
  report.options.server_batch_max = 512;
  EXPECT_EQ(cell(csv_text({report}), "holds"), "");
  EXPECT_EQ(cell(csv_text({report}), "batch_max_transactions"), "512");
  EXPECT_EQ(to_json(report)["config"]["batch_max_transactions"], 512);
}

TEST(Report, CsvQuotesWhatNeedsIt) {
  RunReport report = sample();
  report.server.strategy = "auto, of \"all\"";
  EXPECT_NE(csv_text({report}).find(",\"auto, of \"\"all\"\"\","), std::string::npos);
}

TEST(Report, WarningsShowInEachForm) {
  RunReport report = sample();
  report.options.rate_per_s = 1000;
  EXPECT_EQ(to_json(report)["warnings"].size(), 0u);
  EXPECT_TRUE(to_json(report)["cpu"].is_null());
  EXPECT_EQ(to_text(report).find("warning"), std::string::npos);
  report.cpu.known = true;
  report.cpu.place = ServerPlace::elsewhere;
  report.cpu.cores = 2;
  report.cpu.others = 0.5;
  const Json json = to_json(report);
  EXPECT_EQ(json["warnings"][0]["code"], "machine_busy");
  EXPECT_EQ(json["cpu"]["others_share"], 0.5);
  EXPECT_TRUE(json["cpu"]["server_machine_share"].is_null());
  EXPECT_NE(to_text(report).find("  warning  this machine is busy"), std::string::npos);
  EXPECT_NE(sweep_table({report}).find("\nwarning  this machine is busy"), std::string::npos);
  EXPECT_EQ(cell(csv_text({report}), "warnings"), "machine_busy");
  report.cpu.place = ServerPlace::hidden;
  EXPECT_TRUE(to_json(report)["cpu"]["others_share"].is_null());
}

TEST(Report, AClosedLoopTellsHowFullItWas) {
  RunReport report = sample();
  report.options.in_flight = 1;
  report.options.batch_size = 1;
  EXPECT_NEAR(to_json(report)["in_flight_filled_share"].number(), 0.752, 0.001);  // 1,502 a second, for 0.5 ms each
  report.options.rate_per_s = 5;
  EXPECT_TRUE(to_json(report)["in_flight_filled_share"].is_null());
}

}  // namespace
}  // namespace kilokv::bench
