// The adapter: what a generator writes into a client batch is what it writes into the engine's columns.
#include "client/bench/batch_sink.hpp"

#include <gtest/gtest.h>

#include "engine/workloads/workload.hpp"
#include "kilokv/history.hpp"
#include "tests/support/json.hpp"

namespace kilokv::bench {
namespace {

// A transaction as its history line tells it.
Json transaction(const client::Batch& batch, std::size_t index) {
  std::string line;
  client::append_history(batch, client::Results(), index, {}, &line);
  return Json::parse(line);
}

client::Batch generate(const std::string& name, std::size_t transactions) {
  engine::WorkloadOptions options;
  options.name = name;
  options.keys = 10;
  options.ycsb.payload_bytes = 20;
  auto workload = engine::Workload::create(options);
  EXPECT_TRUE(workload.ok());
  client::Batch batch;
  BatchSink sink(&batch);
  workload->generate(&sink, transactions);
  EXPECT_EQ(batch.size(), transactions);
  return batch;
}

TEST(BatchSink, BankTransfer) {
  const Json line = transaction(generate("bank", 3), 2);
  const Json guard = line["guards"][0];
  EXPECT_EQ(guard["is"], "ge");
  EXPECT_EQ(guard["when_false"], "fail");
  ASSERT_EQ(line["then"].size(), 2u);
  EXPECT_EQ(line["then"][0]["op"], "add");
  EXPECT_EQ(line["then"][0]["key"], guard["key"]);
  EXPECT_EQ(line["then"][0]["delta"].integer(), -guard["value"].integer());
  EXPECT_EQ(line["then"][1]["delta"], guard["value"]);
  EXPECT_NE(line["then"][1]["key"], guard["key"]);
}

TEST(BatchSink, SemanticGuardsWait) {
  const Json line = transaction(generate("bank-semantic", 2), 0);
  EXPECT_EQ(line["guards"][0]["when_false"], "wait");
}

TEST(BatchSink, YcsbPutsBytes) {
  const client::Batch batch = generate("ycsb-a", 50);
  std::size_t puts = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Json operation = transaction(batch, i)["then"][0];
    if (operation["op"] != "put") continue;
    ++puts;
    EXPECT_TRUE(operation["value"].contains("b64"));
  }
  EXPECT_GT(puts, 0u);
  EXPECT_LT(puts, batch.size());
}

TEST(BatchSink, GraphPutsWhatItGot) {
  const Json line = transaction(generate("graph", 1), 0);
  ASSERT_EQ(line["then"].size(), 2u);
  EXPECT_EQ(line["guards"][0]["key"], line["then"][0]["key"]);
  EXPECT_EQ(line["guards"][0]["other"], line["then"][1]["key"]);
  EXPECT_EQ(line["then"][1]["op"], "put");
}

TEST(BatchSink, YcsbScans) {
  const client::Batch batch = generate("ycsb-e", 50);
  std::size_t scans = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) scans += transaction(batch, i)["then"][0]["op"] == "range_get" ? 1 : 0;
  EXPECT_GT(scans, 40u);
}

TEST(BatchSink, EveryKindOfGuardAndOperation) {
  using engine::GuardKind;
  using engine::OnFalse;
  using engine::Operand;
  using engine::OpKind;
  client::Batch batch;
  BatchSink sink(&batch);
  sink.begin(3, 5'000);
  const std::uint32_t a = sink.key("a"), b = sink.key("b");
  sink.guard(GuardKind::exists, OnFalse::fail, a, 0);
  sink.guard(GuardKind::absent, OnFalse::wait, b, 0);
  sink.guard(GuardKind::less, OnFalse::fail, a, 0, b);
  sink.guard(GuardKind::version_equal, OnFalse::fail, a, 9);
  sink.guard(GuardKind::unchanged, OnFalse::fail, a, 8);
  sink.guard(GuardKind::bytes_equal, OnFalse::fail, a, sink.value("xyz"));
  sink.range_guard(GuardKind::range_unchanged, OnFalse::fail, "c", "d", 7);
  sink.guard(GuardKind::time_before, OnFalse::fail, b, 0);
  sink.guard(GuardKind::time_before, OnFalse::fail, engine::kNone, 6);
  sink.guard(GuardKind::time_after, OnFalse::wait, b, 0);
  sink.guard(GuardKind::time_after, OnFalse::wait, engine::kNone, 7);
  sink.op(OpKind::get, a);
  sink.op(OpKind::put, b, Operand::get, 0);
  sink.op(OpKind::add, b, Operand::get_negated, 0);
  sink.op(OpKind::put, b, Operand::commit_version);
  sink.op(OpKind::put, b, Operand::batch_time);
  sink.op(OpKind::put, b, Operand::bytes, sink.value("pqr"));
  sink.op(OpKind::del, a);
  sink.range_op(OpKind::range_get, "c", "d", 4);
  sink.begin_else();
  sink.range_op(OpKind::delete_range, "e", "f", 5);
  sink.end();
  const Json line = transaction(batch, 0);
  EXPECT_EQ(line["precedence"], 3);
  EXPECT_EQ(line["wait_timeout_ms"], 5);
  std::vector<std::string> guards, operations;
  for (const Json& guard : line["guards"].elements()) guards.push_back(guard["is"].text());
  for (const Json& operation : line["then"].elements()) operations.push_back(operation["op"].text());
  EXPECT_EQ(guards,
            (std::vector<std::string>{"exists", "absent", "lt", "version", "unchanged", "bytes_eq", "range_unchanged",
                                      "time_before", "time_before", "time_after", "time_after"}));
  EXPECT_EQ(operations, (std::vector<std::string>{"get", "put", "add", "put", "put", "put", "delete", "range_get"}));
  EXPECT_EQ(line["guards"][1]["when_false"], "wait");
  EXPECT_EQ(line["guards"][2]["other"], "b");
  EXPECT_EQ(line["guards"][3]["version"], 9);
  EXPECT_EQ(line["guards"][4]["version"], 8);
  EXPECT_EQ(line["guards"][5]["value"]["b64"], "eHl6");
  EXPECT_EQ(line["guards"][6]["version"], 7);
  EXPECT_EQ(line["guards"][7]["key"], "b");
  EXPECT_EQ(line["guards"][8]["time_us"], 6);
  EXPECT_EQ(line["guards"][9]["key"], "b");
  EXPECT_EQ(line["guards"][10]["time_us"], 7);
  EXPECT_EQ(line["guards"][10]["when_false"], "wait");
  EXPECT_EQ(line["then"][1]["value"]["get"], 0);
  EXPECT_EQ(line["then"][2]["delta"]["negate"], true);
  EXPECT_EQ(line["then"][3]["value"]["commit_version"], true);
  EXPECT_EQ(line["then"][4]["value"]["batch_time"], true);
  EXPECT_EQ(line["then"][5]["value"]["b64"], "cHFy");
  EXPECT_EQ(line["then"][7]["limit"], 4);
  EXPECT_EQ(line["else"][0]["op"], "delete_range");
}

}  // namespace
}  // namespace kilokv::bench
