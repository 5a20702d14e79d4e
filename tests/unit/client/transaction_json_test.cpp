#include "client/cli/transaction_json.hpp"

#include <gtest/gtest.h>

#include "client/cli/commands.hpp"
#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/encode.hpp"
#include "client/lib/src/kinds.hpp"
#include "kilokv/history.hpp"
#include "tests/support/json.hpp"

namespace kilokv::client {
namespace {

// The history line of what was read, reduced to the transaction itself.
Json read_back(const std::string& line) {
  Batch batch;
  const auto appended = append_transaction(line, &batch);
  EXPECT_TRUE(appended) << appended.error().message;
  std::string out;
  append_history(batch, Results(), 0, {}, &out);
  return Json::parse(out).without(
      {"session", "request", "index", "attempts", "invoke_us", "return_us", "outcome", "error"});
}

TEST(TransactionJson, WhatIsWrittenCanBeRead) {
  const std::string line = R"json({"precedence": 2, "wait_timeout_ms": 250, "expire_runs_else": true,
    "guards": [{"is": "exists", "key": "a", "when_false": "fail"}, {"is": "absent", "key": "b", "when_false": "wait"},
               {"is": "ge", "key": "a", "value": -9, "when_false": "fail"},
               {"is": "ne", "key": "a", "other": {"b64": "AP8="}, "when_false": "fail"},
               {"is": "version", "key": "a", "version": 3, "when_false": "fail"},
               {"is": "unchanged", "key": "a", "version": 12, "when_false": "fail"},
               {"is": "bytes_eq", "key": "a", "value": {"b64": "aGk="}, "when_false": "fail"},
               {"is": "range_unchanged", "from": "f", "to": "g", "version": 13, "when_false": "fail"},
               {"is": "time_before", "key": "a", "when_false": "fail"},
               {"is": "time_after", "time_us": 9223372036854775807, "when_false": "wait"}],
    "then": [{"op": "get", "key": "a"}, {"op": "put", "key": "b", "value": {"b64": "dg=="}},
             {"op": "add", "key": "b", "delta": {"get": 0, "negate": true}},
             {"op": "put", "key": "b", "value": {"get": 0}}, {"op": "add", "key": "b", "delta": -4},
             {"op": "put", "key": "a", "value": {"commit_version": true}},
             {"op": "put", "key": "a", "value": {"batch_time": true}}],
    "else": [{"op": "delete", "key": "a"}, {"op": "range_get", "from": "a", "to": "", "limit": 7},
             {"op": "delete_range", "from": "a", "to": "b", "limit": 8},
             {"op": "range_get", "from": "c", "to": "d", "limit": 9, "reverse": true}]})json";
  EXPECT_EQ(read_back(line), Json::parse(line));
}

// Adds guards of the kind, in each form that it has. Returns whether the test knows the kind.
bool add_guards(v1::GuardKind kind, Batch* batch) {
  switch (kind) {
    case v1::GUARD_KIND_EXISTS: batch->guard_exists(batch->key("k")); return true;
    case v1::GUARD_KIND_ABSENT: batch->guard_absent(batch->key("k"), OnFalse::wait); return true;
    case v1::GUARD_KIND_EQUAL:
    case v1::GUARD_KIND_NOT_EQUAL:
    case v1::GUARD_KIND_LESS:
    case v1::GUARD_KIND_LESS_EQUAL:
    case v1::GUARD_KIND_GREATER:
    case v1::GUARD_KIND_GREATER_EQUAL: {
      batch->guard(batch->key("k"), static_cast<Compare>(kind), -9);
      const Key key = batch->key("k");
      batch->guard_keys(key, static_cast<Compare>(kind), batch->key("other"));
      return true;
    }
    case v1::GUARD_KIND_VERSION_EQUAL: batch->guard_version(batch->key("k"), 7); return true;
    case v1::GUARD_KIND_UNCHANGED: batch->guard_unchanged(batch->key("k"), 8); return true;
    case v1::GUARD_KIND_BYTES_EQUAL: batch->guard_bytes(batch->key("k"), "value"); return true;
    case v1::GUARD_KIND_RANGE_UNCHANGED: batch->guard_range_unchanged("a", "b", 9); return true;
    case v1::GUARD_KIND_TIME_BEFORE:
      batch->guard_time_before(9);
      batch->guard_time_before(batch->key("k"));
      return true;
    case v1::GUARD_KIND_TIME_AFTER:
      batch->guard_time_after(9);
      batch->guard_time_after(batch->key("k"), OnFalse::wait);
      return true;
    default: return false;
  }
}

