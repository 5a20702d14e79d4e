// The times of a batch's stages: what counts for which stage, and the time in which one thread works alone.

#include "engine/exec/run/stage_times.hpp"

#include "engine/exec/run/stage_clock.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

// Works until so much processor time is used.
void work(double seconds) {
  const Stopwatch watch;
  while (watch.processor_seconds() < seconds) {
  }
}

TEST(nothing_is_measured_unless_asked_for) {
  StageTimes times;
  StageClock clock;
  clock.begin(nullptr);
  clock.enter(BatchStage::run);
  work(0.001);
  clock.end();
  EXPECT_TRUE(!clock.measures());
  EXPECT_TRUE(times.sum().wall == 0 && times.sum().all == 0 && times.serial_share() == 0);
}

TEST(one_thread_is_alone_in_all_its_stages) {
  StageTimes times;
  StageClock clock;
  clock.begin(&times);
  clock.enter(BatchStage::resolve);
  work(0.002);
  clock.enter(BatchStage::run);
  work(0.001);
  clock.enter(BatchStage::resolve);
  work(0.001);
  clock.end();
  EXPECT_TRUE(times.of(BatchStage::resolve).all >= 0.003);
  EXPECT_TRUE(times.of(BatchStage::run).all >= 0.001);
  EXPECT_TRUE(times.of(BatchStage::settle).wall == 0);
  for (const BatchStage stage : {BatchStage::resolve, BatchStage::run}) {
    const StageTime& time = times.of(stage);
    EXPECT_TRUE(time.alone == time.wall && time.wall > time.all - 0.0005);
  }
}

// The caller and a helper each work for the whole stage, so neither is alone.
TEST(a_helper_shortens_the_time_alone) {
  StageTimes times;
  StageClock clock;
  clock.begin(&times);
  clock.enter(BatchStage::run);
  work(0.002);
  clock.add_helpers({0.001, 0.001});
  clock.end();
  const StageTime half = times.of(BatchStage::run);
  EXPECT_TRUE(half.all >= 0.003);
  EXPECT_TRUE(half.alone > 0 && half.alone <= half.wall - 0.0009);

  clock.begin(&times);
  clock.enter(BatchStage::run);
  work(0.002);
  clock.add_helpers({1000, 500});
  clock.end();
  EXPECT_TRUE(times.of(BatchStage::run).alone == 0);
  EXPECT_TRUE(times.of(BatchStage::run).all >= 1000);
}

TEST(helpers_count_for_the_stage_in_which_they_worked) {
  StageTimes times;
  StageClock clock;
  clock.begin(&times);
  clock.enter(BatchStage::run);
  clock.add_helpers({10, 10});
  clock.enter(BatchStage::collect);
  clock.end();
  EXPECT_TRUE(times.of(BatchStage::run).all >= 10);
  EXPECT_TRUE(times.of(BatchStage::collect).all < 10);
}

TEST(batches_add_up) {
  StageTimes sum;
  for (int batch = 0; batch < 3; ++batch) {
    StageTimes times;
    StageClock clock;
    clock.begin(&times);
    clock.enter(BatchStage::collect);
    clock.add_helpers({4, 3});
    clock.end();
    sum.add(times);
  }
  EXPECT_TRUE(sum.of(BatchStage::collect).all >= 12 && sum.of(BatchStage::collect).all < 13);
  sum.subtract(BatchStage::collect, {0, 12, 0});
  EXPECT_TRUE(sum.of(BatchStage::collect).all < 1);
  EXPECT_TRUE(sum.sum().all == sum.of(BatchStage::collect).all);
}

}  // namespace
}  // namespace kilokv::engine
