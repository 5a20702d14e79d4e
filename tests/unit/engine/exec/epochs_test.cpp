// What happens when epochs run out. There are epochs of reservations (on the host, in the simulator and on a device),
// of a device's table, and of the numbers that a batch gives its records. Executors start shortly before the end. They
// must give the same as others that start at the beginning, in as many rounds.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/resolve/batch_records.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/sim/ordered_sim.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kBatches = 80, kTransactionsMax = 40, kKeys = 8;
// So that early batches use late epochs, and a later one, which could use more than are left, starts again.
constexpr std::uint64_t kEpochsLeft = ordered_epochs_max(kTransactionsMax) + 5;

// Reads and writes that depend on one another, without ADDs: how many rounds they take is known.
void generate(Random* random, ColumnsBuilder* builder) {
  const auto key = [&] { return builder->key("k" + std::to_string(random->below(kKeys))); };
  for (std::uint64_t n = 1 + random->below(kTransactionsMax); n > 0; --n) {
    builder->begin();
    if (random->chance(0.2)) builder->guard(GuardKind::less, OnFalse::wait, key(), random->between(0, 100));
    builder->op(OpKind::get, key());
    builder->op(OpKind::put, key(), Operand::integer, random->between(-100, 100));
    builder->end();
  }
}

EngineOptions ordered_options() {
  EngineOptions options;
  options.strategy = "ordered";
  options.secret = kSecret;
  options.threads = 1;
  return options;
}

// One of two engines that run the same batches.
struct Side {
  Status execute(const TransactionColumns& columns) {
    const Column<std::uint8_t> expires(columns.size(), 1);
    const Status status = engine->execute(header, columns, expires, &results, &writes);
    header = {header.number + 1, header.time_us + 1000, results.next_version};
    return status;
  }

  std::unique_ptr<Engine> engine;
  BatchHeader header{1, 1'000'000, 2};
  BatchResults results;
  WriteColumns writes;
};

void expect_the_same(const Side& a, const Side& b) {
  EXPECT_TRUE(a.results.outcome == b.results.outcome);
  EXPECT_TRUE(a.results.rank == b.results.rank);
  EXPECT_TRUE(a.writes.word == b.writes.word);
  EXPECT_TRUE(a.engine->state_hash() == b.engine->state_hash());
  EXPECT_EQ(a.engine->execution().strategy, std::string("ordered"));
  EXPECT_EQ(b.engine->execution().on_device, a.engine->execution().on_device);
  EXPECT_EQ(b.engine->execution().counter("rounds"), a.engine->execution().counter("rounds"));
  EXPECT_EQ(b.engine->execution().counter("tail"), a.engine->execution().counter("tail"));
}

// Chains on executors that start at the beginning and near the end. `behind_batch`: what an engine does not show.
void run_near_the_end(const std::function<std::unique_ptr<Executor>(FirstEpochs)>& make,
                      const std::function<void()>& behind_batch = nullptr) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Side sides[2];
    sides[0].engine = create_engine_with(ordered_options(), make({}));
    const auto left = static_cast<std::uint32_t>(kEpochsLeft + random.below(20));
    sides[1].engine = create_engine_with(ordered_options(), make({.reservations = kLast - left}));
    TransactionColumns columns;
    ColumnsBuilder builder(&columns, kSecret);
    EpochCounter counter(kLast - left);  // as the second one counts
    std::uint64_t restarts = 0;
    for (std::uint64_t i = 0; i < kBatches && !has_failed(); ++i) {
      columns.clear();
      generate(&random, &builder);
      for (Side& side : sides) {
        EXPECT_TRUE(side.execute(columns).ok());
        if (behind_batch) behind_batch();
      }
      expect_the_same(sides[0], sides[1]);
      restarts += counter.must_restart(columns.size()) ? 1 : 0;
      counter.use(ordered_epochs_used(sides[1].engine->execution().counter("rounds")));
    }
    EXPECT_EQ(restarts, 1u);
    if (has_failed()) return FAIL("seed " + std::to_string(seed));
  }
}

