// The shadow check in the whole core: an engine that is right is never stopped, one that is wrong in any way is stopped
// before anybody hears of it.

#include "server/core/pipeline/shadow_check.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/core/fail_point.hpp"
#include "server/core/pipeline/batch_text.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Operand;
using engine::OpKind;
using engine::Outcome;

enum class Fault { none, lost_in_record, lost_in_table, wrong_outcome, wrong_read, wrong_range };

// Executes rightly, and spoils what it tells of batches that touch more than one key.
class FaultyEngine : public ForwardingEngine {
 public:
  FaultyEngine(std::unique_ptr<engine::Engine> to, Fault fault) : ForwardingEngine(std::move(to)), fault_(fault) {}

  Status execute(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                 const engine::Column<std::uint8_t>& last_try, engine::BatchResults* results,
                 engine::WriteColumns* writes) override {
    const bool spoils = columns.key_end.size() > 1;
    if (spoils && fault_ == Fault::lost_in_table) stale_ = ForwardingEngine::find("hot").cell;
    Status status = ForwardingEngine::execute(header, columns, last_try, results, writes);
    if (spoils && status.ok()) spoil(results, writes);
    return status;
  }
  engine::RecordView find(std::string_view key) const override {
    engine::RecordView view = ForwardingEngine::find(key);
    if (stale_ && key == "hot") view.cell = *stale_;
    return view;
  }

 private:
  void spoil(engine::BatchResults* results, engine::WriteColumns* writes) const {
    if (fault_ == Fault::lost_in_record) writes->clear();
    if (fault_ == Fault::wrong_outcome) results->outcome[0] = static_cast<std::uint8_t>(Outcome::overflow);
    if (fault_ == Fault::wrong_read) ++results->op_cell[1].word;
    if (fault_ == Fault::wrong_range) ++results->range_begin[0];
  }

  const Fault fault_;
  std::optional<Cell> stale_;
};

class ShadowCheckTest : public CoreFixture {
 protected:
  ShadowCheckTest() {
    options.shadow_rate = 1;
    events.shadow_mismatch = [this](const std::string& batch) { text = batch; };
  }
  void open_with(Fault fault) {
    wrap_engine = [fault](std::unique_ptr<engine::Engine> engine) {
      return std::make_unique<FaultyEngine>(std::move(engine), fault);
    };
    open();
  }
  // Writes one key, reads another, and a range of both.
  static void touch(engine::ColumnsBuilder& b) {
    b.begin();
    b.op(OpKind::add, b.key("hot"), Operand::integer, 5);
    b.op(OpKind::get, b.key("other"));
    b.range_op(OpKind::range_get, "h", "p", 10);
    b.end();
  }
  void expect_stopped_by(Fault fault, const std::string& part) {
    SCOPED_TRACE(part);
    log = MemoryLog();
    text.clear();
    fatal.reset();
    open_with(fault);
    ASSERT_EQ(run(add("hot", 1))->outcome(0), Outcome::committed);
    ASSERT_EQ(run(add("other", 2))->outcome(0), Outcome::committed);
    const std::size_t records = log.records();
    const auto sink = run(touch);
    ASSERT_TRUE(fatal);
    EXPECT_EQ(fatal->code(), StatusCode::internal);
    EXPECT_NE(fatal->message().find(part), std::string::npos) << fatal->message();
    EXPECT_EQ(log.records(), records);
    EXPECT_FALSE(sink->ended());
    EXPECT_EQ(sink->slices, 0);
    EXPECT_EQ(database->status().state, DatabaseStatus::State::stopped);
    EXPECT_NE(text.find(R"({"key": "hot", "value": 1, )"), std::string::npos) << text;
    const auto later = submit(add("hot", 1));
    sim.scheduler.run_for(1000000);
    EXPECT_FALSE(later->ended());
  }

  std::string text;
};

TEST_F(ShadowCheckTest, StopsBeforeAnythingWrongIsLoggedOrAnswered) {
  expect_stopped_by(Fault::lost_in_record, "number of writes: expected 1, got 0");
  expect_stopped_by(Fault::lost_in_table, "table, key hot: expected 6 of version");
  expect_stopped_by(Fault::wrong_outcome, "outcome: expected COMMITTED, got OVERFLOW");
  expect_stopped_by(Fault::wrong_read, "then[1] value: expected 2, got 3");
  expect_stopped_by(Fault::wrong_range, "then[2] pairs: expected 2, got 1");
}

TEST_F(ShadowCheckTest, TheFailPointIsFound) {
  ASSERT_TRUE(set_fail_points("core.execute.lost_writes=error:1").ok());
  run(add("hot", 1));
  ASSERT_TRUE(set_fail_points("").ok());
  EXPECT_TRUE(fatal);
}

