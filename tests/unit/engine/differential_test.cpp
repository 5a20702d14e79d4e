// Differential test: random batches at the edges (edge_batches.hpp) on each platform against `serial`, bit for bit:
// outcomes, cells, flags, ranks, writes, before-images, guards that would wait, hashes, dirty records. Batches come in
// chains over one state. Between them are loads, and tombstones are dropped. Some chains have a table that refuses
// batches. A failure prints the command that replays its chain.
//
// KILOKV_TEST_SEED=N runs only chain N. KILOKV_TEST_CHAINS=N runs the first N chains. With either, the test does not
// check how often rare things happened.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/sim/ordered_sim.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/edge_batches.hpp"
#include "tests/unit/engine/few_addresses.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/random_expiries.hpp"

namespace kilokv::test {
namespace {

// A ground: where and how the batches of a chain run.
struct Ground {
  const char* test;
  std::uint64_t chains;
  std::function<std::unique_ptr<Engine>(EngineOptions, std::uint64_t seed)> make = nullptr;
  std::function<Status()> behind_batch = nullptr;  // what went wrong that the engine does not show
  bool is_small = false, is_large = false;
  const char* strategy = "ordered";
};

struct Coverage {
  std::uint64_t batches = 0, refused = 0, empty = 0, with_last_tries = 0, passes_beyond_first = 0, by_strategy = 0,
                on_device = 0;
  std::uint64_t rounds = 0, tail = 0, chained_adds = 0, overtaken_adds = 0, outcomes[7] = {};
};

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// An engine, and what its last batch gave.
struct Side {
  std::unique_ptr<Engine> engine;
  Status status;
  BatchResults results;
  WriteColumns writes;
};

std::string show_of(const Side& side, Cell cell) { return describe(*side.engine, cell); }
std::string show_of(const Side& side, const RecordView& record) {
  return std::string(record.key) + "=" + show_of(side, record.cell);
}
template <class T>
std::string show_of(const Side&, const T& value) {
  return show(value);
}

// What differs between two engines that have done the same; the first difference stays.
class Comparison {
 public:
  Comparison(const Side& a, const Side& b) : a_(a), b_(b) {}

  template <class T>
  void equal(const char* what, std::size_t at, const T& a, const T& b) {
    if (!difference_.empty()) return;
    const std::string in_a = show_of(a_, a), in_b = show_of(b_, b);
    if (in_a != in_b) difference_ = std::string(what) + " " + std::to_string(at) + ": " + in_a + " and " + in_b;
  }
  template <class C>
  void equal_columns(const char* what, const C& a, const C& b) {
    equal(what, 0, a.size(), b.size());
    for (std::size_t i = 0; difference_.empty() && i < a.size(); ++i) equal(what, i, a[i], b[i]);
  }

  const std::string& difference() const { return difference_; }

