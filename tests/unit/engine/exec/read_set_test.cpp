// Large read sets of interactive transactions are checked ahead of the transaction, by one thread and by two sides.
// They are compared with the same transactions checked guard by guard: results, writes and states are equal, bit for
// bit.

#include "engine/exec/validate/read_set.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/validate/cooperative_validator.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

constexpr std::uint64_t kKeys = 20000;  // of these a fifth is not there, and a fifth deleted

std::string key_of(std::uint64_t number) { return "key" + std::to_string(number); }

EngineOptions options_of(const std::string& validation, std::uint32_t threads) {
  EngineOptions options;
  options.secret = kSecret;
  options.strategy = "serial";
  options.threads = threads;
  options.validation = validation;
  return options;
}

void load(Engine* engine) {
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    if (i % 5 == 0) continue;
    const ValueType type = i % 5 == 1 ? ValueType::absent : i % 50 == 2 ? ValueType::bytes : ValueType::integer;
    static_cast<void>(engine->load(key_of(i), 1 + i % 97, type, static_cast<std::int64_t>(i), "bytes"));
  }
}

std::unique_ptr<Engine> make_engine(const std::string& validation, std::uint32_t threads = 2) {
  std::unique_ptr<Engine> engine = std::move(*Engine::create(options_of(validation, threads)));
  load(engine.get());
  return engine;
}

// On a device: that of KILOKV_TEST_DEVICE, else the emulated one.
std::unique_ptr<Engine> make_device_engine(const std::string& validation, const std::string& lanes) {
  EngineOptions options = options_of(validation, 1);
  const char* const device = std::getenv("KILOKV_TEST_DEVICE");
  options.strategy = "ordered";
  options.device = device != nullptr ? device : "emulated";
  options.validation_lanes = lanes;
  std::unique_ptr<Engine> engine = std::move(*Engine::create(options));
  load(engine.get());
  return engine;
}

// Of the engine that evaluates guard by guard, and of those that are to do the same.
struct Engines {
  std::unique_ptr<Engine> oracle = make_engine("by-guard");
  std::vector<std::unique_ptr<Engine>> others;
  BatchNumber batch = 0;
  Version next_version = 1000;

  // Runs the transaction on all. Returns the oracle's outcome.
  Outcome run(const TransactionColumns& columns) {
    const BatchHeader header{++batch, kStamp, next_version};
    const Column<std::uint8_t> expires(columns.size(), 0);
    BatchResults expected, results;
    WriteColumns expected_writes, writes;
    EXPECT_TRUE(oracle->execute(header, columns, expires, &expected, &expected_writes).ok());
    EXPECT_EQ(oracle->execution().validated, 0u);
    for (const auto& engine : others) {
      EXPECT_TRUE(engine->execute(header, columns, expires, &results, &writes).ok());
      EXPECT_EQ(engine->device().reason, "");
      EXPECT_TRUE(results.outcome == expected.outcome);
      EXPECT_TRUE(results.failed_in == expected.failed_in);
      EXPECT_TRUE(results.failed_index == expected.failed_index);
      EXPECT_TRUE(results.rank == expected.rank && results.wrote == expected.wrote);
      EXPECT_EQ(describe(*engine, results.guard_cell[0]), describe(*oracle, expected.guard_cell[0]));
      if (expected.outcome[0] == static_cast<std::uint8_t>(Outcome::committed)) {
        EXPECT_TRUE(results.op_flags == expected.op_flags);
      }
      EXPECT_TRUE(results.passes == expected.passes && results.next_version == expected.next_version);
      EXPECT_TRUE(writes.rank == expected_writes.rank && writes.word == expected_writes.word);
      EXPECT_TRUE(writes.type == expected_writes.type && writes.key_bytes == expected_writes.key_bytes);
      EXPECT_TRUE(writes.value_bytes == expected_writes.value_bytes);
      EXPECT_TRUE(engine->state_hash() == oracle->state_hash());
      EXPECT_EQ(engine->stats().records, oracle->stats().records);
      EXPECT_EQ(engine->stats().tombstones, oracle->stats().tombstones);
      EXPECT_EQ(engine->before_images().size(), oracle->before_images().size());
    }
    next_version = expected.next_version;
    for (const auto& engine : others) engine->release_through(batch);
    oracle->release_through(batch);
    return static_cast<Outcome>(expected.outcome[0]);
  }
};

// Where reads are stale.
using StalePlaces = std::vector<std::uint32_t>;