TEST_F(ShadowCheckTest, NothingIsCheckedUnlessAsked) {
  options.shadow_rate = 0;
  open_with(Fault::lost_in_record);
  EXPECT_TRUE(run(touch)->ended());
  EXPECT_FALSE(fatal);
  EXPECT_EQ(database->status().shadow_batches, 0u);
}

// Everything that a transaction can be: guards of every kind, waits, both lists, values of both kinds, ranges, deletes.
class RandomTransaction {
 public:
  explicit RandomTransaction(std::uint64_t seed) : random_(seed) {}

  void operator()(engine::ColumnsBuilder& b) {
    b.begin(static_cast<std::uint8_t>(pick(2)), pick(3) * 1000);
    if (pick(2) == 0) guard(b);
    if (pick(8) == 0) b.range_guard(on_false(), from(), to(), pick(200));
    for (std::uint32_t i = pick(3); i < 3; ++i) operation(b);
    b.begin_else();
    if (pick(2) == 0) operation(b);
    b.end();
  }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::string name() { return "k" + std::to_string(pick(12)); }
  std::string from() { return "k" + std::to_string(pick(3)); }
  std::string to() { return pick(4) == 0 ? "" : "k" + std::to_string(5 + pick(4)); }
  engine::OnFalse on_false() { return pick(2) == 0 ? engine::OnFalse::wait : engine::OnFalse::fail; }
  void guard(engine::ColumnsBuilder& b) {
    const std::uint32_t key = b.key(name());
    const auto kind = static_cast<engine::GuardKind>(1 + pick(engine::kGuardKindMax - 1));
    std::int64_t operand = static_cast<std::int64_t>(pick(20));
    if (kind == engine::GuardKind::bytes_equal) operand = b.value("text");
    const bool compares = kind >= engine::GuardKind::equal && kind <= engine::GuardKind::greater_equal;
    b.guard(kind, on_false(), key, operand, compares && pick(3) == 0 ? b.key(name()) : engine::kNone);
  }
  void operation(engine::ColumnsBuilder& b) {
    switch (pick(7)) {
      case 0: return b.op(OpKind::get, b.key(name()));
      case 1: return b.op(OpKind::put, b.key(name()), Operand::bytes, b.value(pick(2) == 0 ? "text" : ""));
      case 2: return b.op(OpKind::put, b.key(name()), Operand::commit_version);
      case 3: return b.op(OpKind::del, b.key(name()));
      case 4: return b.range_op(OpKind::range_get, from(), to(), 1 + pick(6));
      case 5: return b.range_op(OpKind::delete_range, from(), to(), 1 + pick(3));
      default: return b.op(OpKind::add, b.key(name()), Operand::integer, static_cast<std::int64_t>(pick(9)) - 4);
    }
  }

  std::mt19937_64 random_;
};

TEST_F(ShadowCheckTest, AnEngineThatIsRightIsNeverStopped) {
  options.tombstone_retention_us = options.snapshot_age_us_max = 100000;
  options.checkpoint_interval_us = 200000;
  for (const std::string& name : engine::Engine::strategies()) {
    SCOPED_TRACE(name);
    strategy = name;
    log = MemoryLog();
    open();
    RandomTransaction transaction(20);
    for (int round = 0; round < 400 && !fatal; ++round) {
      for (int i = 0; i < 3; ++i) submit([&](engine::ColumnsBuilder& b) { transaction(b); });
      sim.scheduler.run_for(2000);
    }
    ASSERT_FALSE(fatal) << fatal->message() << '\n' << text;
    const DatabaseStatus status = database->status();
    EXPECT_GT(status.committed, 300u);
    EXPECT_GT(status.guard_failed, 50u);
    EXPECT_EQ(status.shadow_batches, status.batches);
    EXPECT_EQ(status.batches_parallel > 0, name != "serial" && name != "auto");  // small batches
    EXPECT_EQ(status.batches_serial + status.batches_parallel + status.batches_on_device, status.batches);
  }
}

TEST_F(ShadowCheckTest, TheSampleIsTheShareThatWasAskedFor) {
  constexpr std::uint64_t kBatches = 2000;
  for (const double share : {0.05, 0.5}) {
    options.shadow_rate = share;
    open();
    for (std::uint64_t i = 0; i < kBatches; ++i) run(add("hot", 1));
    const DatabaseStatus status = database->status();
    ASSERT_EQ(status.batches, kBatches);
    EXPECT_NEAR(static_cast<double>(status.shadow_batches), share * kBatches, 100);  // 4 standard deviations at least
  }
}