 private:
  const Side& a_;
  const Side& b_;
  std::string difference_;
};

void compare_results(const TransactionColumns& columns, const BatchResults& a, const BatchResults& b,
                     Comparison* comparison) {
  comparison->equal("passes", 0, a.passes, b.passes);
  comparison->equal("next version", 0, a.next_version, b.next_version);
  comparison->equal_columns("outcome", a.outcome, b.outcome);
  comparison->equal_columns("failed in", a.failed_in, b.failed_in);
  comparison->equal_columns("failed index", a.failed_index, b.failed_index);
  comparison->equal_columns("rank", a.rank, b.rank);
  comparison->equal_columns("wrote", a.wrote, b.wrote);
  comparison->equal_columns("guard cell", a.guard_cell, b.guard_cell);
  if (!comparison->difference().empty()) return;
  for (std::uint32_t t = 0; t < columns.size(); ++t) {
    const auto outcome = static_cast<Outcome>(a.outcome[t]);
    if (outcome != Outcome::committed && !columns.ran_else(t, outcome)) continue;  // nothing ran, or it was undone
    const OperationRange ran = operations_run(columns, a, t);
    for (std::uint32_t op = ran.begin; op < ran.end; ++op) {
      comparison->equal("flags of operation", op, a.op_flags[op], b.op_flags[op]);
      comparison->equal("cell of operation", op, a.op_cell[op], b.op_cell[op]);
    }
  }
}

void compare_writes(const WriteColumns& a, const WriteColumns& b, Comparison* comparison) {
  comparison->equal_columns("rank of write", a.rank, b.rank);
  comparison->equal_columns("type of write", a.type, b.type);
  comparison->equal_columns("integer of write", a.word, b.word);
  comparison->equal_columns("key end of write", a.key_end, b.key_end);
  comparison->equal_columns("value end of write", a.value_end, b.value_end);
  comparison->equal_columns("key byte of write", a.key_bytes, b.key_bytes);
  comparison->equal_columns("value byte of write", a.value_bytes, b.value_bytes);
  comparison->equal_columns("write with an expiry", a.expiry_write, b.expiry_write);
  comparison->equal_columns("expiry of write", a.expires_us, b.expires_us);
}

std::vector<BeforeImage> sorted_before_images(const Engine& engine) {
  std::vector<BeforeImage> images = engine.before_images();
  std::sort(images.begin(), images.end(), [](const BeforeImage& a, const BeforeImage& b) {
    return std::tie(a.id.high, a.id.low) < std::tie(b.id.high, b.id.low);
  });
  return images;
}

void compare_state(const TransactionColumns& columns, const Engine& a, const Engine& b, Comparison* comparison) {
  const std::vector<BeforeImage> before_a = sorted_before_images(a), before_b = sorted_before_images(b);
  comparison->equal("before-images", 0, before_a.size(), before_b.size());
  for (std::size_t i = 0; comparison->difference().empty() && i < before_a.size(); ++i) {
    comparison->equal("id of before-image", i, before_a[i].id.low, before_b[i].id.low);
    comparison->equal("before-image", i, before_a[i].cell, before_b[i].cell);
    comparison->equal("expiry of before-image", i, before_a[i].expires_us, before_b[i].expires_us);
  }
  for (std::size_t t = 0; t < columns.size(); ++t) {
    comparison->equal("would wait", t, a.would_wait(columns, t, 0), b.would_wait(columns, t, 0));
    comparison->equal("next time", t, a.next_time(columns, t, 0), b.next_time(columns, t, 0));
  }
  const Hash128 hash_a = a.state_hash(), hash_b = b.state_hash(), computed = b.compute_state_hash();
  comparison->equal("state hash", 0, hash_a == hash_b, true);
  comparison->equal("computed state hash", 0, hash_b == computed, true);
  comparison->equal("records", 0, a.stats().records, b.stats().records);
  comparison->equal("tombstones", 0, a.stats().tombstones, b.stats().tombstones);
}

// Two engines that do the same, and what they do: all of it comes from the seed.
class Chain {
 public:
  Chain(const Ground& ground, std::uint64_t seed, Coverage* coverage)
      : ground_(ground),
        random_(seed),
        last_tries_(~seed),
        expiries_(~seed - 1),
        batches_(&random_, draw_shape(ground, &random_)),
        coverage_(*coverage) {
    EngineOptions options;
    options.strategy = "serial";
    options.secret = kSecret;
    if (random_.chance(0.1)) options.table_records_max = std::max<std::size_t>(1, batches_.shape().keys / 2);
    serial_.engine = std::move(*Engine::create(options));
    options.strategy = ground.strategy;
    other_.engine = ground.make(options, seed);
    // Commit versions that overflow a record in a few ADDs, and stamps that do so in two.
    if (random_.chance(0.3)) header_.first_version = (kVersionMax >> random_.below(2)) - 50'000'000;
    if (random_.chance(0.3)) header_.time_us = std::numeric_limits<TimeUs>::max() / 2;
  }

