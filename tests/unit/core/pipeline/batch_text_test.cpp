#include "server/core/pipeline/batch_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kilokv::server {
namespace {

using engine::Operand;
using engine::OpKind;

TEST(BatchText, HoldsTheStateAndTheTransactions) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, engine::KeyHashSecret{});
  b.begin(1, 2500, true);
  b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a\"\\"), 7);
  b.guard(engine::GuardKind::less, engine::OnFalse::fail, b.key("a"), 0, b.key("b"));
  b.range_guard(engine::GuardKind::range_unchanged, engine::OnFalse::fail, "a", "", 9);
  b.guard(engine::GuardKind::time_before, engine::OnFalse::fail, b.key("b"), 0);
  b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, engine::kNone, 77);
  b.op(OpKind::get, b.key("a"));
  b.op(OpKind::put, b.key("b"), Operand::get_negated, 0);
  b.begin_else();
  b.range_op(OpKind::delete_range, "a", "c", 3);
  b.range_op(OpKind::range_get_reverse, "d", "e", 4);
  b.end();
  b.begin(0, 5000);
  b.guard(engine::GuardKind::bytes_equal, engine::OnFalse::fail, b.key("a"), b.value("hi"));
  b.op(OpKind::put, b.key(std::string_view("\0\xff", 2)), Operand::bytes, b.value("four"));
  b.op(OpKind::add, b.key("b"), Operand::integer, -3);
  b.op(OpKind::put, b.key("c"), Operand::batch_time);
  b.end();
  engine::ModelState state;
  state.tombstone_floor = 4;
  state.records["a"] = {std::string("hello"), 5};
  state.records["b"] = {std::int64_t{-1}, 6};
  state.records["c"] = {{}, 7};
  const std::uint8_t expires[] = {0, 1};
  EXPECT_EQ(
      batch_text({.number = 3, .time_us = 50, .first_version = 8}, columns, expires, state),
      R"({"batch": 3, "batch_time_us": 50, "first_version": 8, "tombstone_floor": 4, "records": 3, "transactions": 2}
{"key": "a", "value": {"b64": "aGVsbG8="}, "version": 5}
{"key": "b", "value": -1, "version": 6}
{"key": "c", "value": null, "version": 7}
)"
      R"({"precedence": 1, "wait_timeout_ms": 2.500, "expire_runs_else": true, "guards": [)"
      R"({"is": "ge", "key": "a\"\\", "value": 7, "when_false": "wait"}, )"
      R"({"is": "lt", "key": "a", "other": "b", "when_false": "fail"}, )"
      R"({"is": "range_unchanged", "from": "a", "to": "", "version": 9, "when_false": "fail"}, )"
      R"({"is": "time_before", "key": "b", "when_false": "fail"}, )"
      R"({"is": "time_after", "time_us": 77, "when_false": "wait"}], )"
      R"("then": [{"op": "get", "key": "a"}, {"op": "put", "key": "b", "value": {"get": 0, "negate": true}}], )"
      R"("else": [{"op": "delete_range", "from": "a", "to": "c", "limit": 3}, )"
      R"({"op": "range_get", "from": "d", "to": "e", "limit": 4, "reverse": true}]})"
      "\n"
      R"({"precedence": 0, "wait_timeout_ms": 0.000, "guards": [)"
      R"({"is": "bytes_eq", "key": "a", "value": {"b64": "aGk="}, "when_false": "fail"}], )"
      R"("then": [{"op": "put", "key": {"b64": "AP8="}, "value": {"b64": "Zm91cg=="}}, )"
      R"({"op": "add", "key": "b", "delta": -3}, {"op": "put", "key": "c", "value": {"batch_time": true}}], )"
      R"("else": []})"
      "\n");
}

TEST(BatchText, IsBoundedAndSaysWhatIsLeftOut) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, engine::KeyHashSecret{});
  engine::ModelState state;
  const std::string value(std::size_t{1} << 20, 'v');
  constexpr std::size_t kCount = 20;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::string key = "k" + std::to_string(i);
    b.begin();
    b.op(OpKind::put, b.key(key), Operand::bytes, b.value(value));
    b.end();
    state.records[key] = {value, 5};
  }
  const std::vector<std::uint8_t> expires(kCount, 0);
  const std::string text = batch_text({.number = 3}, columns, expires, state);
  EXPECT_LT(text.size(), kBatchTextBytesMax + 1000);
  EXPECT_GT(text.size(), kBatchTextBytesMax / 2);
  const auto count = [&text](const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  const std::size_t records = count("{\"key\": "), transactions = count("{\"precedence\": ");
  EXPECT_GT(records, 0u);
  EXPECT_GT(transactions, 0u);
  EXPECT_TRUE(text.ends_with("}\n{\"records_left_out\": " + std::to_string(kCount - records) +
                             ", \"transactions_left_out\": " + std::to_string(kCount - transactions) + "}\n"));
}

}  // namespace
}  // namespace kilokv::server
