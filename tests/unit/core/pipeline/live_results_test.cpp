#include "server/core/pipeline/live_results.hpp"

#include <gtest/gtest.h>

#include <array>

#include "engine/base/key_hash.hpp"
#include "tests/unit/core/sessions/recorded_results.hpp"

namespace kilokv::server {
namespace {

using engine::BatchResults;
using engine::ColumnsBuilder;
using engine::FailedIn;
using engine::GuardKind;
using engine::kNone;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;
using engine::Outcome;

constexpr engine::KeyHashSecret kSecret{1, 2};

// Only the byte values of an engine: handle n stands for "value n".
class ByteValues : public engine::Engine {
 public:
  std::string_view bytes_of(Cell cell) const override { return values_.at(cell.word); }

  Status execute(const engine::BatchHeader&, const engine::TransactionColumns&, const engine::Column<std::uint8_t>&,
                 BatchResults*, engine::WriteColumns*) override {
    return {};
  }
  void prepare() override {}
  const engine::ExecutionReport& execution() const override { return report_; }
  engine::EngineDevice device() const override { return {}; }
  const std::vector<engine::BeforeImage>& before_images() const override { return images_; }
  bool would_wait(const engine::TransactionColumns&, std::size_t, TimeUs) const override { return false; }
  TimeUs next_time(const engine::TransactionColumns&, std::size_t, TimeUs) const override { return kNever; }
  TimeUs next_expiry() const override { return kNever; }
  void visit_due(TimeUs, std::size_t, const std::function<void(std::string_view, TimeUs)>&) const override {}
  void release_through(BatchNumber) override {}
  void retain(Cell) override {}
  void release(Cell) override {}
  engine::RecordView find(std::string_view) const override { return {}; }
  void scan(std::string_view, std::string_view, const std::function<bool(const engine::RecordView&)>&) const override {}
  void scan_reverse(std::string_view, std::string_view,
                    const std::function<bool(const engine::RecordView&)>&) const override {}
  Status load(std::string_view, Version, ValueType, std::int64_t, std::string_view, TimeUs) override { return {}; }
  void prefetch(std::string_view) override {}
  void drop_tombstones(Version, const std::function<void(std::string_view)>&, std::size_t) override {}
  Version tombstone_floor() const override { return 0; }
  Hash128 state_hash() const override { return {}; }
  Hash128 compute_state_hash() const override { return {}; }
  std::size_t take_dirty(std::size_t, const std::function<void(const engine::RecordView&)>&) override { return 0; }
  std::size_t dirty_count() const override { return 0; }
  void clear_dirty() override {}
  engine::EngineStats stats() const override { return {}; }
  engine::EngineMemory memory() const override { return {}; }

 private:
  std::array<std::string, 3> values_{"value 0", "value 1", "value 2"};
  std::vector<engine::BeforeImage> images_;
  engine::ExecutionReport report_;
};

// A batch of six transactions, results filled by hand:
//   0 committed: gets x and y, adds, gets y again (its own write), reads a range
//   1 guard failed: else-gets y       2 wait expired       3 overflow       4 a range guard failed
//   5 wait expired, with expire_runs_else: else-adds x, gets y
class LiveResultsTest : public testing::Test {
 protected:
  LiveResultsTest() {
    build();
    results_.reset(columns_);
    decide(0, Outcome::committed, FailedIn::none, kNone, true);
    decide(1, Outcome::guard_failed, FailedIn::guards, 1, true);
    decide(2, Outcome::wait_expired, FailedIn::guards, 0, false);
    decide(3, Outcome::overflow, FailedIn::then_ops, 0, false);
    decide(4, Outcome::guard_failed, FailedIn::guards, 0, false);
    decide(5, Outcome::wait_expired, FailedIn::guards, 0, true);
    fill_reads();
  }

  void build() {
    ColumnsBuilder builder(&columns_, kSecret);
    builder.begin();
    builder.op(OpKind::get, builder.key("x"));
    builder.op(OpKind::get, builder.key("y"));
    builder.op(OpKind::add, builder.key("y"), Operand::integer, 1);
    builder.op(OpKind::get, builder.key("y"));
    builder.range_op(OpKind::range_get, "a", "c", 10);
    builder.begin_else();
    builder.op(OpKind::get, builder.key("never"));
    builder.end();
    builder.begin();
    builder.guard(GuardKind::exists, OnFalse::fail, builder.key("x"), 0);
    builder.guard(GuardKind::equal, OnFalse::fail, builder.key("y"), 5);
    builder.op(OpKind::get, builder.key("never"));
    builder.begin_else();
    builder.op(OpKind::del, builder.key("x"));
    builder.op(OpKind::get, builder.key("y"));
    builder.end();
    builder.begin(0, 100);
    builder.guard(GuardKind::greater, OnFalse::wait, builder.key("z"), 5);
    builder.op(OpKind::get, builder.key("never"));
    builder.end();
    builder.begin();
    builder.op(OpKind::add, builder.key("x"), Operand::integer, 1);
    builder.op(OpKind::get, builder.key("never"));
    builder.end();
    builder.begin();
    builder.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", "b", 3);
    builder.op(OpKind::get, builder.key("never"));
    builder.end();
    builder.begin(0, 100, true);
    builder.guard(GuardKind::greater, OnFalse::wait, builder.key("z"), 5);
    builder.op(OpKind::get, builder.key("never"));
    builder.begin_else();
    builder.op(OpKind::add, builder.key("x"), Operand::integer, 1);
    builder.op(OpKind::get, builder.key("y"));
    builder.end();
  }