void add_rest(Random* random, std::uint32_t reads, ColumnsBuilder* builder) {
  const auto key = [&] {  // of the read set, or one more
    return random->chance(0.5) ? static_cast<std::uint32_t>(random->below(reads))
                               : builder->key(key_of(random->below(kKeys + 100)));
  };
  for (std::uint64_t i = random->below(4); i > 0; --i) {
    const std::uint32_t of = key();
    const OnFalse on_false = random->chance(0.3) ? OnFalse::wait : OnFalse::fail;
    switch (random->below(4)) {
      case 0: builder->guard(GuardKind::exists, on_false, of, 0); break;
      case 1: builder->guard(GuardKind::greater_equal, on_false, of, random->between(-5, 30000), key()); break;
      case 2: builder->guard(GuardKind::version_equal, on_false, of, random->between(0, 99)); break;
      default:
        builder->range_guard(GuardKind::range_unchanged, on_false, "key1", "key2", 5000 * random->below(2));
        break;
    }
  }
}

void add_operations(Random* random, std::uint32_t reads, ColumnsBuilder* builder) {
  for (std::uint64_t i = random->below(6); i > 0; --i) {
    const std::uint32_t of = random->chance(0.5) ? static_cast<std::uint32_t>(random->below(reads))
                                                 : builder->key(key_of(random->below(kKeys + 100)));
    switch (random->below(6)) {
      case 0: builder->op(OpKind::get, of); break;
      case 1: builder->op(OpKind::put, of, Operand::bytes, builder->value("value" + std::to_string(i))); break;
      case 2: builder->op(OpKind::del, of); break;
      case 3: builder->op(OpKind::put, of, Operand::commit_version); break;
      case 4: builder->range_op(OpKind::range_get, "key10", "key11", 5); break;
      default: builder->op(OpKind::add, of, Operand::integer, random->between(-9, 9)); break;
    }
  }
}

// Reads `reads` keys as they are, but for the stale ones.
void draw(Random* random, const Engine& engine, std::uint32_t reads, const StalePlaces& stale,
          TransactionColumns* columns) {
  columns->clear();
  ColumnsBuilder builder(columns, kSecret);
  builder.begin();
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < reads; ++i) {
    names.push_back(key_of(random->below(kKeys)));
    builder.key(names.back());
  }
  for (std::uint32_t i = 0; i < reads; ++i) {
    auto version = static_cast<std::int64_t>(version_of(engine.find(names[i]).cell.tag));
    if (std::find(stale.begin(), stale.end(), i) != stale.end()) {
      version += version > 0 && random->chance(0.5) ? -1 : random->chance(0.5) ? 1 : 1000000;
    }
    builder.guard(GuardKind::version_equal, OnFalse::fail, i, version);
  }
  if (random->chance(0.6)) add_rest(random, reads, &builder);
  add_operations(random, reads, &builder);
  builder.begin_else();
  add_operations(random, reads, &builder);
  builder.end();
}

StalePlaces places_of(Random* random, std::uint32_t reads) {
  switch (random->below(6)) {
    case 0: return {0};
    case 1: return {reads - 1};
    case 2: return {reads / 2};
    case 3: {
      StalePlaces many;
      for (std::uint64_t i = 1 + random->below(20); i > 0; --i) {
        many.push_back(static_cast<std::uint32_t>(random->below(reads)));
      }
      return many;
    }
    default: return {};
  }
}

void expect_equal(Engines* engines, std::uint64_t seed, const std::vector<std::uint32_t>& sizes) {
  Random random(seed);
  TransactionColumns columns;
  std::array<int, 7> outcomes{};
  for (const std::uint32_t size : sizes) {
    const auto reads = static_cast<std::uint32_t>(1 + random.below(size));
    const StalePlaces stale = places_of(&random, reads);
    draw(&random, *engines->oracle, reads, stale, &columns);
    const Outcome outcome = engines->run(columns);
    ++outcomes[static_cast<std::size_t>(outcome)];
    if (!stale.empty()) EXPECT_TRUE(outcome != Outcome::committed);
    if (has_failed()) return FAIL("seed " + std::to_string(seed) + ", " + std::to_string(reads) + " reads");
  }
  EXPECT_TRUE(outcomes[static_cast<std::size_t>(Outcome::committed)] > 0);
  EXPECT_TRUE(outcomes[static_cast<std::size_t>(Outcome::guard_failed)] > 0);
}

std::vector<std::uint32_t> sizes_up_to(std::uint32_t most, std::size_t each) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 10; size <= most; size *= 10) sizes.insert(sizes.end(), each, size);
  return sizes;
}

