// Validation: every limit by its name. Also hostile columns, which must be refused without a read out of bounds (run it
// with the address sanitizer: -DKILOKV_SANITIZE=address,undefined).

#include "engine/txn/validate.hpp"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{1, 2};

// Transactions 0 to 3; number 3 has everything.
TransactionColumns valid() {
  TransactionColumns c;
  ColumnsBuilder b(&c, kSecret);
  for (int t = 0; t < 3; ++t) {
    b.begin();
    b.op(OpKind::add, b.key("k" + std::to_string(t)), Operand::integer, 1);
    b.end();
  }
  b.begin(1, 1000);
  const std::uint32_t key = b.key("key"), other = b.key("other");
  b.guard(GuardKind::less, OnFalse::wait, key, 0, other);
  b.guard(GuardKind::bytes_equal, OnFalse::fail, key, b.value("value"));
  b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", "b", 7);
  b.guard(GuardKind::time_before, OnFalse::fail, kNone, 7);
  b.guard(GuardKind::time_after, OnFalse::wait, key, -7);
  b.op(OpKind::get, key);
  b.op(OpKind::put, other, Operand::get, 0);
  b.op(OpKind::put, other, Operand::bytes, b.value("w"));
  b.expire(Expiry::at, 7);
  b.begin_else();
  b.op(OpKind::get, other);
  b.op(OpKind::add, key, Operand::get_negated, 0);
  b.expire(Expiry::after, 7);
  b.range_op(OpKind::range_get, "a", "", 10);
  b.end();
  return c;
}

struct Case {
  std::string field;
  std::string setting;
  std::function<void(TransactionColumns&)> spoil;
};

void expect_refused(const Case& wrong, const TransactionLimits& limits = {}) {
  TransactionColumns columns = valid();
  wrong.spoil(columns);
  const Status status = validate(columns, limits);
  if (status.ok() || status.violation() == nullptr) {
    FAIL(wrong.field + " to be refused");
    return;
  }
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_EQ(status.violation()->field, wrong.field);
  EXPECT_EQ(status.violation()->setting, wrong.setting);
  EXPECT_FALSE(status.violation()->limit.empty());
}

TEST(valid_columns_pass) { EXPECT_EQ(validate(valid(), {}).message(), ""); }

