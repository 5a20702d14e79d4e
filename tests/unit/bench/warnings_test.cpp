// Each warning from its bound on, and none below it.
#include "client/bench/warnings.hpp"

#include <gtest/gtest.h>

namespace kilokv::bench {
namespace {

// A run on a quiet machine: the server is there, too, half of the machine is idle, and 80% of all that may be in flight
// are.
RunReport quiet() {
  RunReport report;
  report.options.batch_size = 10;
  report.options.in_flight = 4;
  report.options.connections = 2;
  report.measured_us = 1'000'000;
  report.measured.counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = 64'000;
  report.measured.latency_us.record(1000, 64'000);
  report.cpu.known = true;
  report.cpu.place = ServerPlace::here;
  report.cpu.cores = 8;
  report.cpu.client = report.cpu.client_machine = 0.2;
  report.cpu.busiest_thread = 0.5;
  report.cpu.server = 0.25;
  report.cpu.idle = 0.5;
  return report;
}

std::string codes(const RunReport& report) {
  std::string codes;
  for (const Warning& warning : warnings_of(report)) codes += (codes.empty() ? "" : " ") + warning.code;
  return codes;
}

TEST(Warnings, AQuietMachineHasNone) {
  EXPECT_NEAR(filled_share(quiet()), 0.8, 1e-9);
  EXPECT_EQ(codes(quiet()), "");
}

TEST(Warnings, TheClientIsTheLimit) {
  RunReport report = quiet();
  report.cpu.client = 0.79;
  EXPECT_EQ(codes(report), "");
  report.cpu.client = 0.8;
  EXPECT_EQ(codes(report), "client_cpu");
  report = quiet();
  report.cpu.busiest_thread = 0.89;
  EXPECT_EQ(codes(report), "");
  report.cpu.busiest_thread = 0.9;
  EXPECT_EQ(codes(report), "client_cpu");
}

TEST(Warnings, TheClientTakesTheCoresOfTheServer) {
  RunReport report = quiet();
  report.cpu.idle = 0.049;
  EXPECT_EQ(codes(report), "") << "the client took little";
  report.cpu.client_machine = 0.25;
  EXPECT_EQ(codes(report), "client_cpu");
  report.cpu.idle = 0.05;
  EXPECT_EQ(codes(report), "");
  report.cpu.idle = 0.04;
  report.cpu.place = ServerPlace::elsewhere;
  EXPECT_EQ(codes(report), "") << "the server has other cores";
}

TEST(Warnings, TheNumberInFlightIsTheLimitOfAClosedLoop) {
  RunReport report = quiet();
  report.options.in_flight = 3;  // 64 of 60
  report.cpu.idle = 0.3;
  EXPECT_EQ(codes(report), "in_flight");
  report.cpu.idle = 0.29;
  EXPECT_EQ(codes(report), "") << "the machine has no time for more";
  report.cpu.idle = 0.3;
  report.cpu.place = ServerPlace::elsewhere;
  EXPECT_EQ(codes(report), "") << "nothing is known of the server's machine";
}

TEST(Warnings, TheLoadTesterDoesNotFillThePipeline) {
  RunReport report = quiet();
  report.options.in_flight = 5;  // 64 of 100
  EXPECT_EQ(codes(report), "not_filled");
  report.measured.counts.outcomes[1] = 70'000;
  EXPECT_EQ(codes(report), "");
  report.measured = {};
  EXPECT_EQ(codes(report), "") << "nothing was measured";
}

TEST(Warnings, TheNumberInFlightIsTheLimitOfAnOpenLoop) {
  RunReport report = quiet();
  report.options.rate_per_s = 64'000;
  report.options.warmup_us = 1'000'000;
  report.whole.full_us = 3'590'000;  // of two connections, with the warm-up
  EXPECT_EQ(codes(report), "");
  report.whole.full_us = 3'600'000;
  EXPECT_EQ(codes(report), "in_flight");
  EXPECT_DOUBLE_EQ(filled_share(report), 0) << "means nothing in an open loop";
}

TEST(Warnings, TheMachineIsBusy) {
  RunReport report = quiet();
  report.cpu.others = 0.06;
  report.cpu.steal = 0.039;
  EXPECT_EQ(codes(report), "");
  report.cpu.steal = 0.04;
  EXPECT_EQ(codes(report), "machine_busy");
  report.cpu.others = 0;
  report.cpu.steal = 0.1;
  EXPECT_EQ(codes(report), "machine_busy");
}

TEST(Warnings, WhatIsNotKnownIsNoReason) {
  RunReport report = quiet();
  report.cpu = {};
  report.cpu.client = report.cpu.others = 1;
  EXPECT_EQ(codes(report), "");
}

TEST(Warnings, SeveralRunsTellEachWarningOnce) {
  RunReport busy = quiet();
  busy.cpu.others = 0.3;
  EXPECT_EQ(merged_warnings({quiet(), quiet()}).size(), 0u);
  const auto lines = merged_warnings({quiet(), busy, busy});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines.front().find("other processes used 30% of it"), std::string::npos) << lines.front();
  EXPECT_NE(lines.front().find("(2 of 3 runs; "), std::string::npos) << lines.front();
  EXPECT_EQ(merged_warnings({busy}).front().find(" runs"), std::string::npos);
}

}  // namespace
}  // namespace kilokv::bench