TEST(checked_ahead_is_as_guard_by_guard) {
  Engines engines;
  for (const std::uint32_t threads : {2u, 4u}) engines.others.push_back(make_engine("cooperative", threads));
  engines.others.push_back(make_engine("alone"));
  engines.others.push_back(make_engine("auto"));
  expect_equal(&engines, 1, sizes_up_to(100000, 25));
  EXPECT_TRUE(engines.others[0]->stats().validator_choice.ends_with("on 2 threads"));
  EXPECT_TRUE(engines.others[2]->stats().validator_choice.ends_with("on one thread"));
  EXPECT_TRUE(engines.others[3]->stats().validator_choice.find(" times as fast") != std::string::npos);
}

// Everything up to the largest read set; each place.
TEST(each_place_of_a_stale_read_is_named) {
  Engines engines;
  engines.others.push_back(make_engine("cooperative", 3));
  Random random(7);
  TransactionColumns columns;
  constexpr std::uint32_t kReads = 6000;
  for (std::uint32_t place = 0; place < kReads; place += 1 + static_cast<std::uint32_t>(random.below(300))) {
    StalePlaces stale = {place};
    for (std::uint64_t i = random.below(3); i > 0; --i) {
      stale.push_back(place + static_cast<std::uint32_t>(random.below(kReads - place)));
    }
    draw(&random, *engines.oracle, kReads, stale, &columns);
    EXPECT_TRUE(engines.run(columns) != Outcome::committed);
    EXPECT_TRUE(engines.others[0]->execution().validated >= kReads);
    ASSERT_TRUE(!has_failed());
  }
}

TEST(a_million_reads) {
  Engines engines;
  engines.others.push_back(make_engine("cooperative", 2));
  Random random(11);
  TransactionColumns columns;
  constexpr std::uint32_t kReads = 1000000;
  for (const StalePlaces& stale : {StalePlaces{}, StalePlaces{kReads / 3, kReads - 1}}) {
    draw(&random, *engines.oracle, kReads, stale, &columns);
    const Outcome outcome = engines.run(columns);
    EXPECT_TRUE(stale.empty() || outcome != Outcome::committed);
  }
}

// What the statistics say of a read set is of this one, not of those that the measurement before it made up.
void expect_told_as_done(Engine* engine, std::uint32_t reads, BatchNumber batch) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin();
  for (std::uint32_t i = 0; i < reads; ++i) {
    const std::string key = key_of(i);
    builder.guard(GuardKind::version_equal, OnFalse::fail, builder.key(key),
                  static_cast<std::int64_t>(version_of(engine->find(key).cell.tag)));
  }
  builder.end();
  BatchResults results;
  WriteColumns writes;
  EXPECT_TRUE(
      engine->execute({batch, kStamp, 1000 * batch}, columns, Column<std::uint8_t>(1, 0), &results, &writes).ok());
  const std::string choice = engine->stats().validator_choice;
  EXPECT_TRUE(choice.starts_with(std::to_string(reads) + " reads "));
  const bool was_alone = choice.find("on one thread: ") != std::string::npos;
  EXPECT_EQ(engine->execution().validated, reads);
  if (was_alone) EXPECT_EQ(engine->execution().validated_beside, 0u);
  const std::string from = "two sides are used from ";
  const std::size_t at = choice.find(from);
  const bool is_worth_it = at != std::string::npos && reads >= std::stoul(choice.substr(at + from.size()));
  if (was_alone == is_worth_it) FAIL(choice);
}

TEST(the_choice_is_told_as_it_was_made) {
  for (const auto& engine : {make_engine("auto"), make_device_engine("auto", "coalesced")}) {
    BatchNumber batch = 0;
    for (const std::uint32_t reads : {1024u, 5000u, 20000u}) expect_told_as_done(engine.get(), reads, ++batch);
  }
  const auto single = make_engine("auto", 1);
  expect_told_as_done(single.get(), 2000, 1);
  EXPECT_EQ(single->stats().validator_choice, "2000 reads on one thread: there is one thread, and no device");
}