  void decide(std::size_t t, Outcome outcome, FailedIn failed_in, std::uint32_t failed_index, bool wrote) {
    results_.outcome[t] = static_cast<std::uint8_t>(outcome);
    results_.failed_in[t] = static_cast<std::uint8_t>(failed_in);
    results_.failed_index[t] = failed_index;
    results_.rank[t] = static_cast<std::uint32_t>(10 + t);
    results_.wrote[t] = wrote ? 1 : 0;
  }

  void fill_reads() {
    const Cell five{5, make_tag(70, ValueType::integer)}, bytes{2, make_tag(71, ValueType::bytes)};
    results_.op_cell[0] = {0, make_tag(9, ValueType::absent)};
    results_.op_cell[1] = five;
    results_.op_cell[3] = {6, make_tag(1010, ValueType::integer)};
    results_.op_flags[3] = BatchResults::kOwnWrite;
    results_.range_begin[0] = 0;
    results_.range_end[0] = 2;
    results_.pair_key_bytes.assign({'a', 'b'});
    results_.pair_key_end.assign({1, 2});
    results_.pair_cell.assign({bytes, five});
    results_.pair_flags.assign({0, BatchResults::kOwnWrite});
    results_.guard_cell[1] = bytes;
    results_.op_cell[columns_.else_end[1] - 1] = five;
    results_.op_cell[columns_.else_end[5] - 1] = five;
    results_.guard_cell[5] = results_.guard_cell[2] = {static_cast<std::uint64_t>(-3), make_tag(8, ValueType::integer)};
  }

  ExecutedBatch batch() const { return {&columns_, &results_, &engine_, {20, 777, 1000}}; }

  engine::TransactionColumns columns_;
  BatchResults results_;
  ByteValues engine_;
};

const char* const kCommitted =
    " outcome=1 failed=0:-1 batch=20/20 rank=10 time=777 version=1010 read0 x=0:0:@9 read1 y=1:5:@70"
    " read3 y=1:6:@null read4 a=2:0:value 2@71 read4 b=1:5:@null";
const char* const kGuardFailed =
    " outcome=2 failed=1:1 batch=20/20 rank=11 time=777 version=1011 guard y=2:0:value 2@71 read1 y=1:5:@70";

TEST_F(LiveResultsTest, ShowsARunOfTransactions) {
  const LiveSlice slice(batch(), 0, 6, 100);
  EXPECT_EQ(slice.size(), 6u);
  const std::vector<std::string> lines = lines_of(slice);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], std::string("100") + kCommitted);
  EXPECT_EQ(lines[1], std::string("101") + kGuardFailed);
  EXPECT_EQ(lines[2], "102 outcome=3 failed=1:0 batch=20/20 rank=12 time=777 version=null guard z=1:-3:@8");
  EXPECT_EQ(lines[3], "103 outcome=4 failed=2:0 batch=20/20 rank=13 time=777 version=null");
  EXPECT_EQ(lines[4],
            "104 outcome=2 failed=1:0 batch=20/20 rank=14 time=777 version=null");  // a range has no value to show
  EXPECT_EQ(lines[5],
            "105 outcome=3 failed=1:0 batch=20/20 rank=15 time=777 version=1015 guard z=1:-3:@8 read1 y=1:5:@70");
}

TEST_F(LiveResultsTest, ShowsChosenTransactionsWithTheirOwnIndexAndAdmission) {
  const std::array<LiveItem, 3> items{LiveItem{2, 4, 18, false}, LiveItem{0, 5, 19, true}, LiveItem{3, 9, 20, false}};
  EXPECT_EQ(
      lines_of(LiveSlice(batch(), items)),
      (std::vector<std::string>{"4 outcome=3 failed=1:0 batch=20/18 rank=12 time=777 version=null guard z=1:-3:@8",
                                "5 outcome=0 cancelled failed=0:-1 batch=20/19 rank=0 time=777 version=null",
                                "9 outcome=4 failed=2:0 batch=20/20 rank=13 time=777 version=null"}));
}

TEST_F(LiveResultsTest, AnEmptyListShowsNothing) {
  EXPECT_TRUE(lines_of(LiveSlice(batch(), std::span<const LiveItem>())).empty());
}

}  // namespace
}  // namespace kilokv::server
