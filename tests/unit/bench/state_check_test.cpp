// The conservation check over a scan, against good and bad states.
#include "client/bench/state_check.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/bench/fake_client.hpp"

namespace kilokv::bench {
namespace {

engine::Workload make_workload(const std::string& name, std::uint64_t keys) {
  engine::WorkloadOptions options;
  options.name = name;
  options.keys = keys;
  auto workload = engine::Workload::create(options);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  return std::move(*workload);
}

void load(const engine::Workload& workload, FakeClient* client) {
  workload.for_each_initial([&](const engine::InitialRecord& record) {
    if (record.type == ValueType::bytes) {
      client->state[std::string(record.key)] = std::string(record.bytes);
    } else {
      client->state[std::string(record.key)] = record.integer;
    }
  });
}

class StateCheck : public testing::TestWithParam<const char*> {};

TEST_P(StateCheck, HoldsAtTheStartAndNotWithoutARecord) {
  const engine::Workload workload = make_workload(GetParam(), 20);
  FakeClient client;
  load(workload, &client);
  auto report = check_state(&client, workload, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->violation, "");
  EXPECT_EQ(report->boundary, 42u);
  EXPECT_EQ(report->records, client.state.size());
  client.state.erase(client.state.begin());
  report = check_state(&client, workload, 0);
  ASSERT_TRUE(report);
  EXPECT_NE(report->violation, "");
}

std::vector<const char*> shared_workloads() {
  std::vector<const char*> names;
  for (const engine::WorkloadKind& kind : engine::Workload::kinds()) {
    if (kind.is_shared) names.push_back(kind.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Workloads, StateCheck, testing::ValuesIn(shared_workloads()));

TEST(StateCheck, ACentMissing) {
  const engine::Workload workload = make_workload("bank", 20);
  FakeClient client;
  load(workload, &client);
  std::get<std::int64_t>(client.state.begin()->second) -= 1;
  EXPECT_NE(check_state(&client, workload, 0)->violation, "");
}

TEST(StateCheck, ANegativeBalanceThatTheTotalHides) {
  const engine::Workload workload = make_workload("bank", 20);
  FakeClient client;
  load(workload, &client);
  std::get<std::int64_t>(client.state.begin()->second) -= 2'000;
  std::get<std::int64_t>(client.state.rbegin()->second) += 2'000;
  EXPECT_NE(check_state(&client, workload, 0)->violation, "");
}

TEST(StateCheck, AForeignValue) {
  const engine::Workload workload = make_workload("ycsb-a", 20);
  FakeClient client;
  load(workload, &client);
  client.state.begin()->second = client.state.rbegin()->second;
  EXPECT_NE(check_state(&client, workload, 0)->violation, "");
}

TEST(StateCheck, OtherKeysDoNotCount) {
  const engine::Workload workload = make_workload("bank-semantic", 20);
  FakeClient client;
  load(workload, &client);
  client.state["chck000000000020"] = std::int64_t{5};  // beyond the last customer
  client.state["middle"] = std::string("bytes");
  EXPECT_EQ(check_state(&client, workload, 0)->violation, "");
}

TEST(StateCheck, InsertedRowsCount) {
  const engine::Workload workload = make_workload("ycsb-d", 20);
  FakeClient client;
  load(workload, &client);
  client.state["usrd800000000000"] = "usrd800000000000" + std::string(84, '.');
  EXPECT_EQ(check_state(&client, workload, 0)->violation, "");
  EXPECT_EQ(check_state(&client, workload, 0)->records, 21u);
  client.state["usrd999999999999"] = std::string("not its own");
  EXPECT_NE(check_state(&client, workload, 0)->violation, "");
}

TEST(StateCheck, ABrokenScanStartsAgain) {
  const engine::Workload workload = make_workload("bank", 20);
  FakeClient client;
  load(workload, &client);
  client.scans_that_break = 3;
  const auto report = check_state(&client, workload, 10'000'000);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->violation, "");
  EXPECT_EQ(client.scans, 4);
  client.scans = 0;
  EXPECT_EQ(check_state(&client, workload, 0).error().code, client::ErrorCode::aborted);
}

}  // namespace
}  // namespace kilokv::bench
