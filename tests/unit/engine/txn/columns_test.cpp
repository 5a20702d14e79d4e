// Columns: append of whole and partial batches, rebasing, packing.

#include "engine/txn/columns.hpp"

#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/txn/validate.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{1, 2};

// One transaction in words, independent of where its columns stand.
std::string describe(const TransactionColumns& c, std::size_t t) {
  std::string text = std::to_string(c.precedence[t]) + "/" + std::to_string(c.wait_timeout_us[t]) + "/" +
                     std::to_string(c.expire_runs_else[t]);
  const auto range = [&](std::uint32_t i) {
    return std::string(c.range_from(i)) + ".." + std::string(c.range_to(i)) + "x" + std::to_string(c.range_limit[i]);
  };
  for (std::uint32_t g = c.guard_begin(t); g < c.guard_end[t]; ++g) {
    const auto kind = static_cast<GuardKind>(c.guard_kind[g]);
    text += " if " + std::to_string(c.guard_kind[g]) + "," + std::to_string(c.guard_on_false[g]) + " ";
    text += uses_range(kind) ? range(c.guard_key[g]) : std::string(c.key_of_guard(g));
    if (c.guard_other[g] != kNone) text += " other " + std::string(c.key(c.guard_other[g]));
    text += takes_bytes(kind) ? " '" + std::string(c.value(c.guard_operand[g])) + "'"
                              : " " + std::to_string(c.guard_operand[g]);
  }
  for (std::uint32_t i = c.then_begin(t); i < c.else_end[t]; ++i) {
    text += i < c.then_end[t] ? " then " : " else ";
    text += std::to_string(c.op_kind[i]) + "," + std::to_string(c.op_operand[i]) + " ";
    const bool ranged = uses_range(static_cast<OpKind>(c.op_kind[i]));
    text +=
        ranged ? range(c.op_key[i]) : std::string(c.key(c.op_key[i])) + "#" + std::to_string(c.key_id[c.op_key[i]].low);
    const bool bytes = c.op_operand[i] == static_cast<std::uint8_t>(Operand::bytes);
    text += bytes ? " '" + std::string(c.value(c.op_value[i])) + "'" : " " + std::to_string(c.op_value[i]);
    for (std::size_t x = 0; x < c.expiry_op.size(); ++x) {
      if (c.expiry_op[x] != i) continue;
      text += " expires " + std::to_string(c.expiry_kind[x]) + "," + std::to_string(c.expiry_us[x]);
    }
  }
  return text;
}

// Transactions of every shape; the first and every seventh share key 0, which is far from the others' keys.
TransactionColumns sample(std::size_t n) {
  TransactionColumns columns;
  ColumnsBuilder b(&columns, kSecret);
  const std::uint32_t shared = b.key("shared");
  for (std::size_t t = 0; t < n; ++t) {
    const std::string name = std::to_string(t);
    b.begin(static_cast<std::uint8_t>(t % 5), static_cast<DurationUs>(t) * 1000, t % 3 == 1);
    const std::uint32_t key = b.key("key" + name);
    if (t % 2 == 0) b.guard(GuardKind::less, OnFalse::wait, key, -5, t % 7 == 0 ? shared : kNone);
    if (t % 3 == 0) b.guard(GuardKind::bytes_equal, OnFalse::fail, key, b.value("guard value " + name));
    if (t % 6 == 1) b.guard(GuardKind::time_after, OnFalse::wait, t % 12 == 1 ? kNone : key, static_cast<TimeUs>(t));
    if (t % 4 == 0) b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a" + name, "b", t);
    b.op(OpKind::get, key);
    b.op(OpKind::put, t % 7 == 0 ? shared : key, Operand::bytes, b.value("value " + name));
    if (t % 4 == 2) b.expire(Expiry::at, static_cast<TimeUs>(t));
    if (t % 5 == 0) b.range_op(OpKind::delete_range, name, "", 7);
    if (t % 2 == 1) {
      b.begin_else();
      b.op(OpKind::add, key, Operand::integer, -static_cast<std::int64_t>(t));
      if (t % 3 == 0) b.expire(Expiry::after, static_cast<TimeUs>(t));
    }
    b.end();
  }
  return columns;
}

void expect_same(const TransactionColumns& met, std::size_t at, const TransactionColumns& from, std::size_t begin,
                 std::size_t end) {
  for (std::size_t t = begin; t < end; ++t) EXPECT_EQ(describe(met, at + t - begin), describe(from, t));
}

