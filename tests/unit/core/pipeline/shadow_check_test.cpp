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

#include "engine/txn/kinds.hpp"
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
                 const engine::Column<std::uint8_t>& expires, engine::BatchResults* results,
                 engine::WriteColumns* writes) override {
    const bool spoils = columns.key_end.size() > 1;
    if (spoils && fault_ == Fault::lost_in_table) stale_ = ForwardingEngine::find("hot").cell;
    Status status = ForwardingEngine::execute(header, columns, expires, results, writes);
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
    events.shadow_mismatch = [this](BatchNumber number, const Status& found, const std::string& batch) {
      wrong_batch = number;
      difference = found.message();
      text = batch;
    };
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
    EXPECT_NE(difference.find(part), std::string::npos) << difference;
    // What ends the server goes to its log, which may not have keys and values.
    EXPECT_EQ(fatal->message(), "--shadow-rate: the referee differs: batch 3 was executed wrongly");
    EXPECT_EQ(wrong_batch, 3u);
    EXPECT_EQ(log.records(), records);
    EXPECT_FALSE(sink->ended());
    EXPECT_EQ(sink->slices, 0);
    EXPECT_EQ(database->status().state, DatabaseStatus::State::stopped);
    EXPECT_NE(text.find(R"({"key": "hot", "value": 1, )"), std::string::npos) << text;
    const auto later = submit(add("hot", 1));
    sim.scheduler.run_for(1000000);
    EXPECT_FALSE(later->ended());
  }

  BatchNumber wrong_batch = 0;
  std::string difference, text;
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
    if (pick(8) == 0) b.range_guard(engine::GuardKind::range_unchanged, on_false(), from(), to(), pick(200));
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
    const engine::GuardKind kind = guard_kinds_[pick(static_cast<std::uint32_t>(guard_kinds_.size()))];
    std::int64_t operand = static_cast<std::int64_t>(pick(20));
    if (takes_bytes(kind)) operand = b.value("text");
    b.guard(kind, on_false(), key, operand, compares_integers(kind) && pick(3) == 0 ? b.key(name()) : engine::kNone);
  }
  void operation(engine::ColumnsBuilder& b) {
    switch (pick(7)) {
      case 0: return b.op(OpKind::get, b.key(name()));
      case 1: return b.op(OpKind::put, b.key(name()), Operand::bytes, b.value(pick(2) == 0 ? "text" : ""));
      case 2: return b.op(OpKind::put, b.key(name()), Operand::commit_version);
      case 3: return b.op(OpKind::del, b.key(name()));
      case 4:
        return b.range_op(pick(2) == 0 ? OpKind::range_get : OpKind::range_get_reverse, from(), to(), 1 + pick(6));
      case 5: return b.range_op(OpKind::delete_range, from(), to(), 1 + pick(3));
      default: return b.op(OpKind::add, b.key(name()), Operand::integer, static_cast<std::int64_t>(pick(9)) - 4);
    }
  }

  std::mt19937_64 random_;
  const std::vector<engine::GuardKind> guard_kinds_ = engine::guard_kinds(/*with_ranges=*/false);
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
    const bool takes_small_batches = name != "serial" && name != "auto" && name != "partitioned";
    EXPECT_EQ(status.batches_parallel > 0, takes_small_batches);
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
    const engine::Column<std::uint8_t> expires(columns.size(), 1);
    if (shadow.sampled()) {
      engine::BatchResults results;
      engine::WriteColumns writes;
      EXPECT_TRUE(engine->execute(header, columns, expires, &results, &writes).ok());
      EXPECT_NE(shadow.text_of(header, columns, expires).find("\"version\": "), std::string::npos);
      const Status status = shadow.after(
          *engine, {header, columns, expires, results, writes, [this](Cell cell) { return engine->bytes_of(cell); }});
      EXPECT_TRUE(status.ok()) << status.message();
      header.first_version = results.next_version;
    }
    // Nothing is kept, either way.
    EXPECT_NE(shadow.text_of(header, columns, expires).find("\"records\": 0,"), std::string::npos);
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

}  // namespace
}  // namespace kilokv::server