TEST_F(ShadowCheckTest, BeyondTheLimitABatchIsLeftOutAndCounted) {
  options.shadow_records_max = 4;  // what `touch` names: two keys, and both of them in its range, stored or not
  open_with(Fault::lost_in_record);
  EXPECT_FALSE(run(touch)->ended());
  EXPECT_TRUE(fatal);
  fatal.reset();
  options.shadow_records_max = 3;
  log = MemoryLog();
  open_with(Fault::lost_in_record);
  EXPECT_TRUE(run(touch)->ended());
  EXPECT_FALSE(fatal);
  EXPECT_EQ(database->status().shadow_batches, 0u);
  EXPECT_EQ(database->status().shadow_skipped, 1u);
  EXPECT_EQ(run(add("hot", 1))->outcome(0), Outcome::committed);
  EXPECT_EQ(database->status().shadow_batches, 1u);
  EXPECT_EQ(database->status().shadow_skipped, 1u);
}

// One batch after the other, without the core around it.
class ShadowLimitsTest : public ::testing::Test {
 protected:
  // Counts what is looked at.
  class CountingEngine : public ForwardingEngine {
   public:
    using ForwardingEngine::ForwardingEngine;
    void scan(std::string_view from, std::string_view to,
              const std::function<bool(const engine::RecordView&)>& visit) const override {
      ForwardingEngine::scan(from, to, [&](const engine::RecordView& view) {
        ++visited;
        return visit(view);
      });
    }
    engine::RecordView find(std::string_view key) const override {
      ++found;
      return ForwardingEngine::find(key);
    }
    mutable std::uint64_t visited = 0, found = 0;
  };

  // Records k1000 to k1999 with values of 100 bytes.
  void SetUp() override {
    auto created = engine::Engine::create({});
    ASSERT_TRUE(created.ok());
    engine.emplace(std::move(*created));
    const std::string value(100, 'v');
    for (int i = 0; i < 1000; ++i) {
      const Status status =
          engine->load("k" + std::to_string(1000 + i), header.first_version++, ValueType::bytes, 0, value);
      ASSERT_TRUE(status.ok());
    }
  }
  // A batch of `count` transactions: whether it is within the limits, and then right.
  bool checks(ShadowLimits limits, const std::function<void(engine::ColumnsBuilder&)>& build, int count = 1) {
    engine->visited = engine->found = 0;
    engine::TransactionColumns columns;
    engine::ColumnsBuilder b(&columns, engine::KeyHashSecret{});
    for (int i = 0; i < count; ++i) {
      b.begin();
      build(b);
      b.end();
    }
    ShadowCheck shadow(1, limits, sim.environment().random);
    shadow.before(*engine, columns);
    EXPECT_NE(shadow.sampled(), shadow.skipped());
    ++header.number;
    const engine::Column<std::uint8_t> last_try(columns.size(), 1);
    if (shadow.sampled()) {
      engine::BatchResults results;
      engine::WriteColumns writes;
      EXPECT_TRUE(engine->execute(header, columns, last_try, &results, &writes).ok());
      EXPECT_NE(shadow.text_of(header, columns, last_try).find("\"version\": "), std::string::npos);
      const Status status = shadow.after(
          *engine, {header, columns, last_try, results, writes, [this](Cell cell) { return engine->bytes_of(cell); }});
      EXPECT_TRUE(status.ok()) << status.message();
      header.first_version = results.next_version;
    }
    // Nothing is kept, either way.
    EXPECT_NE(shadow.text_of(header, columns, last_try).find("\"records\": 0,"), std::string::npos);
    return shadow.sampled();
  }
  static void get_rest(engine::ColumnsBuilder& b) { b.range_op(OpKind::range_get, "a", "", 1); }

  SimEnvironment sim{1};
  std::optional<CountingEngine> engine;
  engine::BatchHeader header{.number = 0, .time_us = 0, .first_version = 1};
};

TEST_F(ShadowLimitsTest, TheCopyStopsAtTheLimit) {
  EXPECT_FALSE(checks({100, 1 << 20}, get_rest));
  EXPECT_EQ(engine->visited, 101u);
  EXPECT_FALSE(checks({999, 1 << 20}, get_rest));
  EXPECT_TRUE(checks({1000, 1 << 20}, get_rest));
}