// What met a busy machine once is not believed for ever.
TEST(it_is_measured_again_now_and_then) {
  constexpr KeyHashSecret kHash{1, 2};
  RecordStore store(kHash, 0, 1 << 20);
  std::vector<KeyId> ids;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "key" + std::to_string(i);
    ids.push_back(hash_key(name, kHash));
    EXPECT_TRUE(store.insert(ids.back(), name));
  }
  const std::vector<std::int64_t> versions(ids.size(), 0);
  const ReadSet set{store.table(), ids, versions};
  CooperativeValidator always(Validation::automatic, 2, ValidatorLanes::coalesced, 0);
  CooperativeValidator rarely(Validation::automatic, 2, ValidatorLanes::coalesced);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(always.validate(store, set, nullptr).first_stale, kAllValid);
    EXPECT_EQ(always.measurements(), i);
    EXPECT_EQ(rarely.validate(store, set, nullptr).first_stale, kAllValid);
    EXPECT_EQ(rarely.measurements(), 1u);
  }
}

TEST(a_table_of_few_records_is_not_measured) {
  const auto engine = std::move(*Engine::create(options_of("auto", 2)));
  expect_told_as_done(engine.get(), 1500, 1);
  EXPECT_EQ(engine->stats().validator_choice, "1500 reads on one thread: the table is too small to measure two sides");
}

TEST(on_the_chosen_device_is_as_guard_by_guard) {
  Engines engines;
  engines.others.push_back(make_device_engine("cooperative", "coalesced"));
  engines.others.push_back(make_device_engine("cooperative", "strided"));
  expect_equal(&engines, 3, sizes_up_to(100000, 12));
  for (const auto& engine : engines.others) {
    EXPECT_TRUE(engine->stats().validator_choice.ends_with("with the device"));
  }
}

// A small batch that is no read set: it runs on the device, and before and behind it the validator does.
void run_batch(Engine* engine, BatchNumber batch, Version first_version) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  for (int i = 0; i < 20; ++i) {
    builder.begin();
    builder.op(OpKind::add, builder.key("count" + std::to_string(i % 7)), Operand::integer, i);
    builder.end();
  }
  BatchResults results;
  WriteColumns writes;
  EXPECT_TRUE(
      engine->execute({batch, kStamp, first_version}, columns, Column<std::uint8_t>(20, 0), &results, &writes).ok());
}

// Read sets and batches by turns on a device with these options, against an engine without one. Returns its calls.
std::uint64_t run_on_failing_device(const EmulatedDeviceOptions& options) {
  OpenedDevice opened = open_emulated(options);
  const auto* const device = static_cast<const EmulatedDevice*>(opened.device.get());
  EngineOptions engine_options = options_of("cooperative", 1);
  engine_options.strategy = "ordered";
  const auto engine = create_engine_with(engine_options, std::make_unique<DeviceExecutor>(std::move(opened)));
  const auto oracle = std::move(*Engine::create(options_of("by-guard", 1)));
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  BatchResults results, expected;
  WriteColumns writes;
  std::uint64_t calls = 0;
  for (BatchNumber step = 0; step < 3; ++step) {
    const Version first_version = 1 + step * 100;
    columns.clear();
    builder.begin();
    for (std::uint32_t i = 0; i < 3000; ++i) {
      builder.guard(GuardKind::version_equal, OnFalse::fail, builder.key("none" + std::to_string(i)),
                    step == 1 && i % 1000 == 700 ? 5 : 0);
    }
    builder.op(OpKind::put, builder.key("count3"), Operand::integer, 7);
    builder.end();
    for (Engine* const one : {engine.get(), oracle.get()}) {
      run_batch(one, 2 * step + 1, first_version);
      EXPECT_TRUE(one->execute({2 * step + 2, kStamp, first_version + 50}, columns, Column<std::uint8_t>(1, 0),
                               one == oracle.get() ? &expected : &results, &writes)
                      .ok());
    }
    EXPECT_TRUE(results.outcome == expected.outcome && results.failed_index == expected.failed_index);
    EXPECT_TRUE(engine->state_hash() == oracle->state_hash());
    if (engine->device().name == "emulated") calls = device->calls();
  }
  const bool goes_on = options.fail_at_call == 0 || options.fail_as == InjectedError::exhausted;
  if (goes_on && options.fail_at_call == 0) EXPECT_EQ(engine->device().reason, "");
  if (!goes_on) EXPECT_EQ(engine->device().name, "cpu");
  return calls;
}

TEST(a_device_that_fails_at_any_call_costs_nothing) {
  const std::uint64_t calls = run_on_failing_device({});
  EXPECT_TRUE(calls > 40);
  for (const InjectedError error : {InjectedError::exhausted, InjectedError::lost, InjectedError::asynchronous}) {
    for (std::uint64_t call = 1; call <= calls; ++call) {
      EmulatedDeviceOptions options;
      options.fail_at_call = call;
      options.fail_as = error;
      run_on_failing_device(options);
      if (has_failed()) return FAIL("call " + std::to_string(call));
    }
  }
}

