#include "kilokv/history.hpp"

#include <gtest/gtest.h>

#include "client/lib/src/result_columns.hpp"
#include "tests/support/json.hpp"
#include "tests/unit/client/fake_server.hpp"

namespace kilokv::client {
namespace {

using namespace std::string_view_literals;

Json parse_line(const std::string& line) {
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  return Json::parse(line);
}

TEST(History, HeaderListsThePairsThatWereThere) {
  const std::vector<Pair> initial = {{"a", std::int64_t{-5}, 3}, {"\x01\xff", std::string("x\0", 2), 4}};
  const Json header = parse_line(history_header(R"({"seed": 1})", initial));
  EXPECT_EQ(header["format"], "kilokv-history-2");
  EXPECT_EQ(header["config"]["seed"], 1);
  EXPECT_EQ(header["initial"], Json::parse(R"([{"key": "a", "value": -5, "version": 3},
      {"key": {"b64": "Af8="}, "value": {"b64": "eAA="}, "version": 4}])"));
}

TEST(History, EveryPrintableCharacterOfAKeyComesBack) {
  std::string key;
  for (char c = ' '; c <= '~'; ++c) key.push_back(c);
  std::string out;
  append_history_key(key, &out);
  EXPECT_EQ(Json::parse(out), Json(key));
  out.clear();
  append_history_key("a\x7f", &out);
  EXPECT_TRUE(Json::parse(out).is_object());
  out.clear();
  append_history_key("", &out);
  EXPECT_EQ(out, "\"\"");
}

TEST(History, ATransactionIsWrittenAsItWasSent) {
  Batch batch;
  batch.begin({.precedence = 2, .wait_timeout_us = 2500, .expire_runs_else = true});
  const Key a = batch.key("a");
  const Key b = batch.key("b\"");
  batch.guard_exists(a);
  batch.guard(a, Compare::less_equal, 9, OnFalse::wait);
  batch.guard_keys(a, Compare::equal, b);
  batch.guard_unchanged(a, 12);
  batch.guard_bytes(a, "hi");
  batch.guard_range_unchanged("f", "g", 13);
  batch.guard_time_before(a);
  batch.guard_time_after(14, OnFalse::wait);
  const Op get = batch.get(a);
  batch.put(b, "v"sv);
  batch.add(b, FromGet{get, true});
  batch.put(b, FromGet{get});
  batch.put(a, CommitVersion{});
  batch.put(a, BatchTime{});
  batch.otherwise();
  batch.del(a);
  batch.range_get("a", "", 7);
  batch.delete_range("a", "b", 8);
  batch.range_get_reverse("c", "d", 9);
  batch.end();
  Results results;
  results.columns().reset(1);
  HistoryContext context;
  context.request = 4;
  context.attempts = 3;
  context.began_us = 1000;
  context.invoke_us = 1500;
  context.error = ErrorCode::unavailable;
  std::string out;
  append_history(batch, results, 0, context, &out);
  EXPECT_EQ(parse_line(out), Json::parse(R"json({
    "session": null, "request": 4, "index": 0, "attempts": 3, "invoke_us": 500, "return_us": null,
    "precedence": 2, "wait_timeout_ms": 2.5, "expire_runs_else": true,
    "guards": [{"is": "exists", "key": "a", "when_false": "fail"},
               {"is": "le", "key": "a", "value": 9, "when_false": "wait"},
               {"is": "eq", "key": "a", "other": "b\"", "when_false": "fail"},
               {"is": "unchanged", "key": "a", "version": 12, "when_false": "fail"},
               {"is": "bytes_eq", "key": "a", "value": {"b64": "aGk="}, "when_false": "fail"},
               {"is": "range_unchanged", "from": "f", "to": "g", "version": 13, "when_false": "fail"},
               {"is": "time_before", "key": "a", "when_false": "fail"},
               {"is": "time_after", "time_us": 14, "when_false": "wait"}],
    "then": [{"op": "get", "key": "a"}, {"op": "put", "key": "b\"", "value": {"b64": "dg=="}},
             {"op": "add", "key": "b\"", "delta": {"get": 0, "negate": true}},
             {"op": "put", "key": "b\"", "value": {"get": 0}},
             {"op": "put", "key": "a", "value": {"commit_version": true}},
             {"op": "put", "key": "a", "value": {"batch_time": true}}],
    "else": [{"op": "delete", "key": "a"}, {"op": "range_get", "from": "a", "to": "", "limit": 7},
             {"op": "delete_range", "from": "a", "to": "b", "limit": 8},
             {"op": "range_get", "from": "c", "to": "d", "limit": 9, "reverse": true}],
    "outcome": null, "error": "UNAVAILABLE"})json"));
}

TEST(History, ARefusalSaysWhetherItRan) {
  Batch batch;
  batch.begin();
  batch.get(batch.key("k"));
  batch.end();
  for (const bool not_run : {false, true}) {
    std::string out;
    append_history(batch, Results(), 0, {.error = ErrorCode::resource_exhausted, .not_run = not_run}, &out);
    const Json line = parse_line(out);
    EXPECT_EQ(line["error"], "RESOURCE_EXHAUSTED");
    EXPECT_EQ(line.contains("not_run"), not_run);
  }
  Error error;
  error.code = ErrorCode::failed_precondition;
  error.may_have_run = true;
  error.request = 7;
  error.attempts = 3;
  HistoryContext context;
  context.ended_with(error);
  std::string out;
  append_history(batch, Results(), 0, context, &out);
  const Json line = parse_line(out);
  EXPECT_EQ(line["error"], "FAILED_PRECONDITION");
  EXPECT_EQ(line["not_run"], false) << "the code alone would say that it did not run";
  EXPECT_EQ(line["request"], 7);
  EXPECT_EQ(line["attempts"], 3);
}

TEST(History, AResultIsWrittenWithItsReads) {
  Batch batch;
  batch.begin();
  batch.guard_exists(batch.key("k"));
  batch.get(batch.key("k"));
  batch.end();
  auto rows = std::make_unique<v1::ResultRows>();
  v1::TransactionResult* row = rows->add_results();
  row->set_outcome(v1::OUTCOME_GUARD_FAILED);
  row->set_failed_in(v1::FAILED_IN_GUARDS);
  row->set_batch(5);
  row->set_rank(6);
  row->set_admitted_batch(4);
  row->set_batch_time_us(77);
  v1::Read* read = row->add_reads();
  read->set_key("k");
  read->mutable_value()->set_integer(-1);
  read->set_version(3);
  row->add_reads()->set_own_write(true);
  RequestResult result;
  result.request = 9;
  result.invoke_us = 10;
  result.return_us = 30;
  std::vector<std::uint32_t> fresh;
  result.results.columns().reset(1);
  ASSERT_FALSE(result.results.columns().add(std::move(rows), &fresh));
  std::string out;
  append_history(batch, result, {.session = "0a", .began_us = 5}, &out);
  const Json line = parse_line(out);
  EXPECT_EQ(line["session"], "0a");
  EXPECT_EQ(line["request"], 9);
  EXPECT_EQ(line["invoke_us"], 5);
  EXPECT_EQ(line["return_us"], 25);
  EXPECT_EQ(line["outcome"], "GUARD_FAILED");
  EXPECT_EQ(line["failed_guard"], 0);
  EXPECT_TRUE(line["version"].is_null());
  EXPECT_EQ(line["batch"], 5);
  EXPECT_EQ(line["rank"], 6);
  EXPECT_EQ(line["admitted_batch"], 4);
  EXPECT_EQ(line["batch_time_us"], 77);
  EXPECT_EQ(line["reads"], Json::parse(R"([{"key": "k", "value": -1, "version": 3},
                                           {"key": "", "value": null, "version": null}])"));
  EXPECT_FALSE(line.contains("error"));
}

TEST(History, AScanIsAfterAllOfItsBatch) {
  std::string out;
  append_history_scan("a", "", 2, {7, 70, 700}, {{"a", std::int64_t{1}, 2}}, {.return_us = 3}, &out);
  const Json line = parse_line(out);
  EXPECT_EQ(line["scan"], Json::parse(R"({"from": "a", "to": "", "limit": 2})"));
  EXPECT_EQ(line["batch"], 7);
  EXPECT_TRUE(line["rank"].is_null());
  EXPECT_EQ(line["batch_time_us"], 700);
  EXPECT_EQ(line["reads"].size(), 1u);
}

}  // namespace
}  // namespace kilokv::client
