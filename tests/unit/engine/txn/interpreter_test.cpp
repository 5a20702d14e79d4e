// Every rule of a transaction (docs/transactions.md, sections 3 to 7), one at a time, through the facade.

#include <limits>
#include <optional>
#include <string>

#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// The outcome of one guard on FAIL over: int=5@3, neg=-5, text='x'@4, gone (deleted at 6), and `none`.
Outcome verdict(GuardKind kind, std::string_view key, std::int64_t operand, std::string_view other = {}) {
  Bench bench;
  bench.load("int", 5, 3);
  bench.load("neg", -5, 2);
  bench.load_bytes("text", "x", 4);
  static_cast<void>(bench.engine->load("gone", 6, ValueType::absent, 0, {}));
  bench.add([&](ColumnsBuilder& b) {
    if (kind == GuardKind::bytes_equal) b.value("y"), b.value("x");
    const std::uint32_t k = b.key(key);
    b.guard(kind, OnFalse::fail, k, operand, other.empty() ? kNone : b.key(other));
  });
  EXPECT_TRUE(bench.run().ok());
  return bench.outcome(0);
}

constexpr Outcome kTrue = Outcome::committed, kFalse = Outcome::guard_failed, kType = Outcome::type_mismatch;

TEST(guards_on_existence_and_version) {
  EXPECT_EQ(verdict(GuardKind::exists, "int", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::exists, "text", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::exists, "gone", 0), kFalse);
  EXPECT_EQ(verdict(GuardKind::absent, "gone", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::absent, "none", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::absent, "text", 0), kFalse);
  EXPECT_EQ(verdict(GuardKind::version_equal, "int", 3), kTrue);
  EXPECT_EQ(verdict(GuardKind::version_equal, "int", 2), kFalse);
  EXPECT_EQ(verdict(GuardKind::version_equal, "gone", 6), kTrue);
  EXPECT_EQ(verdict(GuardKind::version_equal, "none", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::unchanged, "int", 3), kTrue);
  EXPECT_EQ(verdict(GuardKind::unchanged, "int", 2), kFalse);
  EXPECT_EQ(verdict(GuardKind::unchanged, "gone", 5), kFalse);
  EXPECT_EQ(verdict(GuardKind::unchanged, "none", 0), kTrue);
}

TEST(guards_that_compare) {
  EXPECT_EQ(verdict(GuardKind::equal, "int", 5), kTrue);
  EXPECT_EQ(verdict(GuardKind::equal, "int", 6), kFalse);
  EXPECT_EQ(verdict(GuardKind::not_equal, "int", 5), kFalse);
  EXPECT_EQ(verdict(GuardKind::not_equal, "none", 5), kTrue);
  EXPECT_EQ(verdict(GuardKind::less, "neg", 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::less, "neg", -5), kFalse);
  EXPECT_EQ(verdict(GuardKind::less_equal, "neg", -5), kTrue);
  EXPECT_EQ(verdict(GuardKind::greater, "int", 5), kFalse);
  EXPECT_EQ(verdict(GuardKind::greater_equal, "int", 5), kTrue);
  EXPECT_EQ(verdict(GuardKind::greater_equal, "gone", 0), kTrue);  // absent compares as 0
  EXPECT_EQ(verdict(GuardKind::greater_equal, "none", 1), kFalse);
  EXPECT_EQ(verdict(GuardKind::less, "neg", 0, "int"), kTrue);
  EXPECT_EQ(verdict(GuardKind::less, "int", 0, "neg"), kFalse);
  EXPECT_EQ(verdict(GuardKind::greater, "int", 99, "none"), kTrue);
  EXPECT_EQ(verdict(GuardKind::equal, "text", 5), kType);
  EXPECT_EQ(verdict(GuardKind::equal, "int", 0, "text"), kType);
  EXPECT_EQ(verdict(GuardKind::bytes_equal, "text", 1), kTrue);
  EXPECT_EQ(verdict(GuardKind::bytes_equal, "text", 0), kFalse);
  EXPECT_EQ(verdict(GuardKind::bytes_equal, "none", 1), kFalse);
  EXPECT_EQ(verdict(GuardKind::bytes_equal, "gone", 1), kFalse);
  EXPECT_EQ(verdict(GuardKind::bytes_equal, "int", 1), kType);
}