TEST(each_invariant_is_checked) {
  for (const Case& wrong : {
           Case{"transactions[3].guards[0].kind", "", [](auto& c) { c.guard_kind[0] = kGuardKindMax + 1; }},
           {"transactions[3].guards[0].kind", "", [](auto& c) { c.guard_kind[0] = 0; }},
           {"transactions[3].guards[0].on_false", "", [](auto& c) { c.guard_on_false[0] = 2; }},
           {"transactions[3].guards[0].key", "", [](auto& c) { c.guard_key[0] = 99; }},
           {"transactions[3].guards[0].other_key", "", [](auto& c) { c.guard_other[0] = 99; }},
           {"transactions[3].guards[1].other_key", "", [](auto& c) { c.guard_other[1] = 0; }},
           {"transactions[3].guards[1].bytes", "", [](auto& c) { c.guard_operand[1] = -1; }},
           {"transactions[3].guards[1].bytes", "", [](auto& c) { c.guard_operand[1] = 2; }},
           {"transactions[3].guards[2].version", "", [](auto& c) { c.guard_operand[2] = std::int64_t{1} << 60; }},
           {"transactions[3].guards[2].version", "", [](auto& c) { c.guard_operand[2] = -1; }},
           {"transactions[3].guards[2].range", "", [](auto& c) { c.guard_key[2] = 2; }},
           {"transactions[3].guards[2].limit", "", [](auto& c) { c.range_limit[0] = 1; }},
           {"transactions[3].guards[2].range.to", "", [](auto& c) { c.range_bytes[1] = 'a'; }},
           {"transactions[3].guards[3].on_false", "", [](auto& c) { c.guard_on_false[3] = 1; }},
           {"transactions[3].guards[4].on_false", "", [](auto& c) { c.guard_kind[4] = 13; }},
           {"transactions[3].guards[3].time_us", "", [](auto& c) { c.guard_operand[3] = -1; }},
           {"transactions[3].guards[3].key", "", [](auto& c) { c.guard_kind[3] = 1; }},
           {"transactions[3].guards[3].other_key", "", [](auto& c) { c.guard_other[3] = 0; }},
           {"transactions[3].guards[4].key", "", [](auto& c) { c.guard_key[4] = 99; }},
           {"transactions[0].then[0].kind", "", [](auto& c) { c.op_kind[0] = kOpKindMax + 1; }},
           {"transactions[0].then[0].operand", "", [](auto& c) { c.op_operand[0] = 6; }},
           {"transactions[0].then[0].operand.bytes", "", [](auto& c) { c.op_operand[0] = 1; }},
           {"transactions[1].then[0].operand.get", "", [](auto& c) { c.op_operand[1] = 2, c.op_value[1] = 0; }},
           {"transactions[2].then[0].key", "", [](auto& c) { c.op_key[2] = kNone; }},
           {"transactions[3].then[0].operand", "", [](auto& c) { c.op_operand[3] = 1; }},
           {"transactions[3].then[1].operand.get", "", [](auto& c) { c.op_value[4] = 1; }},
           {"transactions[3].then[2].operand.bytes", "", [](auto& c) { c.op_value[5] = 2; }},
           {"transactions[3].else[1].operand.get", "", [](auto& c) { c.op_value[7] = -1; }},
           {"transactions[3].else[2].limit", "--range-keys-max", [](auto& c) { c.range_limit[1] = 10001; }},
           {"transactions[3].else[2].limit", "--range-keys-max", [](auto& c) { c.range_limit[1] = 0; }},
           {"transactions[3].wait_timeout_us", "--wait-timeout-max", [](auto& c) { c.wait_timeout_us[3] = -1; }},
           {"transactions[3].expire_runs_else", "", [](auto& c) { c.expire_runs_else[3] = 2; }},
           {"columns.expire_runs_else", "", [](auto& c) { c.expire_runs_else.pop_back(); }},
           {"transactions[3].then[2].expires_at_us", "", [](auto& c) { c.expiry_us[0] = 0; }},
           {"transactions[3].else[1].ttl_us", "--ttl-max", [](auto& c) { c.expiry_us[1] = 0; }},
           {"transactions[3].else[1].ttl_us", "--ttl-max", [](auto& c) { c.expiry_us[1] = kNever; }},
           {"transactions[3].then[0].expires_at_us", "", [](auto& c) { c.expiry_op[0] = 3; }},
           {"columns.expiry_operation", "", [](auto& c) { c.expiry_op[1] = c.expiry_op[0]; }},
           {"columns.expiry_operation", "", [](auto& c) { c.expiry_op[1] = 99; }},
           {"columns.expiry_kind", "", [](auto& c) { c.expiry_kind[0] = 2; }},
           {"columns.expiry_kind", "", [](auto& c) { c.expiry_kind.pop_back(); }},
           {"columns.expiry_us", "", [](auto& c) { c.expiry_us.pop_back(); }},
           {"columns.guard_ends", "", [](auto& c) { c.guard_end[3] = 4; }},
           {"columns.guard_ends", "", [](auto& c) { c.guard_end[1] = 9; }},
           {"columns.then_ends", "", [](auto& c) { c.then_end[3] = 99; }},
           {"columns.else_ends", "", [](auto& c) { c.else_end[0] = 99; }},
           {"columns.key_ends", "", [](auto& c) { c.key_bytes.pop_back(); }},
           {"columns.key_ids", "", [](auto& c) { c.key_id.pop_back(); }},
           {"columns.value_ends", "", [](auto& c) { c.value_end[0] = 99; }},
           {"columns.range_from_ends", "", [](auto& c) { c.range_from_end[1] = 99; }},
           {"columns.range_to_ends", "", [](auto& c) { c.range_to_end.pop_back(); }},
           {"columns.precedence", "", [](auto& c) { c.precedence.clear(); }},
           {"columns.guard_operand", "", [](auto& c) { c.guard_operand.resize(1); }},
           {"columns.operation_value", "", [](auto& c) { c.op_value.resize(1); }},
           {"transactions", "", [](auto& c) { c.clear(); }},
       }) {
    expect_refused(wrong);
  }
}