// The same for an operation.
bool add_operation(v1::OperationKind kind, Batch* batch) {
  switch (kind) {
    case v1::OPERATION_KIND_GET: batch->get(batch->key("k")); return true;
    case v1::OPERATION_KIND_PUT: batch->put(batch->key("k"), std::string_view("value")); return true;
    case v1::OPERATION_KIND_DELETE: batch->del(batch->key("k")); return true;
    case v1::OPERATION_KIND_ADD: batch->add(batch->key("k"), std::int64_t{-4}); return true;
    case v1::OPERATION_KIND_RANGE_GET: batch->range_get("a", "b", 5); return true;
    case v1::OPERATION_KIND_DELETE_RANGE: batch->delete_range("a", "", 6); return true;
    case v1::OPERATION_KIND_RANGE_GET_REVERSE: batch->range_get_reverse("a", "b", 5); return true;
    default: return false;
  }
}

// Writes a history line of the batch, and reads the line as a batch again. Expects the same columns.
void expect_to_come_back(const Batch& batch) {
  std::string line;
  append_history(batch, Results(), 0, {}, &line);
  Batch read;
  const auto appended = append_transaction(line, &read);
  ASSERT_TRUE(appended) << line << appended.error().message;
  EXPECT_EQ(read.columns().message.SerializeAsString(), batch.columns().message.SerializeAsString()) << line;
}

TEST(TransactionJson, EveryKindOfGuardComesBack) {
  for (int number = 1; number <= v1::GuardKind_MAX; ++number) {
    const auto kind = static_cast<v1::GuardKind>(number);
    SCOPED_TRACE(v1::GuardKind_Name(kind));
    Batch batch;
    batch.begin();
    ASSERT_TRUE(add_guards(kind, &batch)) << "add the kind to the switch above";
    batch.end();
    expect_to_come_back(batch);
    v1::Transaction row;
    fill_transaction(batch, 0, &row);
    for (const v1::Guard& guard : row.guards()) {
      EXPECT_EQ(guard.kind(), kind);
      const bool has_operand = guard.operand_case() != v1::Guard::OPERAND_NOT_SET;
      if (kGuardTraits[number].operand == GuardOperand::time_or_key) {
        EXPECT_EQ(has_operand, guard.key().empty());
        EXPECT_FALSE(guard.has_range());
        continue;
      }
      EXPECT_EQ(guard.has_range(), guard.key().empty());
      EXPECT_EQ(has_operand, kGuardTraits[number].operand != GuardOperand::nothing);
    }
  }
}

TEST(TransactionJson, EveryKindOfOperationComesBack) {
  for (int number = 1; number <= v1::OperationKind_MAX; ++number) {
    const auto kind = static_cast<v1::OperationKind>(number);
    SCOPED_TRACE(v1::OperationKind_Name(kind));
    Batch batch;
    batch.begin();
    ASSERT_TRUE(add_operation(kind, &batch)) << "add the kind to the switch above";
    batch.end();
    expect_to_come_back(batch);
    v1::Transaction row;
    fill_transaction(batch, 0, &row);
    ASSERT_EQ(row.then_size(), 1);
    EXPECT_EQ(row.then(0).kind(), kind);
    EXPECT_EQ(row.then(0).has_range(), row.then(0).key().empty());
    EXPECT_EQ(row.then(0).has_operand(), !kOperationTraits[number].operand.empty());
  }
}

TEST(TransactionJson, AStringIsAByteValue) {
  const Json written = read_back(R"({"then": [{"op": "put", "key": "k", "value": "v"}]})");
  EXPECT_EQ(written["then"][0]["value"], Json::parse(R"({"b64": "dg=="})"));
}

TEST(TransactionJson, ALineOfACancelledTransactionCanBeRead) {
  Batch batch;
  EXPECT_TRUE(append_transaction(
      R"({"request": 1, "then": [{"op": "get", "key": "k"}], "outcome": null, "error": "CANCELLED", "not_run": true, "cancelled": true})",
      &batch));
}

TEST(TransactionJson, AHeaderIsPassedOver) {
  Batch batch;
  EXPECT_FALSE(append_transaction(R"({"format": "kilokv-history-1", "config": {}, "initial": []})", &batch).value());
  EXPECT_TRUE(batch.empty());
}