TEST(guards_of_time) {
  const TimeUs stamp = kStamp;
  const auto outcome = [&](GuardKind kind, std::optional<std::int64_t> in_key, TimeUs constant) {
    Bench bench;
    if (in_key) bench.load("end", *in_key, 3);
    bench.load_bytes("text", "x", 4);
    bench.add([&](ColumnsBuilder& b) { b.guard(kind, OnFalse::fail, in_key ? b.key("end") : kNone, constant); });
    EXPECT_TRUE(bench.run().ok());
    return bench.outcome(0);
  };
  struct Case {
    TimeUs time;
    Outcome before, after;
  };
  for (const Case& c : {Case{stamp - 1, kFalse, kTrue},
                        {stamp, kFalse, kTrue},
                        {stamp + 1, kTrue, kFalse},
                        {0, kFalse, kTrue},
                        {kMax, kTrue, kFalse}}) {
    EXPECT_EQ(outcome(GuardKind::time_before, {}, c.time), c.before);
    EXPECT_EQ(outcome(GuardKind::time_after, {}, c.time), c.after);
    EXPECT_EQ(outcome(GuardKind::time_before, c.time, kMax), c.before);  // with a key, the constant has no meaning
    EXPECT_EQ(outcome(GuardKind::time_after, c.time, 0), c.after);
  }
  EXPECT_EQ(outcome(GuardKind::time_after, -1, 0), kTrue);
  EXPECT_EQ(verdict(GuardKind::time_after, "none", kMax), kTrue);  // absent counts as 0
  EXPECT_EQ(verdict(GuardKind::time_before, "gone", kMax), kFalse);
  EXPECT_EQ(verdict(GuardKind::time_before, "text", 0), kType);
  EXPECT_EQ(verdict(GuardKind::time_after, "text", 0), kType);
}

