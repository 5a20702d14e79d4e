// The audit accepts right books and finds what is wrong with others.
#include "client/bank/audit.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/fake_client.hpp"

namespace kilokv::bank {
namespace {

class Audit : public testing::Test {
 protected:
  Audit() {
    client_.state["bank/account/alice"] = std::int64_t{70};
    client_.state["bank/account/bob"] = std::int64_t{30};
    client_.state["bank/entry/alice/1-a-1/opened/cash"] = std::int64_t{100};
    client_.state["bank/entry/alice/2-a-2/transfer/bob"] = std::int64_t{-30};
    client_.state["bank/entry/bob/0-a-0/opened/cash"] = std::int64_t{0};
    client_.state["bank/entry/bob/2-a-2/transfer/alice"] = std::int64_t{30};
  }
  AuditReport run() {
    auto report = audit(&client_, 0);
    EXPECT_TRUE(report);
    return std::move(*report);
  }

  bench::FakeClient client_;
};

TEST_F(Audit, RightBooks) {
  client_.state["acct000000000001"] = std::int64_t{1'000};
  client_.state["auxiliary"] = std::string("not ours");
  const AuditReport report = run();
  EXPECT_EQ(report.problem_count, 0u) << report.problems.front();
  EXPECT_EQ(report.total, 100) << "the load tester's money is not the bank's";
  EXPECT_EQ(report.entries, 4u);
  EXPECT_EQ(report.load_tester_accounts, 1u);
  EXPECT_EQ(report.load_tester_total, 1'000);
  EXPECT_EQ(report.balances.at("alice"), 70);
}

TEST_F(Audit, ALostDeposit) {
  client_.state["bank/entry/alice/3-a-3/deposit/cash"] = std::int64_t{5};
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, ALostEntry) {
  client_.state.erase("bank/entry/alice/1-a-1/opened/cash");
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, AHalfTransferThatTheBalanceHides) {
  client_.state["bank/entry/alice/4-a-4/transfer/bob"] = std::int64_t{5};
  client_.state["bank/account/alice"] = std::int64_t{75};
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, HalvesOfTwoTransfersThatCancel) {
  client_.state["bank/entry/alice/4-a-4/transfer/bob"] = std::int64_t{5};
  client_.state["bank/entry/bob/5-a-5/transfer/alice"] = std::int64_t{-5};
  client_.state["bank/account/alice"] = std::int64_t{75};
  client_.state["bank/account/bob"] = std::int64_t{25};
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, ANegativeBalance) {
  client_.state["bank/account/alice"] = std::int64_t{-1};
  client_.state["bank/entry/alice/3-a-3/withdrawal/cash"] = std::int64_t{-71};
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, ANegativeBalanceOfTheLoadTester) {
  client_.state["acct000000000001"] = std::int64_t{-1};
  EXPECT_EQ(run().problem_count, 1u);
}

TEST_F(Audit, WhatIsNoAmountOrNoEntry) {
  client_.state["bank/account/carol"] = std::string("bytes");
  client_.state["bank/entry/alice/x"] = std::int64_t{1};
  client_.state["bank/entry/nobody/6-a-6/deposit/cash"] = std::int64_t{1};
  EXPECT_EQ(run().problem_count, 3u);
}

TEST_F(Audit, ABrokenScanIsNotCountedTwice) {
  client_.scans_that_break = 2;
  auto report = audit(&client_, 10'000'000);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->total, 100);
  EXPECT_EQ(report->problem_count, 0u);
}

}  // namespace
}  // namespace kilokv::bank