// A client can tell a limit from a field that is missing, and from one that does not go together with another one.
TEST(a_refusal_has_its_own_reason) {
  struct Refusal {
    ErrorReason reason;
    std::function<void(TransactionColumns&)> spoil;
  };
  for (const Refusal& refusal : {
           Refusal{ErrorReason::missing_field, [](auto& c) { c.clear(); }},
           {ErrorReason::missing_field, [](auto& c) { c.else_end[0] = c.then_end[0] = 0; }},
           {ErrorReason::not_allowed, [](auto& c) { c.guard_other[1] = 0; }},
           {ErrorReason::not_allowed, [](auto& c) { c.guard_on_false[3] = 1; }},
           {ErrorReason::out_of_range, [](auto& c) { c.guard_operand[3] = -1; }},
           {ErrorReason::out_of_range, [](auto& c) { c.guard_other[0] = 99; }},
           {ErrorReason::not_allowed, [](auto& c) { c.op_operand[0] = 1; }},
           {ErrorReason::not_allowed, [](auto& c) { c.op_operand[3] = 1; }},
           {ErrorReason::not_allowed, [](auto& c) { c.range_limit[0] = 1; }},
           {ErrorReason::out_of_range, [](auto& c) { c.range_limit[1] = 0; }},
       }) {
    TransactionColumns columns = valid();
    refusal.spoil(columns);
    const Status status = validate(columns, {});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.reason(), refusal.reason);
  }
}

TEST(each_limit_names_its_setting) {
  TransactionLimits limits;
  limits.key_bytes_max = 4;
  expect_refused({"transactions[3].guards[0].other_key", "--key-bytes-max", [](auto&) {}}, limits);
  expect_refused({"transactions[1].then[0].key", "--key-bytes-max", [](auto& c) { c.key_end[0] = 4; }});
  limits = {};
  limits.value_bytes_max = 4;
  expect_refused({"transactions[3].guards[1].bytes", "--value-bytes-max", [](auto&) {}}, limits);
  limits = {};
  limits.guards_max = 2;
  expect_refused({"transactions[3].guards", "--guards-max", [](auto&) {}}, limits);
  limits = {};
  limits.operations_max = 5;
  expect_refused({"transactions[3].operations", "--operations-max", [](auto&) {}}, limits);
  limits = {};
  limits.request_transactions_max = 3;
  expect_refused({"transactions", "--request-transactions-max", [](auto&) {}}, limits);
  limits = {};
  limits.wait_timeout_us_max = 999;
  expect_refused({"transactions[3].wait_timeout_us", "--wait-timeout-max", [](auto&) {}}, limits);
}

// A list of every kind of operation. A PUT or an ADD at kUser may name a GET at kFirstGet or kSecondGet, and nothing
// else.
enum Operation : std::uint32_t { kFirstGet, kPut, kAdd, kDelete, kRangeGet, kDeleteRange, kSecondGet, kUser, kLateGet };
constexpr std::uint32_t kOperations = kLateGet + 1;

void add_mixed_list(ColumnsBuilder* b, OpKind kind, Operand operand, std::int64_t named) {
  const std::uint32_t key = b->key("key");
  b->op(OpKind::get, key);
  b->op(OpKind::put, key, Operand::integer, 1);
  b->op(OpKind::add, key, Operand::integer, 1);
  b->op(OpKind::del, key);
  b->range_op(OpKind::range_get, "a", "b", 1);
  b->range_op(OpKind::delete_range, "a", "b", 1);
  b->op(OpKind::get, key);
  b->op(kind, key, operand, named);
  b->op(OpKind::get, key);
}