  // What differs first; empty: nothing.
  std::string run() {
    for (std::uint64_t key = 0; key < batches_.shape().keys; ++key) {
      if (random_.chance(0.5)) load(key, 1, batches_.draw_integer());
    }
    const std::uint64_t batches = 3 + random_.below(12);
    for (std::uint64_t i = 0; i < batches && difference_.empty(); ++i) {
      batch();
      between_batches();
      if (!difference_.empty()) difference_ += " (batch " + std::to_string(i) + ")";
    }
    return difference_;
  }

 private:
  static EdgeShape draw_shape(const Ground& ground, Random* random) {
    EdgeShape shape = draw_edge_shape(random);
    if (ground.is_large) {
      shape.keys = 2 + random->below(random->chance(0.5) ? 40 : 4000);
      shape.transactions_max = shape.operations_max > 100 ? 40 : 1000;
      if (random->chance(0.8)) shape.precedence_chance = 0;
    }
    if (!ground.is_small) return shape;
    shape.keys = 2 + random->below(6);
    shape.transactions_max = shape.operations_max > 100 ? 4 : 1 + random->below(20);
    return shape;
  }

  template <class F>
  void compare(const F& f) {
    if (!difference_.empty()) return;
    Comparison comparison(serial_, other_);
    f(&comparison);
    difference_ = comparison.difference();
  }

  void load(std::uint64_t key, Version version, std::int64_t integer) {
    const auto type = static_cast<ValueType>(random_.below(3));
    for (Side* side : {&serial_, &other_}) {
      side->status = side->engine->load(EdgeBatches::name(key), version, type, integer, "aaaa");
    }
    compare([&](Comparison* c) { c->equal("status of load", 0, serial_.status.ok(), other_.status.ok()); });
  }

  void batch() {
    columns_.clear();
    const bool is_lone = random_.chance(0.1);
    std::uint64_t n = is_lone ? 1 : 1 + random_.below(batches_.shape().transactions_max);
    if (random_.chance(0.03)) n = 0;
    batches_.generate(&builder_, n, header_.first_version);
    Column<std::uint8_t> expires(n);
    for (std::uint8_t& is_last : expires) is_last = random_.chance(0.5) ? 1 : 0;
    if (expiries_.chance(0.2)) {
      add_random_expiries(&expiries_, expiries_.chance(0.3) ? 0.9 : 0.2, header_.time_us, &columns_);
    }
    if (last_tries_.chance(0.1)) {
      for (std::uint8_t& runs_else : columns_.expire_runs_else) runs_else = last_tries_.chance(0.3) ? 1 : 0;
    }
    has_last_tries_ = false;
    for (std::size_t t = 0; t < n; ++t) {
      has_last_tries_ |= expires[t] != 0 && columns_.expire_runs_else[t] != 0 && can_wait(t);
    }
    for (Side* side : {&serial_, &other_}) {
      side->status = side->engine->execute(header_, columns_, expires, &side->results, &side->writes);
    }
    compare([&](Comparison* c) {
      c->equal("status", 0, serial_.status.message(), other_.status.message());
      if (serial_.status.ok()) compare_results(columns_, serial_.results, other_.results, c);
      compare_writes(serial_.writes, other_.writes, c);
      compare_state(columns_, *serial_.engine, *other_.engine, c);
    });
    const Status behind = ground_.behind_batch ? ground_.behind_batch() : Status();
    if (difference_.empty() && !behind.ok()) difference_ = behind.message();
    count();
    if (serial_.status.ok()) header_.first_version = serial_.results.next_version;
    ++header_.number;
    header_.time_us += 1000;
  }

