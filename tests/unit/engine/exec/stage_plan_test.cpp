// Which records of a batch are staged, and how its classes are cut. Whatever the batch, each part holds the
// transactions that it is for. The records that are named most often come first, together with all records that their
// transactions name.

#include "engine/exec/papers/stage_plan.hpp"

#include <set>
#include <string>

#include "engine/stm/order.hpp"
#include "tests/unit/engine/edge_batches.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{1, 2};

// A batch and its records, as an engine has them.
struct Planned {
  TransactionColumns columns;
  ColumnsBuilder builder{&columns, kSecret};
  RecordStore store{kSecret, 0, 1 << 20};
  BatchHeader header;
  BatchResolver resolver;
  BatchRecords records;
  EqualWords equal;
  StageClock clock;
  Column<std::uint8_t> expires;
  std::vector<std::uint32_t> order;
  StagePlan plan;

  void make(std::uint32_t slots) {
    EXPECT_TRUE(resolver.resolve(columns, 1, &store).ok());
    order_by_precedence(columns.precedence.data(), columns.size(), &order);
    records.gather(columns, resolver, store);
    plan.make({header, columns, expires, order, 0, store, resolver, equal, clock}, records, slots);
  }
  std::set<std::uint32_t> records_of(std::uint32_t position) const {
    const std::uint32_t t = order.empty() ? position : order[position];
    std::set<std::uint32_t> of;
    const auto use = [&](std::uint32_t key) { of.insert(records.record_of_key()[key]); };
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t]; ++g) {
      if (columns.guard_key[g] != kNone) use(columns.guard_key[g]);
      if (columns.guard_other[g] != kNone) use(columns.guard_other[g]);
    }
    for (std::uint32_t i = t == 0 ? 0 : columns.else_end[t - 1]; i < columns.else_end[t]; ++i) use(columns.op_key[i]);
    of.erase(records.absent_record());
    return of;
  }
  bool is_staged(std::uint32_t record) const { return plan.slot_of().empty() || plan.slot_of()[record] != kNone; }
  std::uint8_t precedence_at(std::uint32_t position) const {
    return columns.precedence[order.empty() ? position : order[position]];
  }
};

// Of a half: its transactions are of one class, in order, and where they belong.
void check_half(const Planned& planned, std::uint32_t begin, std::size_t half) {
  const StagePlan& plan = planned.plan;
  const auto position_at = [&](std::uint32_t place) { return plan.order().empty() ? place : plan.order()[place]; };
  const std::uint32_t hot_end = plan.hot_end()[half];
  EXPECT_TRUE(begin <= hot_end && hot_end <= plan.class_end()[half]);
  for (std::uint32_t place = begin; place < plan.class_end()[half]; ++place) {
    const std::uint32_t position = position_at(place);
    EXPECT_EQ(planned.precedence_at(position), planned.precedence_at(position_at(begin)));
    if (place != begin && place != hot_end) EXPECT_TRUE(position > position_at(place - 1));
    std::size_t staged = 0;
    const std::set<std::uint32_t> records = planned.records_of(position);
    for (const std::uint32_t record : records) staged += planned.is_staged(record) ? 1 : 0;
    if (plan.behind()[half] != 0) {
      EXPECT_TRUE(staged > 0 && staged < records.size());
      EXPECT_EQ(hot_end, begin);
    } else {
      EXPECT_EQ(staged, place < hot_end ? records.size() : 0u);
    }
  }
}

TEST(parts_are_what_they_are_said_to_be) {
  std::size_t behind = 0, beside = 0, hot = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Planned planned;
    EdgeBatches batches(&random, draw_edge_shape(&random));
    batches.generate(&planned.builder, 1 + random.below(batches.shape().transactions_max), 5);
    const auto slots = static_cast<std::uint32_t>(random.below(12));
    planned.make(slots);
    const StagePlan& plan = planned.plan;
    EXPECT_TRUE(plan.staged() <= slots);
    for (std::uint32_t slot = 0; slot < plan.record_of().size(); ++slot) {
      EXPECT_EQ(plan.slot_of()[plan.record_of()[slot]], slot);
    }
    EXPECT_EQ(plan.class_end().back(), planned.columns.size());
    std::set<std::uint32_t> positions(plan.order().begin(), plan.order().end());
    EXPECT_TRUE(plan.order().empty() || positions.size() == planned.columns.size());
    std::uint32_t begin = 0;
    for (std::size_t half = 0; half < plan.class_end().size(); ++half) {
      check_half(planned, begin, half);
      (plan.behind()[half] != 0 ? behind : beside) += plan.class_end()[half] - plan.hot_end()[half];
      if (plan.behind()[half] == 0) hot += plan.hot_end()[half] - begin;
      begin = plan.class_end()[half];
    }
  }
  EXPECT_TRUE(behind > 100 && beside > 100 && hot > 100);
}

// One key of all, one of its own for each, and others that nobody shares.
TEST(what_is_named_most_comes_with_its_neighbours) {
  Planned planned;
  for (int t = 0; t < 40; ++t) {
    planned.builder.begin();
    if (t % 2 == 0) planned.builder.op(OpKind::put, planned.builder.key("hot"), Operand::integer, 1);
    planned.builder.op(OpKind::put, planned.builder.key("own" + std::to_string(t)), Operand::integer, 1);
    planned.builder.end();
  }
  planned.make(21);
  EXPECT_EQ(planned.plan.staged(), 21u);
  EXPECT_EQ(planned.plan.class_end().size(), 1u);
  EXPECT_EQ(planned.plan.hot_end()[0], 20u);
  planned.make(11);  // half of them are behind
  EXPECT_EQ(planned.plan.staged(), 11u);
  EXPECT_EQ(planned.plan.class_end().size(), 2u);
  EXPECT_EQ(planned.plan.hot_end()[0], 10u);
  EXPECT_EQ(planned.plan.behind_stage(), 10u);
}

TEST(what_finds_room_is_staged_as_a_whole_and_no_room_takes_nothing) {
  Planned planned;
  planned.builder.begin();
  planned.builder.op(OpKind::put, planned.builder.key("a"), Operand::integer, 1);
  planned.builder.end();
  planned.make(1);
  EXPECT_EQ(planned.plan.staged(), 1u);
  EXPECT_EQ(planned.plan.hot(), 1u);
  planned.make(0);
  EXPECT_EQ(planned.plan.staged(), 0u);
  EXPECT_EQ(planned.plan.beside_stage(), 1u);
}

}  // namespace
}  // namespace kilokv::engine