TEST(epochs_suffice_or_counting_starts_again) {
  EpochCounter counter(kLast - static_cast<std::uint32_t>(ordered_epochs_max(10)));
  EXPECT_FALSE(counter.must_restart(10));
  EXPECT_TRUE(counter.must_restart(11));
  EXPECT_EQ(counter.last(), 0u);
  EXPECT_FALSE(counter.must_restart(11));
  counter.use(kLast - ordered_epochs_max(10) + 1);
  EXPECT_TRUE(counter.must_restart(10));
}

// First where who waits for ever is found out: a reservation that is left from before stops everybody.
TEST(reservations_run_out_in_the_simulator) {
  SimRuns runs;
  runs.shape = {.blocks = 1, .block_threads = 4, .group_width = 4};
  runs.schedule.steps_max = 1'000'000;
  const auto make = [&runs](FirstEpochs first) {
    runs.first_epochs = first;
    return std::make_unique<OrderedSim<4>>(&runs);
  };
  run_near_the_end(make, [&runs] { EXPECT_EQ(runs.report.status.message(), ""); });
}

TEST(reservations_run_out_on_the_host) {
  run_near_the_end([](FirstEpochs first) { return std::make_unique<OrderedHost>(2, OrderedHost::kTuning, first); });
}

TEST(reservations_run_out_on_a_device) {
  run_near_the_end([](FirstEpochs first) {
    return std::make_unique<DeviceExecutor>(open_emulated(), std::vector<std::string>{"ordered"}, SettingTexts{},
                                            first);
  });
}

// Each batch names new records and costs the table a round or more: it is built anew before its epochs have run out,
// and not with each batch.
TEST(the_epochs_of_a_table_on_a_device_run_out) {
  constexpr std::uint32_t kLeft = 100, kNewKeys = 10;
  Side sides[2];
  const DeviceExecutor* devices[2];
  for (const bool is_near : {false, true}) {
    auto device = std::make_unique<DeviceExecutor>(open_emulated(), std::vector<std::string>{"ordered"}, SettingTexts{},
                                                   FirstEpochs{.table = is_near ? kLast - kLeft : 0});
    devices[is_near] = device.get();
    sides[is_near].engine = create_engine_with(ordered_options(), std::move(device));
  }
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  for (std::uint64_t i = 0; i < 2 * kLeft && !has_failed(); ++i) {
    columns.clear();
    builder.begin();
    // Some of those before it, and as many new ones.
    for (std::uint64_t key = i * kNewKeys / 2; key < (i + 2) * kNewKeys / 2; ++key) {
      builder.op(OpKind::add, builder.key("key" + std::to_string(key % 500)), Operand::integer, 1);
    }
    builder.end();
    for (Side& side : sides) EXPECT_TRUE(side.execute(columns).ok());
    expect_the_same(sides[0], sides[1]);
    EXPECT_TRUE(sides[0].engine->execution().on_device);
  }
  EXPECT_EQ(devices[0]->table().builds(), 1u);
  EXPECT_TRUE(devices[1]->table().builds() > 1);
  EXPECT_TRUE(devices[1]->table().builds() < kLeft);
}

// The numbers of a batch's records, while their epoch begins again. One key, then many: were the entries that no batch
// has used taken for those of epoch 0, there would be no room for them, for ever.
TEST(the_epochs_of_a_batchs_records_run_out) {
  constexpr std::uint32_t kBefore = 3, kMany = 12;
  RecordStore store(kSecret, 0, 1000);
  BatchResolver resolver;
  BatchRecords records(kLast - kBefore);
  for (BatchNumber batch = 1; batch <= 2 * kBefore; ++batch) {
    TransactionColumns columns;
    ColumnsBuilder builder(&columns, kSecret);
    builder.begin();
    const std::uint32_t keys = batch <= kBefore + 1 ? 1 : kMany;
    // Each twice.
    for (std::uint32_t i = 0; i < 2 * keys; ++i) builder.op(OpKind::put, builder.key("k" + std::to_string(i % keys)));
    builder.end();
    ASSERT_TRUE(resolver.resolve(columns, batch, &store).ok());
    records.gather(columns, resolver, store);
    ASSERT_EQ(records.size(), keys);
    for (std::uint32_t i = 0; i < 2 * keys; ++i) {
      EXPECT_EQ(records.record_of_key()[i], i % keys);
      EXPECT_EQ(records.slots()[records.record_of_key()[i]], resolver.slot_of_key()[i]);
    }
  }
}

}  // namespace
}  // namespace kilokv::test
