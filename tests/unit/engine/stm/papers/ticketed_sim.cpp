#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"

#include <array>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

// One after the other on one state, so that the lock words of earlier batches are there.
constexpr std::uint64_t kBatches = 2;

// Commit units and histories that are so small that few records fill them.
KiloTuning kilo_tuning_of(std::uint64_t seed) {
  Random random(seed ^ 0x4B11);
  constexpr std::array<std::uint32_t, 4> kUnits = {1, 1, 2, 4}, kEntries = {1, 1, 2, 4}, kBuckets = {4, 8, 8, 64},
                                         kLimits = {0, 0, 2, 1000}, kBuffered = {1, 2, 8, 8};
  KiloTuning tuning;
  tuning.units = kUnits[random.below(4)];
  tuning.history_entries = kEntries[random.below(4)];
  tuning.filter_buckets = kBuckets[random.below(4)];
  tuning.concurrency_limit = kLimits[random.below(4)];
  tuning.buffered = kBuffered[random.below(4)];
  return tuning;
}

// Stages of few slots, or of enough, in one part or several, and signatures of few bits.
LocalTuning local_tuning_of(std::uint64_t seed) {
  Random random(seed ^ 0x10CA1);
  constexpr std::array<std::uint32_t, 8> kSlots = {0, 1, 2, 3, 4, 64, 64, 64};
  constexpr std::array<std::uint32_t, 4> kBits = {1, 2, 4, 64};
  LocalTuning tuning{.staged_records = kSlots[random.below(8)], .signature_bits = kBits[random.below(4)]};
  tuning.stage_blocks = std::uint32_t{1} << random.below(4);
  return tuning;
}

// Few lanes, with many transactions on each: one lane can be after the end of a range that another has not reached.
bool has_many_each(std::uint64_t seed) { return seed % 5 == 1; }

Status load_initial(const Workload& workload, Random* random, std::uint64_t keys, Engine* engine) {
  Status status;
  workload.for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = engine->load(record.key, 1, record.type, record.integer, record.bytes);
  });
  for (std::uint64_t key = 0; status.ok() && key < keys; key += 1 + random->below(2)) {
    status = engine->load("edge" + std::to_string(key), 1, ValueType::integer, 0, {});
  }
  return status;
}

// Called after a batch.
Status check_claims(const std::vector<std::uint64_t>& lock_words) {
  for (std::size_t i = 1; i < lock_words.size(); i += kWordsPerLock) {
    if (lock_words[i] != LockClaim::kNone) return Status(StatusCode::internal, "a claim is left");
  }
  return {};
}

// Runs the scenario's columns, and checks the result.
Status run_batch(const TicketedKind& kind, const TicketedSimRuns& runs, RefereeScenario* scenario, SimTotals* totals) {
  scenario->execute();
  totals->schedule = runs.schedule;
  totals->report = runs.report;
  totals->count(runs.report, scenario->engine->execution());
  const Status status = judge(*scenario, referee_mode(scenario->engine->execution()));
  return status.ok() && kind.has_claims ? check_claims(runs.lock_words) : status;
}

}  // namespace

void generate_conflicts(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder) {
  const auto draw_key = [&] { return builder->key("edge" + std::to_string(random->below(keys))); };
  for (std::size_t i = 0; i < transactions; ++i) {
    builder->begin(static_cast<std::uint8_t>(random->chance(0.3) ? random->below(3) : 0));
    const std::uint64_t kind = random->below(8);
    if (kind == 0) builder->guard(GuardKind::greater_equal, OnFalse::wait, draw_key(), random->between(-2, 2));
    if (kind == 1) {
      const std::uint32_t key = draw_key();
      builder->guard(GuardKind::less, OnFalse::fail, key, 0, draw_key());
    }
    const std::uint64_t reads = random->below(3);
    for (std::uint64_t read = 0; read < reads; ++read) builder->op(OpKind::get, draw_key());
    if (kind == 3) {  // copies one key to another
      builder->op(OpKind::get, draw_key());
      builder->op(OpKind::put, draw_key(), Operand::get, static_cast<std::int64_t>(reads));
    }
    if (kind != 4) {
      for (std::uint64_t adds = 1 + random->below(2); adds > 0; --adds) {
        builder->op(OpKind::add, draw_key(), Operand::integer, random->between(-3, 3));
      }
    }
    if (kind == 5) builder->op(OpKind::get, draw_key());
    if (kind == 6 && random->chance(0.3)) builder->op(OpKind::put, draw_key(), Operand::commit_version);
    builder->end();
  }
}

