// Batches of the strategies with tickets under seeded schedules of the simulator, for their tests: each result is
// judged by the referee, and by the simulator itself (races, progress, barriers). A failure prints the command that
// replays it, and the decisions that make it fail.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "engine/engine_with.hpp"
#include "engine/exec/ticketed_sim.hpp"
#include "engine/stm/lock_word.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee_scenario.hpp"
#include "tests/unit/engine/shrink_batch.hpp"

namespace kilokv::engine {

// A tenth of them where a sanitizer makes each step slow.
constexpr std::uint64_t schedules_to_run(std::uint64_t schedules) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return schedules / 10;
#else
  return schedules;
#endif
}

struct TicketedTotals {
  static constexpr std::uint64_t kPreemptionsMin = 5;  // of a schedule that counts
  std::uint64_t schedules = 0, few_preemptions = 0, batches = 0, steps = 0, preemptions = 0, stale_loads = 0;
  std::set<std::uint64_t> traces;
  std::array<std::uint64_t, kProbes> probes{};
  ExecutionReport last;
  Schedule schedule;  // of the last batch
  RunReport report;
};

// Transactions over very few keys, chosen for conflicts that only a full validation finds: reads of one key and writes
// of another, sums over two keys that every transaction keeps, double reads and writes, waits, and some precedence.
inline void generate_conflicts(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder) {
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

// Commit units and histories small enough that few records fill them.
inline KiloTuning kilo_tuning_of(std::uint64_t seed) {
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

// Stages of few slots, or of enough, and signatures of few bits.
inline LocalTuning local_tuning_of(std::uint64_t seed) {
  Random random(seed ^ 0x10CA1);
  constexpr std::array<std::uint32_t, 8> kSlots = {0, 1, 2, 3, 4, 64, 64, 64};
  constexpr std::array<std::uint32_t, 4> kBits = {1, 2, 4, 64};
  return {.staged_records = kSlots[random.below(8)], .signature_bits = kBits[random.below(4)]};
}

// A family of runs: Width lanes in a group, and a protocol on that platform.
template <std::uint32_t Width, class Protocol>
struct TicketedFamily {
  static constexpr std::uint64_t kWeakSeeds = std::uint64_t{1} << 32;  // from here on memory is weak
  static constexpr std::uint64_t kBatches = 2;  // each in a row on one state: the lock words of earlier ones are there

  // 8 to 16 transactions on 2 to 4 keys, on 4 to 16 lanes; one lockstep schedule for two interleaved ones.
  static TicketedSimRuns runs_of(std::uint64_t seed) {
    Random random(seed);
    TicketedSimRuns runs;
    runs.shape = {.blocks = static_cast<std::uint32_t>(1 + random.below(2)), .group_width = Width};
    runs.shape.block_threads = static_cast<std::uint32_t>(4 * (1 + random.below(2)));
    constexpr std::array<std::uint32_t, 4> kRecordsPerLock = {1, 1, 2, 4096};
    runs.tuning.records_per_lock = kRecordsPerLock[random.below(4)];
    runs.tuning.optimistic_tries = static_cast<std::uint32_t>(random.below(4));
    runs.schedule.kind = seed % 3 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
    runs.schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
    runs.schedule.steps_max = 200'000;
    runs.tuning.kilo = kilo_tuning_of(seed);
    runs.tuning.local = local_tuning_of(seed);
    if (has_many_each(seed)) runs.shape = {.blocks = 1, .block_threads = 4, .group_width = Width};
    if (seed >= kWeakSeeds) runs.schedule.stale_probability = random.chance(0.5) ? 0.1 : 0.5;
    return runs;
  }

  // Few lanes and many transactions on each: one can be behind the end of a range while another has not met it.
  static bool has_many_each(std::uint64_t seed) { return seed % 5 == 1; }

  // A scenario of this seed, each batch under a schedule of its own, unless `given` has its seed: then
  // that one is the last.
  static Status run_seed(std::uint64_t seed, TicketedTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = runs_of(seed);
    const Schedule usual = runs.schedule;
    Random random(seed ^ 0x5EED);
    WorkloadOptions options;
    options.name = "mixed";
    options.keys = 2 + random.below(3);
    options.seed = seed;
    options.mixed.ranges = false;
    auto workload = Workload::create(options);
    // In weak memory no byte values: a planted bug there tears cells, and a torn one names no bytes that exist.
    const bool conflicts = random.chance(0.5) || seed >= kWeakSeeds;
    EngineOptions engine_options;
    engine_options.strategy = "serial";  // that goes on where the simulator ended a run
    engine_options.secret = RefereeScenario::kSecret;
    RefereeScenario scenario;
    scenario.engine = create_engine_with(engine_options, std::make_unique<TicketedSim<Width, Protocol>>(&runs));
    Status status;
    workload->for_each_initial([&](const InitialRecord& record) {
      if (status.ok()) status = scenario.engine->load(record.key, 1, record.type, record.integer, record.bytes);
    });
    for (std::uint64_t key = 0; status.ok() && key < options.keys; key += 1 + random.below(2)) {
      status = scenario.engine->load("edge" + std::to_string(key), 1, ValueType::integer, 0, {});
    }
    scenario.header.first_version = 2;
    for (std::uint64_t i = 0; status.ok() && i < kBatches; ++i) {
      runs.schedule = usual;
      runs.schedule.seed = seed * kBatches + i;
      if (given != nullptr && given->seed == runs.schedule.seed) runs.schedule = *given;
      const std::size_t transactions = has_many_each(seed) ? 16 + random.below(24) : 8 + random.below(9);
      if (conflicts) {
        generate_conflicts(&random, options.keys, transactions, &scenario.builder);
      } else {
        workload->generate(&scenario.builder, transactions);
      }
      scenario.execute();
      totals->schedule = runs.schedule;
      totals->report = runs.report;
      // Why it was given up: an error of the run, or of its results.
      if (const std::string reason = scenario.engine->device().reason; !reason.empty()) {
        return Status(StatusCode::internal, reason);
      }
      ModelState after;
      status = scenario.check(RefereeMode::any_order, &after);
      if (status.ok()) status = check_state(after, *scenario.engine);
      if (status.ok()) status = check_claims(runs.lock_words);
      count(runs.report, scenario.engine->execution(), totals);
      if (given != nullptr && given->seed == runs.schedule.seed) return status;
      scenario.next_batch();
    }
    return status;
  }

  // Behind a batch, of a protocol that has claims.
  static Status check_claims(const std::vector<std::uint64_t>& lock_words) {
    if (!requires { typename Protocol::Rules::Word; }) return {};
    for (std::size_t i = 1; i < lock_words.size(); i += kWordsPerLock) {
      if (lock_words[i] != LockClaim::kNone) return Status(StatusCode::internal, "a claim is left");
    }
    return {};
  }

  static void count(const RunReport& run, const ExecutionReport& execution, TicketedTotals* totals) {
    ++totals->batches;
    totals->steps += run.steps;
    totals->preemptions += run.preemptions;
    totals->stale_loads += run.stale_loads;
    for (std::uint32_t i = 0; i < kProbes; ++i) totals->probes[i] += run.probes[i];
    totals->last = execution;
    if (run.preemptions < TicketedTotals::kPreemptionsMin) {
      ++totals->few_preemptions;
    } else {
      ++totals->schedules;
      totals->traces.insert(run.trace);
    }
  }
};

inline const char* replayed_seed() { return std::getenv("KILOKV_TEST_SEED"); }
inline std::uint64_t first_seed() {
  return replayed_seed() != nullptr ? std::strtoull(replayed_seed(), nullptr, 10) : 1;
}

inline void print_replay(const char* program, const char* test, std::uint64_t seed, const Status& status) {
  std::printf("  seed %llu: %s\n  replay: KILOKV_TEST_SEED=%llu %s %s\n", static_cast<unsigned long long>(seed),
              status.message().c_str(), static_cast<unsigned long long>(seed), program, test);
}

// What of the failing schedule makes it fail.
template <class Family>
ShrunkSchedule shrink_seed(std::uint64_t seed, const Schedule& failing) {
  return shrink_batch(failing, [seed](const Schedule& schedule, RunReport* report) {
    TicketedTotals totals;
    const Status status = Family::run_seed(seed, &totals, &schedule);
    *report = totals.report;
    return status;
  });
}

template <class Probe>
struct NamedProbe {
  Probe probe;
  const char* name;
};
inline void expect_probe(const TicketedTotals& totals, std::uint32_t number, const char* name) {
  std::printf("  %8llu times %s\n", static_cast<unsigned long long>(totals.probes[number]), name);
  if (totals.probes[number] == 0) FAIL(std::string("never reached: ") + name);
}
// All of a protocol's: each was reached.
template <class Probe, std::size_t Size>
void expect_probes(const TicketedTotals& totals, const NamedProbe<Probe> (&names)[Size]) {
  static_assert(Size == static_cast<std::size_t>(Probe::probes));
  for (const auto& [probe, name] : names) {
    expect_probe(totals, kProtocolProbes + static_cast<std::uint32_t>(probe), name);
  }
}

// So many schedules hold. Returns what they did.
template <class Family>
TicketedTotals expect_to_hold(const char* program, const char* test, std::uint64_t schedules) {
  TicketedTotals totals;
  for (std::uint64_t seed = first_seed(); totals.schedules < schedules; ++seed) {
    if (const Status status = Family::run_seed(seed, &totals); !status.ok()) {
      print_replay(program, test, seed, status);
      shrink_seed<Family>(seed, totals.schedule);
      FAIL(status.message());
      return totals;
    }
    if (replayed_seed() != nullptr) return totals;
  }
  std::printf(
      "  %llu schedules with at least %llu preemptions (%llu with fewer), %zu different traces, %llu batches, "
      "%llu steps, %llu preemptions\n",
      static_cast<unsigned long long>(totals.schedules),
      static_cast<unsigned long long>(TicketedTotals::kPreemptionsMin),
      static_cast<unsigned long long>(totals.few_preemptions), totals.traces.size(),
      static_cast<unsigned long long>(totals.batches), static_cast<unsigned long long>(totals.steps),
      static_cast<unsigned long long>(totals.preemptions));
  EXPECT_TRUE(totals.traces.size() > schedules * 9 / 10);
  return totals;
}

// A seed whose schedule fails, with the command that replays it; then that it does so again.
template <class Family>
void expect_to_fail(const char* program, const char* test, std::uint64_t seeds_max = 6000) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed <= first + seeds_max; ++seed) {
    TicketedTotals totals;
    const Status status = Family::run_seed(seed, &totals);
    if (!status.ok()) {
      print_replay(program, test, seed, status);
      EXPECT_EQ(Family::run_seed(seed, &totals).message(), status.message());
      return;
    }
    if (replayed_seed() != nullptr) break;
  }
  FAIL("the planted bug is not found");
}

}  // namespace kilokv::engine