TEST(a_guard_of_time_shows_the_cell_of_its_key) {
  Bench bench;
  const TimeUs stamp = kStamp;
  bench.load("end", stamp, 7);
  bench.add([](ColumnsBuilder& b) { b.guard(GuardKind::time_before, OnFalse::fail, b.key("end"), 0); });
  bench.add([&](ColumnsBuilder& b) { b.guard(GuardKind::time_before, OnFalse::fail, kNone, stamp); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::guard_failed);
  EXPECT_EQ(describe(*bench.engine, bench.results.guard_cell[0]), std::to_string(stamp) + "@7");
  EXPECT_EQ(bench.outcome(1), Outcome::guard_failed);
  EXPECT_EQ(bench.results.guard_cell[1].tag, 0u);
}

TEST(first_false_guard_decides_and_else_runs) {
  Bench bench;
  bench.load("a", 1, 7);
  bench.add([](ColumnsBuilder& b) {
    const auto a = b.key("a"), x = b.key("x");
    b.guard(GuardKind::equal, OnFalse::fail, a, 1);
    b.guard(GuardKind::equal, OnFalse::fail, a, 2);
    b.guard(GuardKind::equal, OnFalse::wait, a, 3);
    b.op(OpKind::put, x, Operand::integer, 1);
    b.begin_else();
    b.op(OpKind::put, x, Operand::integer, 2);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::guard_failed);
  EXPECT_EQ(bench.failure(0), "1.1");
  EXPECT_EQ(describe(*bench.engine, bench.results.guard_cell[0]), "1@7");
  EXPECT_EQ(bench.written(), "x=2@100");
  EXPECT_EQ(bench.results.wrote[0], 1);
}

TEST(operations_and_own_writes) {
  Bench bench;
  bench.load("a", 10, 5);
  bench.add([](ColumnsBuilder& b) {
    const auto a = b.key("a"), n = b.key("n");
    b.op(OpKind::get, a);                           // 0: 10@5
    b.op(OpKind::add, a, Operand::integer, -3);     // 1
    b.op(OpKind::get, a);                           // 2: 7 own
    b.op(OpKind::put, n, Operand::get, 0);          // 3: 10, the value of the first get
    b.op(OpKind::add, n, Operand::get_negated, 2);  // 4: 3
    b.op(OpKind::del, a);                           // 5
    b.op(OpKind::get, a);                           // 6: absent, own
    b.op(OpKind::del, a);                           // 7: nothing to delete
    b.op(OpKind::put, a, Operand::integer, 1);      // 8
    b.op(OpKind::put, b.key("v"), Operand::commit_version);
    b.op(OpKind::put, b.key("t"), Operand::batch_time);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::committed);
  EXPECT_EQ(bench.read(0), "10@5");
  EXPECT_EQ(bench.read(2), "7@100 own");
  EXPECT_EQ(bench.read(6), "-@100 own");
  EXPECT_EQ(bench.results.op_flags[7], 0);
  EXPECT_EQ(bench.written(), "a=7@100 n=10@100 n=3@100 a=-@100 a=1@100 v=100@100 t=1763600000000000@100");
  EXPECT_EQ(bench.get("a"), "1@100");
  EXPECT_EQ(bench.get("n"), "3@100");
}

TEST(absent_sources) {
  Bench bench;
  bench.load("a", 1);
  bench.add([](ColumnsBuilder& b) {
    const auto none = b.key("none"), a = b.key("a");
    b.op(OpKind::get, none);
    b.op(OpKind::add, a, Operand::get, 0);          // adds 0: a write
    b.op(OpKind::add, a, Operand::get_negated, 0);  // and again
    b.op(OpKind::put, b.key("n"), Operand::get, 0);
    b.op(OpKind::put, a, Operand::get, 0);  // deletes
    b.op(OpKind::add, b.key("zero"), Operand::integer, 0);
  });
  bench.add([](ColumnsBuilder& b) {
    b.op(OpKind::del, b.key("none"));
    b.op(OpKind::del, b.key("n"));
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.written(), "a=1@100 a=1@100 a=-@100 zero=0@100");
  EXPECT_EQ(bench.outcome(1), Outcome::committed);
  EXPECT_EQ(bench.results.wrote[1], 0);
  EXPECT_EQ(bench.get("none"), "-");
  EXPECT_EQ(bench.get("n"), "-");
  EXPECT_EQ(bench.get("zero"), "0@100");
  EXPECT_EQ(bench.engine->stats().records, 1u);
  EXPECT_EQ(bench.engine->stats().tombstones, 1u);
}

// The whole transaction is undone and named.
void expect_undone(const std::function<void(ColumnsBuilder&)>& failing, Outcome outcome, std::string_view failure) {
  Bench bench;
  bench.load("big", kMax);
  bench.load("small", kMin);
  bench.load("one", 1);
  bench.load_bytes("text", "x");
  const Hash128 before = bench.engine->state_hash();
  bench.add([&](ColumnsBuilder& b) {
    b.op(OpKind::put, b.key("one"), Operand::integer, 2);
    b.op(OpKind::put, b.key("new"), Operand::integer, 3);
    b.range_op(OpKind::delete_range, "b", "z", 10);
    failing(b);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), outcome);
  EXPECT_EQ(bench.failure(0), failure);
  EXPECT_EQ(bench.results.wrote[0], 0);
  EXPECT_EQ(bench.written(), "");
  EXPECT_EQ(bench.results.pair_cell.size(), 0u);
  EXPECT_EQ(bench.get("one"), "1@1");
  EXPECT_EQ(bench.get("new"), "-");
  EXPECT_EQ(bench.get("text"), "'x'@1");
  EXPECT_TRUE(bench.engine->state_hash() == before);
  EXPECT_TRUE(bench.engine->before_images().empty());
}

TEST(overflow_and_type_mismatch_undo_everything) {
  const auto put_back = [](ColumnsBuilder& b, std::string_view key, std::int64_t value) {
    b.op(OpKind::put, b.key(key), Operand::integer, value);
  };
  expect_undone(
      [&](ColumnsBuilder& b) { put_back(b, "big", kMax), b.op(OpKind::add, b.key("big"), Operand::integer, 1); },
      Outcome::overflow, "2.4");
  expect_undone(
      [&](ColumnsBuilder& b) { put_back(b, "small", kMin), b.op(OpKind::add, b.key("small"), Operand::integer, -1); },
      Outcome::overflow, "2.4");
  expect_undone(
      [&](ColumnsBuilder& b) {
        put_back(b, "small", kMin);
        b.op(OpKind::get, b.key("small"));
        b.op(OpKind::put, b.key("other"), Operand::get_negated, 4);
      },
      Outcome::overflow, "2.5");
  expect_undone(
      [&](ColumnsBuilder& b) {
        const auto text = b.key("text");
        b.op(OpKind::put, text, Operand::bytes, b.value("y"));
        b.op(OpKind::add, text, Operand::integer, 1);
      },
      Outcome::type_mismatch, "2.4");
  expect_undone(
      [&](ColumnsBuilder& b) {
        const auto text = b.key("text");
        b.op(OpKind::put, text, Operand::bytes, b.value("y"));
        b.op(OpKind::get, text);
        b.op(OpKind::add, b.key("other"), Operand::get, 4);
      },
      Outcome::type_mismatch, "2.5");
}

TEST(bytes_are_copied_and_replaced) {
  Bench bench;
  bench.load_bytes("text", "old", 2);
  bench.add([](ColumnsBuilder& b) {
    const auto text = b.key("text");
    b.op(OpKind::get, text);
    b.op(OpKind::put, b.key("copy"), Operand::get, 0);
    b.op(OpKind::put, text, Operand::bytes, b.value("new"));
  });
  bench.add([](ColumnsBuilder& b) { b.op(OpKind::get, b.key("text")); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.read(0), "'old'@2");
  EXPECT_EQ(bench.read(3), "'new'@100");
  EXPECT_EQ(bench.written(), "copy='old'@100 text='new'@100");
  bench.engine->release_through(bench.batch);
  EXPECT_EQ(bench.get("copy"), "'old'@100");
  EXPECT_EQ(bench.get("text"), "'new'@100");
}

TEST(else_operations_that_overflow_are_the_outcome) {
  Bench bench;
  bench.load("big", kMax);
  bench.add([](ColumnsBuilder& b) {
    const auto big = b.key("big");
    b.guard(GuardKind::equal, OnFalse::fail, big, 0);
    b.begin_else();
    b.op(OpKind::get, big);
    b.op(OpKind::add, big, Operand::get, 0);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::overflow);
  EXPECT_EQ(bench.failure(0), "3.1");
}

TEST(ranges) {
  Bench bench;
  for (const char* key : {"a", "b", "c", "d", "e"}) bench.load(key, key[0], 5);
  bench.add([](ColumnsBuilder& b) {
    b.op(OpKind::del, b.key("b"));
    b.op(OpKind::put, b.key("bb"), Operand::integer, 1);
    b.range_op(OpKind::range_get, "a", "d", 3);     // a, bb (own), c; the limit counts live keys
    b.range_op(OpKind::delete_range, "bb", "", 2);  // bb, c
    b.range_op(OpKind::range_get, "", "", 10);      // a, d, e
  });
  EXPECT_TRUE(bench.run().ok());
  std::string keys;
  for (std::size_t i = 0; i < bench.results.pair_cell.size(); ++i) {
    keys += std::string(bench.results.pair_key(i)) + (bench.results.pair_flags[i] != 0 ? "* " : " ");
  }
  EXPECT_EQ(keys, "a bb* c bb* c a d e ");
  EXPECT_EQ(bench.results.range_begin[1], 3u);
  EXPECT_EQ(bench.results.range_end[1], 5u);
  EXPECT_EQ(bench.written(), "b=-@100 bb=1@100 bb=-@100 c=-@100");
}

TEST(ranges_in_reverse) {
  Bench bench;
  for (const char* key : {"a", "b", "c", "d", "e"}) bench.load(key, key[0], 5);
  bench.add([](ColumnsBuilder& b) {
    b.op(OpKind::del, b.key("c"));
    b.op(OpKind::put, b.key("cc"), Operand::integer, 1);
    b.range_op(OpKind::range_get_reverse, "b", "e", 2);   // d, cc (own); the limit counts live keys, from the end
    b.range_op(OpKind::range_get_reverse, "", "cc", 9);   // b, a: the end is not in the range
    b.range_op(OpKind::range_get_reverse, "d", "", 9);    // e, d: the beginning is
    b.range_op(OpKind::range_get_reverse, "c", "cc", 9);  // nothing
  });
  EXPECT_TRUE(bench.run().ok());
  std::string keys;
  for (std::size_t i = 0; i < bench.results.pair_cell.size(); ++i) {
    keys += std::string(bench.results.pair_key(i)) + (bench.results.pair_flags[i] != 0 ? "* " : " ");
  }
  EXPECT_EQ(keys, "d cc* b a e d ");
  EXPECT_EQ(bench.results.range_begin[3], bench.results.range_end[3]);
  EXPECT_EQ(bench.written(), "c=-@100 cc=1@100");
}

TEST(range_guards_see_deletes_and_the_floor) {
  Bench bench;
  bench.load("a", 1, 5);
  static_cast<void>(bench.engine->load("b", 9, ValueType::absent, 0, {}));
  const auto guard = [&](std::string_view from, std::string_view to, Version since) {
    bench.add([&](ColumnsBuilder& b) { b.range_guard(GuardKind::range_unchanged, OnFalse::fail, from, to, since); });
    EXPECT_TRUE(bench.run().ok());
    return bench.outcome(0);
  };
  EXPECT_EQ(guard("a", "", 9), kTrue);
  EXPECT_EQ(guard("a", "", 8), kFalse);
  EXPECT_EQ(guard("a", "b", 5), kTrue);
  bench.engine->drop_tombstones(9, [](std::string_view) {});
  EXPECT_EQ(guard("a", "b", 5), kFalse);
  EXPECT_EQ(guard("a", "", 9), kTrue);
}

}  // namespace
}  // namespace kilokv::test