TicketedSimRuns ticketed_runs_of(std::uint32_t width, std::uint64_t seed) {
  Random random(seed);
  TicketedSimRuns runs;
  runs.shape = {.blocks = static_cast<std::uint32_t>(1 + random.below(2)), .group_width = width};
  runs.shape.block_threads = static_cast<std::uint32_t>(4 * (1 + random.below(2)));
  constexpr std::array<std::uint32_t, 4> kRecordsPerLock = {1, 1, 2, 4096};
  runs.tuning.records_per_lock = kRecordsPerLock[random.below(4)];
  runs.tuning.optimistic_tries = static_cast<std::uint32_t>(random.below(4));
  runs.schedule.kind = seed % 3 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
  runs.schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
  runs.schedule.steps_max = 200'000;
  runs.tuning.kilo = kilo_tuning_of(seed);
  runs.tuning.local = local_tuning_of(seed);
  if (has_many_each(seed)) runs.shape = {.blocks = 1, .block_threads = 4, .group_width = width};
  if (seed >= kWeakSeeds) runs.schedule.stale_probability = random.chance(0.5) ? 0.1 : 0.5;
  return runs;
}

std::unique_ptr<Engine> make_simulated(const TicketedKind& kind, TicketedSimRuns* runs) {
  EngineOptions options;
  options.strategy = "serial";  // `serial` continues where the simulator ended a run
  options.secret = RefereeScenario::kSecret;
  return create_engine_with(options, kind.make(runs));
}

Status run_ticketed_seed(const TicketedKind& kind, std::uint64_t seed, SimTotals* totals, const Schedule* given) {
  TicketedSimRuns runs = ticketed_runs_of(kind.width, seed);
  const Schedule usual = runs.schedule;
  Random random(seed ^ 0x5EED);
  const std::uint64_t keys = 2 + random.below(3);
  auto workload = mixed_workload(seed, keys);
  // No byte values in weak memory: a mutation tears cells there, and the word of a torn cell is not the address of a
  // blob.
  const bool conflicts = random.chance(0.5) || seed >= kWeakSeeds;
  RefereeScenario scenario;
  scenario.engine = make_simulated(kind, &runs);
  Status status = load_initial(*workload, &random, keys, scenario.engine.get());
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; status.ok() && i < kBatches; ++i) {
    const bool is_given = set_schedule(usual, seed * kBatches + i, given, &runs.schedule);
    const std::size_t transactions = has_many_each(seed) ? 16 + random.below(24) : 8 + random.below(9);
    if (conflicts) {
      generate_conflicts(&random, keys, transactions, &scenario.builder);
    } else {
      generate_mixed(&*workload, transactions, &scenario.builder);
    }
    status = run_batch(kind, runs, &scenario, totals);
    if (is_given) return status;
    scenario.next_batch();
  }
  return status;
}

Status run_ticketed_batch(const TicketedKind& kind, TicketedSimRuns* runs, std::uint64_t transactions,
                          SimTotals* totals, const Schedule* given,
                          const std::function<void(ColumnsBuilder*, std::uint64_t)>& add) {
  if (given != nullptr) runs->schedule = *given;
  RefereeScenario scenario;
  scenario.engine = make_simulated(kind, runs);
  for (std::uint64_t i = 0; i < transactions; ++i) {
    scenario.builder.begin();
    add(&scenario.builder, i);
    scenario.builder.end();
  }
  return run_batch(kind, *runs, &scenario, totals);
}

Status run_equal_keys(const TicketedKind& kind, TicketedSimRuns runs, SimTotals* totals, const Schedule* given) {
  const Status status =
      run_ticketed_batch(kind, &runs, 16, totals, given, [](ColumnsBuilder* builder, std::uint64_t i) {
        const std::uint32_t a = builder->key("a");
        const std::uint32_t b = builder->key("b");
        if (i % 2 != 0) return builder->guard(GuardKind::equal, OnFalse::wait, a, 0, b);
        builder->op(OpKind::add, a, Operand::integer, 1);
        builder->op(OpKind::add, b, Operand::integer, 1);
      });
  if (!status.ok() || totals->last.postponed == 0) return status;
  return Status(StatusCode::internal, "somebody was postponed whose guard was never false");
}

}  // namespace kilokv::engine