TEST_F(ShadowLimitsTest, BytesCountAsWell) {
  EXPECT_FALSE(checks({1000, 105 * 1000 - 1}, get_rest));
  EXPECT_TRUE(checks({1000, 105 * 1000}, get_rest));
  EXPECT_FALSE(checks({1000, 1050}, get_rest));
  EXPECT_EQ(engine->visited, 11u);
  const auto get = [](engine::ColumnsBuilder& b) { b.op(OpKind::get, b.key("k1500")); };
  EXPECT_FALSE(checks({1000, 104}, get));
  EXPECT_TRUE(checks({1000, 105}, get));
  const auto get_two = [](engine::ColumnsBuilder& b) {
    b.op(OpKind::get, b.key("k1500"));
    b.op(OpKind::get, b.key("k1501"));
  };
  EXPECT_FALSE(checks({1000, 209}, get_two));  // the first one is copied by then
  EXPECT_TRUE(checks({1000, 210}, get_two));
}

TEST_F(ShadowLimitsTest, EveryTimeThatItIsNamedCounts) {
  const auto get_ten = [](engine::ColumnsBuilder& b) { b.range_op(OpKind::range_get, "k1200", "k1210", 1); };
  EXPECT_TRUE(checks({1000, 1 << 20}, get_ten, 100));
  EXPECT_FALSE(checks({1000, 1 << 20}, get_ten, 101));
  const auto get_one = [](engine::ColumnsBuilder& b) { b.op(OpKind::get, b.key("k1500")); };
  EXPECT_TRUE(checks({1000, 1 << 20}, get_one, 1000));
  EXPECT_FALSE(checks({1000, 1 << 20}, get_one, 1001));
  EXPECT_EQ(engine->found, 0u);
}

// Ranges that are empty before the batch are not while it is replayed.
TEST_F(ShadowLimitsTest, WhatTheBatchMayPutIntoItsRangesCounts) {
  int next = 0;
  const auto put_and_get = [&next](engine::ColumnsBuilder& b) {
    b.op(OpKind::put, b.key("x" + std::to_string(++next)), Operand::integer, 1);
    b.range_op(OpKind::range_get, "x", "y", 1);
    b.op(OpKind::get, b.key("k1500"));
  };
  EXPECT_FALSE(checks({2 * 20 + 20 * 20 - 1, 1 << 20}, put_and_get, 20));
  EXPECT_TRUE(checks({2 * 20 + 20 * 20, 1 << 20}, put_and_get, 20));
}

TEST_F(ShadowCheckTest, TheShareIsChecked) {
  for (const double share : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    DatabaseOptions wrong;
    wrong.shadow_rate = share;
    ASSERT_FALSE(wrong.validate().ok()) << share;
    EXPECT_EQ(wrong.validate().violation()->setting, "--shadow-rate");
  }
  DatabaseOptions wrong;
  wrong.shadow_records_max = 0;
  EXPECT_EQ(wrong.validate().violation()->setting, "--shadow-records-max");
}

TEST(BatchText, HoldsTheStateAndTheTransactions) {
  engine::TransactionColumns columns;
  engine::ColumnsBuilder b(&columns, engine::KeyHashSecret{});
  b.begin(1, 2500);
  b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a\"\\"), 7);
  b.guard(engine::GuardKind::less, engine::OnFalse::fail, b.key("a"), 0, b.key("b"));
  b.range_guard(engine::OnFalse::fail, "a", "", 9);
  b.op(OpKind::get, b.key("a"));
  b.op(OpKind::put, b.key("b"), Operand::get_negated, 0);
  b.begin_else();
  b.range_op(OpKind::delete_range, "a", "c", 3);
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
  const std::uint8_t last_try[] = {0, 1};
  EXPECT_EQ(
      batch_text({.number = 3, .time_us = 50, .first_version = 8}, columns, last_try, state),
      R"({"batch": 3, "batch_time_us": 50, "first_version": 8, "tombstone_floor": 4, "records": 3, "transactions": 2}
{"key": "a", "value": {"b64": "aGVsbG8="}, "version": 5}
{"key": "b", "value": -1, "version": 6}
{"key": "c", "value": null, "version": 7}
)"
      R"({"precedence": 1, "wait_timeout_ms": 2.500, "guards": [)"
      R"({"is": "ge", "key": "a\"\\", "value": 7, "when_false": "wait"}, )"
      R"({"is": "lt", "key": "a", "other": "b", "when_false": "fail"}, )"
      R"({"is": "range_unchanged", "from": "a", "to": "", "version": 9, "when_false": "fail"}], )"
      R"("then": [{"op": "get", "key": "a"}, {"op": "put", "key": "b", "value": {"get": 0, "negate": true}}], )"
      R"("else": [{"op": "delete_range", "from": "a", "to": "c", "limit": 3}]})"
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
  const std::vector<std::uint8_t> last_try(kCount, 0);
  const std::string text = batch_text({.number = 3}, columns, last_try, state);
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