TEST(TransactionJson, ErrorsNameTheField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "this is not JSON"},
      {"[]", "not a JSON object"},
      {R"({"thne": []})", "unknown field \"thne\""},
      {R"({"then": [{"op": "add", "key": "a", "delta": 1, "delta": 5}]})", "\"delta\" is there twice"},
      {R"({"then": [], "else": [], "then": []})", "\"then\" is there twice"},
      {R"({"then": 3})", "\"then\" is not a list"},
      {R"({"then": [{"op": "get", "key": "a"}, {"op": "get"}]})", "then[1]: \"key\" is missing"},
      {R"({"then": [{"op": "jump", "key": "a"}]})", "unknown \"op\": \"jump\"; known: get put delete add"},
      {R"({"then": [{"op": "add", "key": "a", "delta": 1.5}]})", "\"delta\" is not an integer"},
      {R"({"then": [{"op": "add", "key": "a", "delta": 9223372036854775808}]})", "\"delta\" is not an integer"},
      {R"({"then": [{"op": "range_get", "from": "a"}]})", "\"limit\" is missing"},
      {R"({"then": [{"op": "range_get", "from": "a", "limit": 1, "reverse": 1}]})", "\"reverse\" is not true or false"},
      {R"({"then": [{"op": "delete_range", "from": "a", "limit": 1, "reverse": true}]})", "reverse"},
      {R"({"guards": [{"key": "a", "is": "eq", "value": "x"}]})", "guards[0]: \"value\" is not an integer"},
      {R"({"guards": [{"is": "time_after"}]})", "guards[0]: the guard needs either \"time_us\" or \"key\""},
      {R"({"guards": [{"is": "time_after", "key": "a", "time_us": 1}]})", "either \"time_us\" or \"key\""},
      {R"({"guards": [{"is": "time_before", "key": "a", "when_false": "wait"}]})", "\"time_before\" must not wait"},
      {R"({"guards": [{"is": "time_after", "time_us": "soon"}]})", "time_us"},
      {R"({"guards": [{"key": "a", "is": "near"}]})", "unknown guard \"is\": \"near\"; known: exists absent eq"},
      {R"({"guards": [{"key": {"b64": "*"}, "is": "exists"}]})", "\"key\" is neither"},
      {R"({"guards": [{"key": "a", "is": "exists", "when_false": "maybe"}]})", "\"when_false\""},
      {R"({"guards": [{"key": "a", "is": "ge", "value": 1, "when_flase": "wait"}]})", "unknown field \"when_flase\""},
      {R"({"guards": [{"key": "a", "is": "ge", "value": 1, "other": "b"}]})", "exclude each other"},
      {R"({"guards": [{"key": "a", "is": 3}]})", "\"is\" is not a string"},
      {R"({"then": [{"op": "get", "key": "a", "limit": 3}]})", "unknown field \"limit\""},
      {R"({"then": [{"op": "get", "key": "a"}, {"op": "put", "key": "a", "value": {"get": 0, "negated": true}}]})",
       "unknown field \"negated\""},
      {R"({"then": [{"op": "put", "key": "a", "value": {"get": 0}}]})", "then[0]: \"get\": 0 is not the index"},
      {R"({"then": [{"op": "get", "key": "a"}], "else": [{"op": "put", "key": "a", "value": {"get": 0}}]})",
       "else[0]: \"get\": 0 is not the index"},
      {R"({"then": [{"op": "add", "key": "a", "delta": "x"}]})", "\"delta\" is a byte value"},
      {R"({"then": [{"op": "put", "key": "a", "value": {"commit_version": false}}]})", "\"value\" must be an integer"},
      {R"({"then": [{"op": "put", "key": "a", "value": {"b64": "?"}}]})", "with base64 in it"},
      {R"({"precedence": 256, "then": []})", "\"precedence\" is not an integer from 0 to 255: 256"},
      {R"({"wait_timeout_ms": -1, "then": []})", "\"wait_timeout_ms\""},
      {R"({"expire_runs_else": 1, "then": []})", "\"expire_runs_else\" is not true or false: 1"},
  };
  for (const auto& [line, expected] : cases) {
    Batch batch;
    const auto appended = append_transaction(line, &batch);
    ASSERT_FALSE(appended.ok()) << line;
    EXPECT_NE(appended.error().message.find(expected), std::string::npos) << line << ": " << appended.error().message;
  }
}

TEST(PrefixEnd, IsTheFirstKeyAfterAllThatBeginWithIt) {
  EXPECT_EQ(prefix_end("stock:"), "stock;");
  EXPECT_EQ(prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(prefix_end("\xff"), "");
  EXPECT_EQ(prefix_end(""), "");
}

}  // namespace
}  // namespace kilokv::client