// Transaction 1 has the mixed list, and its other list, like those of the transactions around it, consists of GETs:
// whoever looks in a wrong list finds one.
TransactionColumns with_mixed_list(bool in_else, OpKind kind, Operand operand, std::int64_t named) {
  TransactionColumns c;
  ColumnsBuilder b(&c, kSecret);
  const auto add_gets = [&b] {
    for (std::uint32_t i = 0; i < 2 * kOperations; ++i) b.op(OpKind::get, b.key("key"));
  };
  for (std::uint32_t t = 0; t < 3; ++t) {
    b.begin();
    for (const bool is_else : {false, true}) {
      if (is_else) b.begin_else();
      if (t == 1 && is_else == in_else) {
        add_mixed_list(&b, kind, operand, named);
      } else {
        add_gets();
      }
    }
    b.end();
  }
  return c;
}

TEST(an_operand_names_an_earlier_get_of_its_list_and_nothing_else) {
  constexpr std::int64_t k32Bits = std::int64_t{1} << 32;
  std::vector<std::int64_t> names = {-k32Bits, k32Bits + kFirstGet, k32Bits + kSecondGet, INT64_MIN, INT64_MAX};
  // Everything in the list and well beyond both of its ends.
  for (std::int64_t name = -4 * std::int64_t{kOperations}; name < 8 * std::int64_t{kOperations}; ++name) {
    names.push_back(name);
  }
  for (const bool in_else : {false, true}) {
    for (const OpKind kind : {OpKind::put, OpKind::add}) {
      for (const Operand operand : {Operand::get, Operand::get_negated}) {
        for (const std::int64_t name : names) {
          const Status status = validate(with_mixed_list(in_else, kind, operand, name), {});
          if (name == kFirstGet || name == kSecondGet) {
            EXPECT_EQ(status.message(), "");
            continue;
          }
          if (status.ok() || status.violation() == nullptr) {
            FAIL("operand " + std::to_string(name) + " to be refused");
            continue;
          }
          EXPECT_EQ(status.violation()->field,
                    "transactions[1]." + std::string(in_else ? "else" : "then") + "[7].operand.get");
          EXPECT_EQ(status.violation()->limit, "the index of an earlier GET of the same list");
          EXPECT_EQ(status.violation()->actual, std::to_string(name));
        }
      }
    }
  }
}

// Each of the ranges is within its own limit.
TEST(ranges_together_are_limited) {
  const auto ranges = [](int then_count, int else_count) {
    return [=](auto& c) {
      ColumnsBuilder b(&c, kSecret);
      b.begin();
      b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", "b", 1);
      for (int i = 0; i < then_count; ++i) b.range_op(OpKind::delete_range, "a", "b", 10000);
      b.begin_else();
      for (int i = 0; i < else_count; ++i) b.range_op(OpKind::range_get, "a", "b", 10000);
      b.end();
    };
  };
  expect_refused({"transactions[4].operations", "--transaction-keys-max", ranges(5, 6)});
  TransactionColumns good;
  ranges(5, 5)(good);
  ranges(10, 0)(good);
  EXPECT_TRUE(validate(good, TransactionLimits{}).ok());
}