  void between_batches() {
    if (random_.chance(0.5)) {
      for (Side* side : {&serial_, &other_}) side->engine->release_through(header_.number - 1);
    }
    if (random_.chance(0.3)) drop_tombstones();
    if (random_.chance(0.1)) load(random_.below(batches_.shape().keys), header_.first_version++, 5);
    if (random_.chance(0.3)) take_dirty();
  }
  void drop_tombstones() {
    const Version floor = header_.first_version - random_.below(std::min<Version>(header_.first_version, 400));
    const std::size_t looked_max = random_.chance(0.5) ? 1 + random_.below(4) : SIZE_MAX;
    std::vector<std::string> dropped[2];
    for (const bool is_other : {false, true}) {
      Engine& engine = *(is_other ? other_ : serial_).engine;
      engine.drop_tombstones(
          floor, [&](std::string_view key) { dropped[is_other].emplace_back(key); }, looked_max);
      std::sort(dropped[is_other].begin(), dropped[is_other].end());
    }
    compare([&](Comparison* c) {
      c->equal("tombstone floor", 0, serial_.engine->tombstone_floor(), other_.engine->tombstone_floor());
      c->equal_columns("dropped tombstone", dropped[0], dropped[1]);
    });
  }
  void take_dirty() {
    std::vector<std::string> dirty[2];
    for (const bool is_other : {false, true}) {
      const Side& side = is_other ? other_ : serial_;
      side.engine->take_dirty(SIZE_MAX, [&](const RecordView& r) { dirty[is_other].push_back(show_of(side, r)); });
      std::sort(dirty[is_other].begin(), dirty[is_other].end());
    }
    compare([&](Comparison* c) { c->equal_columns("dirty record", dirty[0], dirty[1]); });
  }

  void count() {
    ++coverage_.batches;
    coverage_.refused += serial_.status.ok() ? 0 : 1;
    coverage_.empty += columns_.empty() ? 1 : 0;
    if (!serial_.status.ok() || columns_.empty()) return;
    coverage_.with_last_tries += has_last_tries_ ? 1 : 0;  // it runs serially
    coverage_.passes_beyond_first += serial_.results.passes - 1;
    for (const std::uint8_t outcome : serial_.results.outcome) ++coverage_.outcomes[outcome];
    const ExecutionReport& execution = other_.engine->execution();
    if (std::string_view(execution.strategy) != ground_.strategy) return;
    ++coverage_.by_strategy;
    coverage_.on_device += execution.on_device ? 1 : 0;
    coverage_.rounds += execution.counter("rounds");
    coverage_.tail += execution.counter("tail");
    coverage_.chained_adds += execution.counter("chained_adds");
    coverage_.overtaken_adds += execution.counter("overtaken_adds");
  }

  bool can_wait(std::size_t t) const {
    const auto guards = columns_.guard_on_false.begin();
    const auto wait = static_cast<std::uint8_t>(OnFalse::wait);
    return std::find(guards + columns_.guard_begin(t), guards + columns_.guard_end[t], wait) !=
           guards + columns_.guard_end[t];
  }