TEST(keep_some_transactions) {
  const TransactionColumns from = sample(60);
  for (const std::size_t step : {1u, 2u, 3u, 7u, 59u}) {
    std::vector<std::uint32_t> kept;
    for (std::size_t t = step - 1; t < from.size(); t += step) kept.push_back(static_cast<std::uint32_t>(t));
    TransactionColumns some = from;
    some.keep(kept);
    EXPECT_EQ(some.size(), kept.size());
    EXPECT_EQ(some.value_bytes.size(), from.value_bytes.size());
    for (std::size_t i = 0; i < kept.size(); ++i) expect_same(some, i, from, kept[i], kept[i] + 1);
    TransactionColumns copy;
    copy.append(some, 0, some.size());
    expect_same(copy, 0, some, 0, some.size());
  }
}

TEST(append_whole_batches) {
  const TransactionColumns a = sample(40), b = sample(9);
  TransactionColumns all;
  all.append(a, 0, a.size());
  all.append(b, 0, b.size());
  all.append(a, 0, a.size());
  ASSERT_EQ(all.size(), std::size_t{89});
  expect_same(all, 0, a, 0, 40);
  expect_same(all, 40, b, 0, 9);
  expect_same(all, 49, a, 0, 40);
  EXPECT_EQ(validate(all, {}).message(), "");
  EXPECT_EQ(all.memory_bytes(), 2 * a.memory_bytes() + b.memory_bytes());
}

TEST(append_every_part_of_a_batch) {
  const TransactionColumns from = sample(24);
  for (std::size_t begin = 0; begin <= from.size(); ++begin) {
    for (std::size_t end = begin; end <= from.size(); ++end) {
      TransactionColumns to = sample(3);
      to.append(from, begin, end);
      ASSERT_EQ(to.size(), 3 + end - begin);
      expect_same(to, 3, from, begin, end);
      ASSERT_EQ(validate(to, {}).message(), "");
      if (kilokv::test::has_failed()) return;
    }
  }
}

// A transaction that refers to the first key and to the last of very many takes these along, not all between.
TEST(append_copies_what_is_referred_to) {
  TransactionColumns from;
  ColumnsBuilder b(&from, kSecret);
  std::vector<std::uint32_t> keys;
  for (int i = 0; i < 10000; ++i) keys.push_back(b.key("key" + std::to_string(i)));
  b.begin();
  b.guard(GuardKind::equal, OnFalse::fail, keys.front(), 0, keys.back());
  b.op(OpKind::put, keys.back(), Operand::bytes, b.value("v"));
  b.end();
  b.begin();
  b.op(OpKind::get, keys[5000]);
  b.end();
  TransactionColumns to;
  to.append(from, 0, 1);
  EXPECT_EQ(describe(to, 0), describe(from, 0));
  EXPECT_TRUE(to.key_end.size() <= 3);
}

TEST(pack_and_unpack) {
  const TransactionColumns from = sample(30);
  TransactionColumns to = sample(2);
  for (std::size_t t = 0; t < from.size(); ++t) {
    unpack_transaction(pack_transaction(from, t), &to);
  }
  expect_same(to, 2, from, 0, from.size());
  EXPECT_EQ(validate(to, {}).message(), "");
}

// 100,000 of them may be parked.
TEST(a_packed_withdrawal_is_small) {
  TransactionColumns from;
  ColumnsBuilder b(&from, kSecret);
  b.begin(0, 1000000);
  const std::uint32_t source = b.key("account-00000001"), target = b.key("account-00000002");
  b.guard(GuardKind::greater_equal, OnFalse::wait, source, 100);
  b.op(OpKind::add, source, Operand::integer, -100);
  b.op(OpKind::add, target, Operand::integer, 100);
  b.end();
  EXPECT_TRUE(pack_transaction(from, 0).size() < 256);
}

TEST(clear_keeps_capacity) {
  TransactionColumns columns = sample(100);
  const std::size_t capacity = columns.key_bytes.capacity();
  columns.clear();
  EXPECT_TRUE(columns.empty());
  EXPECT_EQ(columns.memory_bytes(), std::size_t{0});
  EXPECT_EQ(columns.key_bytes.capacity(), capacity);
}

}  // namespace
}  // namespace kilokv::engine