TEST(what_is_no_read_set) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  const auto add = [&](GuardKind kind, OnFalse on_false, std::uint32_t key) { builder.guard(kind, on_false, key, 0); };
  EXPECT_EQ(count_read_set(columns), 0u);
  builder.begin();
  for (const char* key : {"a", "b", "c", "d"}) builder.key(key);
  for (std::uint32_t i = 0; i < 3; ++i) add(GuardKind::version_equal, OnFalse::fail, i);
  builder.end();
  EXPECT_EQ(count_read_set(columns), 3u);
  columns.guard_kind[2] = static_cast<std::uint8_t>(GuardKind::unchanged);
  EXPECT_EQ(count_read_set(columns), 2u);
  columns.guard_on_false[1] = static_cast<std::uint8_t>(OnFalse::wait);
  EXPECT_EQ(count_read_set(columns), 1u);
  columns.guard_key[0] = 1;
  EXPECT_EQ(count_read_set(columns), 0u);
  columns.guard_key[0] = 0;
  builder.begin();
  builder.end();
  EXPECT_EQ(count_read_set(columns), 0u);  // of two transactions
}

// No record is made for a key that is only checked.
TEST(keys_that_are_only_read_are_not_inserted) {
  auto engine = make_engine("alone");
  const std::size_t records = engine->stats().records + engine->stats().tombstones;
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin();
  for (std::uint32_t i = 0; i < 2000; ++i)
    builder.guard(GuardKind::version_equal, OnFalse::fail, builder.key("none" + std::to_string(i)), 0);
  builder.op(OpKind::put, 7, Operand::integer, 5);
  builder.end();
  BatchResults results;
  WriteColumns writes;
  EXPECT_TRUE(engine->execute({1, kStamp, 1000}, columns, Column<std::uint8_t>(1, 0), &results, &writes).ok());
  EXPECT_EQ(results.outcome[0], static_cast<std::uint8_t>(Outcome::committed));
  EXPECT_EQ(engine->execution().validated, 2000u);
  EXPECT_EQ(engine->stats().records + engine->stats().tombstones, records + 1);
  EXPECT_EQ(describe(*engine, engine->find("none7").cell), "5@1000");
}

// `auto` times only batches for which it has chosen. Its first try has four batches, and four batches of
// `serial` follow. Only then a time is known. A large read set between the first two is not taken for one of them.
TEST(a_read_set_is_no_try_of_auto) {
  EngineOptions options = options_of("alone", 2);
  options.strategy = "auto";
  const auto engine = std::move(*Engine::create(options));
  TransactionColumns read_set, chosen;
  ColumnsBuilder reads(&read_set, kSecret), adds(&chosen, kSecret);
  reads.begin();
  for (std::uint32_t i = 0; i < 3000; ++i) {
    reads.guard(GuardKind::version_equal, OnFalse::fail, reads.key("none" + std::to_string(i)), 0);
  }
  reads.op(OpKind::put, reads.key("own"), Operand::integer, 7);
  reads.end();
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    adds.begin();
    adds.op(OpKind::add, adds.key("count" + std::to_string(i)), Operand::integer, 1);
    adds.end();
  }
  BatchResults results;
  WriteColumns writes;
  BatchHeader header{0, kStamp, 2};
  const auto execute = [&](const TransactionColumns& columns) {
    ++header.number;
    EXPECT_TRUE(engine->execute(header, columns, Column<std::uint8_t>(columns.size(), 0), &results, &writes).ok());
    header.first_version = results.next_version;
    return engine->stats().strategy_choice;
  };
  for (int i = 0; i < 2; ++i) execute(chosen);
  EXPECT_TRUE(execute(chosen).starts_with("pipelined, a try"));
  execute(read_set);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(execute(chosen).find("pipelined not timed yet") != std::string::npos);
  EXPECT_TRUE(execute(chosen).find("pipelined not timed yet") == std::string::npos);
  // A helper need not come in time, also not in a large batch. So it may take more than one try.
  bool has_helpers = false;
  for (int i = 0; i < 5000 && !has_helpers; ++i) {
    has_helpers = execute(chosen).find(" of helpers") != std::string::npos;
  }
  EXPECT_TRUE(has_helpers);
}

}  // namespace
}  // namespace kilokv::test