// A value is no operand of an ADD, and a PUT needs a value that is there.
TEST(an_operand_of_bytes_is_refused_for_its_own_reason) {
  struct Wrong {
    std::size_t operation;
    OpKind kind;
    std::int64_t value;
    const char* limit;
    const char* actual;
  };
  for (const Wrong& wrong : {Wrong{0, OpKind::add, 0, "an integer operand for ADD", "bytes"},
                             {0, OpKind::add, 2, "an integer operand for ADD", "bytes"},
                             {0, OpKind::put, 2, "an index below 2 values", "2"},
                             {5, OpKind::put, -1, "an index below 2 values", "-1"}}) {
    TransactionColumns columns = valid();
    columns.op_kind[wrong.operation] = static_cast<std::uint8_t>(wrong.kind);
    columns.op_operand[wrong.operation] = static_cast<std::uint8_t>(Operand::bytes);
    columns.op_value[wrong.operation] = wrong.value;
    const Status status = validate(columns, {});
    ASSERT_TRUE(status.violation() != nullptr);
    EXPECT_EQ(status.violation()->limit, wrong.limit);
    EXPECT_EQ(status.violation()->actual, wrong.actual);
  }
}

TEST(empty_transaction_is_refused) {
  expect_refused({"transactions[4]", "", [](auto& c) {
                    ColumnsBuilder b(&c, kSecret);
                    b.begin();
                    b.end();
                  }});
}

TEST(long_key_is_refused) {
  expect_refused({"transactions[4].then[0].key", "--key-bytes-max", [](auto& c) {
                    ColumnsBuilder b(&c, kSecret);
                    b.begin();
                    b.op(OpKind::get, b.key(std::string(2048, 'k')));
                    b.end();
                  }});
}

TEST(range_used_twice_or_never_is_refused) {
  expect_refused({"transactions[4]", "", [](auto& c) {
                    ColumnsBuilder b(&c, kSecret);
                    b.begin();
                    b.range_op(OpKind::range_get, "a", "b", 1);
                    b.range_op(OpKind::range_get, "a", "b", 1);
                    b.end();
                    c.op_key.back() -= 1;
                  }});
  expect_refused({"columns.range_limit", "", [](auto& c) {
                    c.range_from_end.push_back(c.range_to_end.back());
                    c.range_to_end.push_back(c.range_to_end.back());
                    c.range_limit.push_back(1);
                  }});
}

// Whatever is done to the columns: refused or accepted, never a read out of bounds.
TEST(random_damage_is_survived) {
  const auto seed = static_cast<unsigned>(20261120);
  std::mt19937 random(seed);
  const auto damage = [&](auto& column) {
    if (column.empty()) return;
    const std::size_t i = random() % column.size();
    switch (random() % 4) {
      case 0: column.resize(random() % (column.size() + 3)); break;
      case 1: std::fill_n(reinterpret_cast<unsigned char*>(&column[i]), sizeof(column[i]), random() & 0xff); break;
      default: {
        unsigned char& byte = reinterpret_cast<unsigned char*>(&column[i])[random() % sizeof(column[i])];
        byte = static_cast<unsigned char>(byte ^ 1u << random() % 8);
      }
    }
  };
  std::size_t refused = 0;
  for (int round = 0; round < 50000; ++round) {
    TransactionColumns c = valid();
    for (auto blows = 1 + random() % 3; blows > 0; --blows) {
      switch (random() % 20) {
        case 0: damage(c.precedence); break;
        case 1: damage(c.wait_timeout_us); break;
        case 2: damage(c.guard_end); break;
        case 3: damage(c.then_end); break;
        case 4: damage(c.else_end); break;
        case 5: damage(c.key_id); break;
        case 6: damage(c.key_end); break;
        case 7: damage(c.guard_kind); break;
        case 8: damage(c.guard_on_false); break;
        case 9: damage(c.guard_key); break;
        case 10: damage(c.guard_other); break;
        case 11: damage(c.guard_operand); break;
        case 12: damage(c.op_kind); break;
        case 13: damage(c.op_operand); break;
        case 14: damage(c.op_key); break;
        case 15: damage(c.op_value); break;
        case 16: damage(c.range_from_end); break;
        case 17: damage(c.range_to_end); break;
        case 18: damage(c.range_limit); break;
        default: damage(c.value_end); break;
      }
    }
    refused += validate(c, {}).ok() ? 0 : 1;
  }
  EXPECT_TRUE(refused > 20000);
}

}  // namespace
}  // namespace kilokv::engine