  const Ground& ground_;
  Random random_, last_tries_, expiries_;
  EdgeBatches batches_;
  Coverage& coverage_;
  Side serial_, other_;
  TransactionColumns columns_;
  ColumnsBuilder builder_{&columns_, kSecret};
  BatchHeader header_{1, 1'000'000, 2};
  bool has_last_tries_ = false;  // the batch may have a pass of last tries
  std::string difference_;
};

// Chains on this ground until the first that differs; what they met.
Coverage run_chains(const Ground& ground) {
  Coverage coverage;
  const std::uint64_t first = number_of("KILOKV_TEST_SEED", 1);
  const std::uint64_t last =
      number_of("KILOKV_TEST_SEED", number_of("KILOKV_TEST_CHAINS", test::runs_to_make(ground.chains)));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::string difference = Chain(ground, seed, &coverage).run();
    if (difference.empty()) continue;
    std::fprintf(stderr, "replay: KILOKV_TEST_SEED=%llu engine_differential_test %s\n",
                 static_cast<unsigned long long>(seed), ground.test);
    FAIL(difference);
    return coverage;
  }
  std::printf("  %llu batches equal those of serial, %llu by %s: %llu rounds, %llu chained ADDs, %llu in tails\n",
              static_cast<unsigned long long>(coverage.batches), static_cast<unsigned long long>(coverage.by_strategy),
              ground.strategy, static_cast<unsigned long long>(coverage.rounds),
              static_cast<unsigned long long>(coverage.chained_adds), static_cast<unsigned long long>(coverage.tail));
  if (first != 1 || last < ground.chains) return coverage;
  // What the generator is for did happen, each often.
  for (const Outcome outcome : {Outcome::committed, Outcome::guard_failed, Outcome::wait_expired, Outcome::overflow,
                                Outcome::type_mismatch, Outcome::postponed}) {
    EXPECT_TRUE(coverage.outcomes[static_cast<int>(outcome)] > ground.chains);
  }
  EXPECT_TRUE(coverage.passes_beyond_first > ground.chains / 2);
  EXPECT_TRUE(coverage.refused > ground.chains / 10);
  EXPECT_TRUE(coverage.empty > ground.chains / 10);
  if (std::string_view(ground.strategy) == "ordered") EXPECT_TRUE(coverage.chained_adds > ground.chains / 10);
  return coverage;
}

// Rounds alone in every second chain; in the others also tails.
void run_on_threads(const char* test, std::uint32_t threads, std::uint64_t chains) {
  const Coverage coverage =
      run_chains({test, chains, [threads](const EngineOptions& options, std::uint64_t seed) {
                    const OrderedTuning tunings[] = {
                        {}, OrderedHost::kTuning, {.decided_min = 2, .divisor = 4, .walks = true, .few_of_max = 4}};
                    const OrderedTuning tuning = tunings[seed % 3];
                    return create_engine_with(options, std::make_unique<OrderedHost>(threads, tuning));
                  }});
  EXPECT_EQ(coverage.by_strategy, coverage.batches - coverage.refused - coverage.empty - coverage.with_last_tries);
}

TEST(ordered_on_1_thread_equals_serial) { run_on_threads("ordered_on_1_thread_equals_serial", 1, 1000); }
TEST(ordered_on_2_threads_equals_serial) { run_on_threads("ordered_on_2_threads_equals_serial", 2, 700); }
TEST(ordered_on_3_threads_equals_serial) { run_on_threads("ordered_on_3_threads_equals_serial", 3, 700); }
TEST(ordered_on_8_threads_equals_serial) { run_on_threads("ordered_on_8_threads_equals_serial", 8, 300); }

// `pipelined` leaves to `serial` what it cannot run by tile: a batch that is not in its own order, or that may find the
// table full.
Coverage run_pipelined(const char* test, std::uint32_t threads, std::uint64_t chains, bool is_large) {
  Ground ground{test, chains, [threads](EngineOptions options, std::uint64_t) {
                  options.threads = threads;
                  return std::move(*Engine::create(options));
                }};
  ground.is_large = is_large;
  ground.strategy = "pipelined";
  return run_chains(ground);
}
TEST(pipelined_on_2_threads_equals_serial) {
  const Coverage coverage = run_pipelined("pipelined_on_2_threads_equals_serial", 2, 700, false);
  if (coverage.batches > 5000) EXPECT_TRUE(coverage.by_strategy > coverage.batches / 10);
}
TEST(pipelined_on_2_threads_equals_serial_in_large_batches) {
  run_pipelined("pipelined_on_2_threads_equals_serial_in_large_batches", 2, 150, true);
}
TEST(pipelined_on_5_threads_equals_serial_in_large_batches) {
  run_pipelined("pipelined_on_5_threads_equals_serial_in_large_batches", 5, 150, true);
}

// With many small windows in two of three chains. In every third one, a batch is one window.
void run_partitioned(const char* test, std::uint32_t threads, std::uint64_t chains, bool is_large) {
  Ground ground{test, chains, [threads](EngineOptions options, std::uint64_t seed) {
                  options.threads = threads;
                  const PartitionedTuning tunings[] = {
                      {.transactions_min = 1},
                      {.window = 8, .tile = 2, .adders_min = 2, .transactions_min = 1, .left_max = 16, .few = 2},
                      {.window = 100, .tile = 3, .partition_bits = 1, .adders_min = 3, .transactions_min = 1}};
                  return create_partitioned_engine(options, tunings[seed % 3]);
                }};
  ground.is_large = is_large;
  ground.strategy = "partitioned";
  const Coverage coverage = run_chains(ground);
  EXPECT_EQ(coverage.by_strategy, coverage.batches - coverage.refused - coverage.empty - coverage.with_last_tries);
  if (coverage.by_strategy < 1000) return;
  EXPECT_TRUE(coverage.rounds > 3 * coverage.by_strategy / 2);
  EXPECT_TRUE(coverage.tail > coverage.by_strategy);
  EXPECT_TRUE(coverage.chained_adds > coverage.by_strategy / 10);
  EXPECT_TRUE(coverage.overtaken_adds > coverage.by_strategy / 100);
}
TEST(partitioned_on_2_threads_equals_serial) {
  run_partitioned("partitioned_on_2_threads_equals_serial", 2, 700, false);
}
TEST(partitioned_on_2_threads_equals_serial_in_large_batches) {
  run_partitioned("partitioned_on_2_threads_equals_serial_in_large_batches", 2, 150, true);
}
TEST(partitioned_on_5_threads_equals_serial_in_large_batches) {
  run_partitioned("partitioned_on_5_threads_equals_serial_in_large_batches", 5, 150, true);
}

// Where the system refuses addresses, the table moves as a whole when it grows: here, in the middle of a batch.
TEST(tables_that_move_equal_serial) {
  const FewAddresses few(rlim_t{2} << 30);
  run_pipelined("tables_that_move_equal_serial", 2, 100, true);
}

std::unique_ptr<Engine> make_emulated(EngineOptions options, std::function<bool()> fails) {
  options.device = "emulated";
  options.threads = 2;
  options.emulated_device_fails = std::move(fails);
  return std::move(*Engine::create(options));
}

TEST(the_emulated_device_equals_serial) {
  const Coverage coverage =
      run_chains({"the_emulated_device_equals_serial", 500,
                  [](const EngineOptions& options, std::uint64_t) { return make_emulated(options, nullptr); }});
  EXPECT_EQ(coverage.on_device, coverage.batches - coverage.refused - coverage.empty - coverage.with_last_tries);
}

TEST(a_device_that_is_lost_equals_serial) {
  constexpr std::uint64_t kCallsMax = 120;
  const auto make = [](const EngineOptions& options, std::uint64_t seed) {
    return make_emulated(options, [left = 1 + seed * 7 % kCallsMax]() mutable { return --left == 0; });
  };
  const Coverage coverage = run_chains({"a_device_that_is_lost_equals_serial", 500, make});
  EXPECT_TRUE(coverage.on_device > 0);
  EXPECT_TRUE(coverage.on_device < coverage.by_strategy);
}

TEST(ordered_in_the_simulator_equals_serial) {
  SimRuns runs;
  Ground ground{"ordered_in_the_simulator_equals_serial", 1000};
  ground.is_small = true;
  ground.make = [&runs](const EngineOptions& options, std::uint64_t seed) {
    Random random(seed);
    runs.shape = {.blocks = static_cast<std::uint32_t>(1 + random.below(2)), .group_width = 4};
    runs.shape.block_threads = static_cast<std::uint32_t>(4 * (1 + random.below(2)));
    runs.tuning = random.chance(0.3) ? OrderedTuning{1, 4, random.chance(0.5)} : OrderedTuning{};
    runs.schedule.kind = seed % 3 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
    runs.schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
    runs.schedule.steps_max = 20'000'000;
    runs.schedule.seed = seed << 8;
    return create_engine_with(options, std::make_unique<OrderedSim<4>>(&runs));
  };
  ground.behind_batch = [&runs] {
    ++runs.schedule.seed;
    return runs.report.status;
  };
  run_chains(ground);
}

}  // namespace
}  // namespace kilokv::test
