// The facade beyond a single batch: full table, before-images, tombstones, dirty records, hash, loading, parked guards.

#include "engine/engine.hpp"

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

void put(Bench& bench, std::string_view key, std::int64_t value) {
  bench.add([&](auto& b) { b.op(OpKind::put, b.key(key), Operand::integer, value); });
}

std::multiset<std::string> take_dirty(Bench& bench, std::size_t max = 1000) {
  std::multiset<std::string> taken;
  bench.engine->take_dirty(max, [&](const RecordView& record) {
    taken.insert(std::string(record.key) + "=" + describe(*bench.engine, record.cell));
  });
  return taken;
}

TEST(unknown_strategy_is_refused) {
  EngineOptions options;
  options.strategy = "magic";
  const auto engine = Engine::create(options);
  ASSERT_TRUE(!engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::invalid_argument);
}

TEST(full_table_refuses_the_batch_whole) {
  Bench bench(3);
  bench.load("a", 1);
  bench.load("b", 2);
  const Hash128 before = bench.engine->state_hash();
  put(bench, "a", 5), put(bench, "c", 5), put(bench, "d", 5);
  const Status full = bench.run();
  EXPECT_EQ(full.code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(full.reason() == ErrorReason::table_full);
  EXPECT_FALSE(full.retry_after_us().has_value());
  EXPECT_EQ(bench.writes.size(), std::size_t{0});
  EXPECT_TRUE(bench.engine->state_hash() == before);
  EXPECT_EQ(bench.get("a"), "1@1");
  EXPECT_EQ(bench.get("c"), "-");
  put(bench, "c", 6);
  EXPECT_TRUE(bench.run().ok());
  put(bench, "d", 6);
  EXPECT_FALSE(bench.run(200).ok());
  EXPECT_EQ(bench.engine->stats().records, std::size_t{3});
}

// Transactions that name the same new key have a key column each.
TEST(new_keys_that_are_named_several_times_count_once) {
  Bench bench(200);
  const auto key_of = [](int i) { return "k" + std::to_string(i * 7919 % 1000); };
  for (int i = 0; i < 300; ++i) put(bench, key_of(i % 150), i);
  bench.add([&](auto& b) {
    b.guard(GuardKind::exists, OnFalse::fail, b.key(key_of(3)), 0);
    b.op(OpKind::add, b.key(key_of(3)), Operand::integer, 1);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_TRUE(bench.outcome(300) == Outcome::committed);
  EXPECT_EQ(bench.get(key_of(3)), "154@400");
  EXPECT_EQ(bench.engine->memory().records, std::size_t{150});

  const std::size_t bytes = bench.engine->memory().sum();
  const Hash128 hash = bench.engine->state_hash();
  for (int i = 100; i < 210; ++i) put(bench, key_of(i), i);
  const Status full = bench.run(1000);
  EXPECT_TRUE(full.reason() == ErrorReason::table_full);
  EXPECT_TRUE(full.message().find("150 records before the new keys of a batch") != std::string::npos);
  EXPECT_EQ(bench.engine->memory().records, std::size_t{150});
  EXPECT_EQ(bench.engine->memory().sum(), bytes);
  EXPECT_TRUE(bench.engine->state_hash() == hash && bench.engine->compute_state_hash() == hash);

  for (int i = 150; i < 200; ++i) put(bench, key_of(i), i), put(bench, key_of(i), i + 1);
  EXPECT_TRUE(bench.run(2000).ok());
  std::set<std::string> expected, seen;
  for (int i = 0; i < 200; ++i) expected.insert(key_of(i));
  std::string last;
  bench.engine->scan("", "", [&](const RecordView& record) {
    EXPECT_TRUE(last < record.key);
    last = record.key;
    seen.insert(last);
    return true;
  });
  EXPECT_TRUE(seen == expected);
}

TEST(keys_that_nobody_wrote_leave_the_table) {
  Bench bench(4);
  bench.load("b", 1);
  for (int round = 0; round < 10; ++round) {
    bench.add([&](auto& b) {
      b.guard(GuardKind::exists, OnFalse::fail, b.key("none"), 0);
      b.op(OpKind::put, b.key("never" + std::to_string(round)), Operand::integer, 1);
    });
    put(bench, "b", round);
    EXPECT_TRUE(bench.run(100 + 10 * static_cast<Version>(round)).ok());
    const auto& images = bench.engine->before_images();
    ASSERT_EQ(images.size(), std::size_t{1});
    EXPECT_TRUE(images[0].id == hash_key("b", kSecret));
  }
  EXPECT_EQ(bench.engine->stats().records, std::size_t{1});
}

// The keys that nobody wrote leave the table after the batch, which moves the slots of others.
TEST(before_images_of_a_range_name_its_keys_although_slots_move) {
  constexpr int kKeys = 700;
  Bench bench;
  std::set<std::pair<std::uint64_t, std::uint64_t>> expected, found;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key" + std::to_string(1000 + i);
    bench.load(key, i, 5);
    const KeyId id = hash_key(key, kSecret);
    expected.insert({id.high, id.low});
  }
  bench.add([&](auto& b) { b.range_op(OpKind::delete_range, "key", "kez", kKeys); });
  bench.add([&](auto& b) {
    b.guard(GuardKind::exists, OnFalse::fail, b.key("none"), 0);
    for (int i = 0; i < kKeys; ++i) b.op(OpKind::put, b.key("never" + std::to_string(i)), Operand::integer, 1);
  });
  ASSERT_TRUE(bench.run().ok());
  for (const BeforeImage& image : bench.engine->before_images()) found.insert({image.id.high, image.id.low});
  EXPECT_TRUE(found == expected);
}

TEST(before_images_are_each_key_once) {
  Bench bench;
  bench.load("a", 1, 5);
  put(bench, "a", 2), put(bench, "n", 3), put(bench, "a", 4);
  bench.add([](auto& b) { b.op(OpKind::del, b.key("n")); });
  EXPECT_TRUE(bench.run().ok());
  const std::vector<BeforeImage>& images = bench.engine->before_images();
  ASSERT_EQ(images.size(), std::size_t{2});
  EXPECT_TRUE(images[0].id == hash_key("a", kSecret));
  EXPECT_EQ(describe(*bench.engine, images[0].cell), "1@5");
  EXPECT_TRUE(images[1].id == hash_key("n", kSecret));
  EXPECT_EQ(describe(*bench.engine, images[1].cell), "-");
}

TEST(tombstones_and_the_floor) {
  Bench bench;
  bench.load("a", 1), bench.load("b", 1);
  bench.add([](auto& b) { b.op(OpKind::del, b.key("a")); });
  bench.add([](auto& b) { b.op(OpKind::del, b.key("b")); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.engine->stats().tombstones, std::size_t{2});
  std::string dropped;
  bench.engine->drop_tombstones(100, [&](std::string_view key) { dropped += key; });
  EXPECT_EQ(dropped, "a");
  EXPECT_EQ(bench.engine->tombstone_floor(), Version{100});
  EXPECT_EQ(bench.get("a"), "-");
  EXPECT_EQ(bench.get("b"), "-@101");
  EXPECT_TRUE(bench.engine->state_hash() == bench.engine->compute_state_hash());
  const auto unchanged = [&](std::string_view key, Version since) {
    bench.add(
        [&](auto& b) { b.guard(GuardKind::unchanged, OnFalse::fail, b.key(key), static_cast<std::int64_t>(since)); });
    EXPECT_TRUE(bench.run(200).ok());
    return bench.outcome(0) == Outcome::committed;
  };
  EXPECT_FALSE(unchanged("a", 99));
  EXPECT_TRUE(unchanged("a", 100));
  EXPECT_FALSE(unchanged("never", 99));
  EXPECT_TRUE(unchanged("b", 101));
  EXPECT_FALSE(unchanged("b", 100));
}

// Step by step, by version, and none of those that were written again; a replica that is told each floor drops the
// same.
TEST(tombstones_are_dropped_in_steps) {
  Bench bench, replica;
  Version version = 100;
  const auto load = [&](const std::string& key, ValueType type) {
    ++version;
    for (Bench* b : {&bench, &replica}) static_cast<void>(b->engine->load(key, version, type, 1, {}));
  };
  for (int i = 0; i < 500; ++i) load("key" + std::to_string(i), i % 5 == 0 ? ValueType::integer : ValueType::absent);
  for (int i = 0; i < 500; i += 2) load("key" + std::to_string(i), ValueType::integer);
  for (int i = 0; i < 500; i += 4) load("key" + std::to_string(i), ValueType::absent);
  const std::size_t all = bench.engine->stats().tombstones;
  const Version wanted = version - 50;
  int steps = 0;
  for (; bench.engine->tombstone_floor() < wanted; ++steps) {
    const std::size_t before = bench.engine->stats().tombstones;
    bench.engine->drop_tombstones(wanted, {}, 20);
    EXPECT_TRUE(before - bench.engine->stats().tombstones <= 20);
    bench.engine->scan({}, {}, [&](const RecordView& record) {
      const bool forgotten = type_of(record.cell.tag) == ValueType::absent &&
                             version_of(record.cell.tag) <= bench.engine->tombstone_floor();
      EXPECT_FALSE(forgotten);
      return true;
    });
    replica.engine->drop_tombstones(bench.engine->tombstone_floor(), {});
    EXPECT_TRUE(bench.engine->state_hash() == replica.engine->state_hash());
  }
  EXPECT_TRUE(steps > 10);
  EXPECT_EQ(bench.engine->stats().tombstones, std::size_t{50});
  EXPECT_TRUE(all > 300);
  EXPECT_TRUE(bench.engine->compute_state_hash() == bench.engine->state_hash());
}

TEST(a_key_deleted_again_and_again_takes_no_more_memory) {
  Bench bench;
  Version version = 0;
  std::size_t memory_bytes = 0;
  for (int i = 0; i < 200000; ++i) {
    static_cast<void>(bench.engine->load("kept" + std::to_string(i % 5000), ++version, ValueType::absent, 0, {}));
    static_cast<void>(bench.engine->load("key", ++version, ValueType::integer, 1, {}));
    static_cast<void>(bench.engine->load("key", ++version, ValueType::absent, 1, {}));
    bench.engine->clear_dirty();
    if (i == 20000) memory_bytes = bench.engine->stats().memory_bytes;
  }
  EXPECT_TRUE(bench.engine->stats().memory_bytes < memory_bytes + (std::size_t{1} << 19));
}

TEST(dirty_records_come_first_in_first_out) {
  Bench bench;
  bench.load("a", 1), bench.load("b", 1);
  EXPECT_EQ(bench.engine->dirty_count(), std::size_t{2});
  bench.engine->clear_dirty();
  EXPECT_TRUE(take_dirty(bench).empty());
  for (Version v = 100; v < 110; ++v) {
    put(bench, "hot", static_cast<std::int64_t>(v)), put(bench, "hot", 1);
    EXPECT_TRUE(bench.run(v * 10).ok());
  }
  put(bench, "b", 2);
  EXPECT_TRUE(bench.run(2000).ok());
  EXPECT_EQ(bench.engine->dirty_count(), std::size_t{2});
  EXPECT_TRUE(take_dirty(bench, 1) == std::multiset<std::string>{"hot=1@1091"});
  put(bench, "hot", 3);
  put(bench, "b", 3);
  EXPECT_TRUE(bench.run(3000).ok());
  EXPECT_EQ(bench.engine->dirty_count(), std::size_t{3});
  EXPECT_TRUE(take_dirty(bench, 1) == std::multiset<std::string>{"b=3@3001"});
  const std::multiset<std::string> rest{"hot=3@3000", "b=3@3001"};  // b was written before it was taken
  EXPECT_TRUE(take_dirty(bench) == rest);
  EXPECT_EQ(bench.engine->dirty_count(), std::size_t{0});
}

// Undone or not: what a batch logs for its deletes is room for the next one's.
TEST(deleting_ranges_again_and_again_takes_no_more_memory) {
  Bench bench;
  for (int i = 0; i < 5000; ++i) put(bench, "key" + std::to_string(i), 1);
  ASSERT_TRUE(bench.run().ok());
  std::size_t memory_bytes = 0;
  Version version = 10000;
  for (int round = 0; round < 30; ++round, version += 100000) {
    bench.add([](auto& b) {
      for (int i = 0; i < 3; ++i) b.range_op(OpKind::delete_range, "key", "", 10000);
      b.op(OpKind::put, b.key("sum"), Operand::integer, INT64_MAX);
      b.op(OpKind::add, b.key("sum"), Operand::integer, 1);
    });
    ASSERT_TRUE(bench.run(version).ok());
    EXPECT_TRUE(bench.outcome(0) == Outcome::overflow);
    bench.add([](auto& b) { b.range_op(OpKind::delete_range, "key", "", 10000); });
    ASSERT_TRUE(bench.run(version + 1000).ok());
    EXPECT_EQ(bench.writes.size(), std::size_t{5000});
    for (int i = 0; i < 5000; ++i) put(bench, "key" + std::to_string(i), 1);
    ASSERT_TRUE(bench.run(version + 2000).ok());
    bench.engine->clear_dirty();
    // By then, `auto` has tried each strategy, and each has its memory.
    if (round == 9) memory_bytes = bench.engine->stats().memory_bytes;
  }
  EXPECT_TRUE(bench.engine->stats().memory_bytes < memory_bytes + (std::size_t{1} << 18));
}

// What `serial` took to undo the writes of a very large batch does not stay for ever. All other memory of a batch does.
TEST(memory_of_a_large_undo_log_is_given_back) {
  constexpr int kOperations = 3'000'000;  // more than the log keeps room for
  Bench bench;
  bench.load("a", 1);
  const auto run = [&](int operations) {
    bench.add([&](auto& b) {
      b.range_op(OpKind::range_get, "a", "b", 1);
      const std::uint32_t key = b.key("a");
      for (int i = 0; i < operations; ++i) b.op(OpKind::put, key, Operand::integer, i);
    });
    EXPECT_TRUE(bench.run(100 + 100 * bench.batch).ok());
    return bench.engine->stats().memory_bytes;
  };
  const std::size_t small = run(1);
  EXPECT_TRUE(run(kOperations) > small + kOperations * std::size_t{20});
  EXPECT_TRUE(run(1) < small + (std::size_t{1} << 18));
}

TEST(a_dropped_tombstone_is_not_visited) {
  Bench bench;
  bench.load("a", 1);
  bench.add([](auto& b) { b.op(OpKind::del, b.key("a")); });
  EXPECT_TRUE(bench.run().ok());
  bench.engine->drop_tombstones(100, [](std::string_view) {});
  EXPECT_TRUE(take_dirty(bench).empty());
  EXPECT_EQ(bench.engine->dirty_count(), std::size_t{0});
}

TEST(load_keeps_the_newer_version) {
  Bench bench;
  bench.load("a", 5, 9);
  bench.load("a", 4, 8);
  EXPECT_EQ(bench.get("a"), "5@9");
  bench.load_bytes("a", "the transaction's second write", 9);
  EXPECT_EQ(bench.get("a"), "'the transaction's second write'@9");
  bench.load_bytes("a", "newer", 10);
  bench.load_bytes("a", "newest", 11);
  EXPECT_EQ(bench.get("a"), "'newest'@11");
  EXPECT_TRUE(bench.engine->state_hash() == bench.engine->compute_state_hash());
}

TEST(would_wait_outside_of_a_batch) {
  Bench bench;
  bench.load("a", 5, 9);
  bench.load_bytes("text", "x");
  struct Case {
    const char* key;
    std::int64_t above;
    OnFalse on_false;
  };
  const auto wait = OnFalse::wait, fail = OnFalse::fail;
  const std::vector<std::pair<std::vector<Case>, bool>> cases = {
      {{{"a", 5, wait}}, true},
      {{{"a", 4, wait}}, false},
      {{{"a", 5, fail}, {"a", 5, wait}}, false},  // a FAIL guard decides first
      {{{"a", 4, fail}, {"a", 5, wait}}, true},
      {{{"a", 4, wait}, {"none", 0, wait}}, true},
      {{{"text", 4, wait}}, false},  // the wrong type is something to say
      {{}, false},
  };
  for (const auto& [guards, expected] : cases) {
    bench.columns.clear();
    bench.add([&guards = guards](auto& b) {
      for (const Case& c : guards) b.guard(GuardKind::greater, c.on_false, b.key(c.key), c.above);
      b.op(OpKind::get, b.key("none"));
    });
    EXPECT_EQ(bench.engine->would_wait(bench.columns, 0, 0), expected);
  }
}

TEST(the_next_time_of_a_transaction) {
  Bench bench;
  bench.load("end", 700, 9);
  bench.load("past", 100, 9);
  bench.load_bytes("text", "x");
  const auto next = [&](TimeUs stamp, const std::function<void(ColumnsBuilder&)>& guards) {
    bench.columns.clear();
    bench.add([&](auto& b) {
      guards(b);
      b.op(OpKind::get, b.key("end"));
    });
    return bench.engine->next_time(bench.columns, 0, stamp);
  };
  const auto after = [](ColumnsBuilder& b, const char* key, TimeUs time) {
    b.guard(GuardKind::time_after, OnFalse::wait, *key == 0 ? kNone : b.key(key), time);
  };
  const auto waits = [](ColumnsBuilder& b) { b.guard(GuardKind::greater, OnFalse::wait, b.key("end"), 800); };
  EXPECT_EQ(next(500, waits), kNever);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "", 600); }), 600);
  EXPECT_EQ(next(600, [&](ColumnsBuilder& b) { after(b, "", 600), waits(b); }), kNever);  // it is reached
  EXPECT_EQ(next(599, [&](ColumnsBuilder& b) { after(b, "", 600); }), 600);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "end", 0); }), 700);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "past", 600), after(b, "none", 600), waits(b); }), kNever);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { waits(b), after(b, "text", 600); }), kNever);
  const auto before = [](ColumnsBuilder& b, TimeUs time) {
    b.guard(GuardKind::time_before, OnFalse::fail, kNone, time);
  };
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { before(b, 650), after(b, "end", 0); }), 650);  // whatever its on_false
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { before(b, 800), after(b, "", 100), after(b, "end", 0); }), 700);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "end", 0), before(b, 650); }), 700);  // the first one decides
  // What would not be postponed now is tried again at once.
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "text", 600); }), 500);
  EXPECT_EQ(next(500, [&](ColumnsBuilder& b) { after(b, "past", 0), after(b, "none", 0); }), 500);
  EXPECT_EQ(next(500,
                 [&](ColumnsBuilder& b) {
                   b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "e", "f", 8), after(b, "end", 0);
                 }),
            500);
  EXPECT_EQ(next(500,
                 [&](ColumnsBuilder& b) {
                   b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "e", "f", 9), after(b, "end", 0);
                 }),
            700);
}

// Nothing in the batch names a key.
TEST(a_batch_without_keys_runs_on_every_strategy) {
  constexpr std::size_t kTransactions = 600;
  for (const std::string& strategy : Engine::strategies()) {
    for (const char* const device : {"cpu", "emulated"}) {
      EngineOptions options;
      options.strategy = strategy;
      options.device = device;
      options.threads = 2;
      auto engine = Engine::create(options);
      if (!engine.ok()) FAIL(strategy + " to run on " + device + ": " + engine.status().message());
      if (!engine.ok()) continue;
      TransactionColumns columns;
      ColumnsBuilder b(&columns, options.secret);
      for (std::size_t t = 0; t < kTransactions; ++t) {
        b.begin();
        b.guard(GuardKind::time_before, OnFalse::fail, kNone, t % 3 == 0 ? kStamp : kStamp + 1);
        b.guard(GuardKind::time_after, OnFalse::wait, kNone, t % 3 == 1 ? kStamp : kStamp + 1);
        b.end();
      }
      const Column<std::uint8_t> expires(kTransactions, 1);
      BatchResults results;
      WriteColumns writes;
      EXPECT_TRUE((*engine)->execute({1, kStamp, 1}, columns, expires, &results, &writes).ok());
      constexpr Outcome kExpected[] = {Outcome::guard_failed, Outcome::committed, Outcome::wait_expired};
      for (std::size_t t = 0; t < kTransactions; ++t) {
        EXPECT_EQ(static_cast<Outcome>(results.outcome[t]), kExpected[t % 3]);
      }
      EXPECT_EQ(writes.size(), 0u);
    }
  }
}

TEST(byte_values_stay_readable_until_released) {
  Bench bench;
  bench.load_bytes("text", "first");
  bench.add([](auto& b) { b.op(OpKind::get, b.key("text")); });
  bench.add([](auto& b) { b.op(OpKind::put, b.key("text"), Operand::bytes, b.value("second")); });
  EXPECT_TRUE(bench.run().ok());
  const Cell first = bench.results.op_cell[0];
  bench.engine->retain(first);
  bench.engine->release_through(bench.batch);
  EXPECT_EQ(bench.engine->bytes_of(first), "first");
  bench.engine->release(first);
  EXPECT_EQ(bench.get("text"), "'second'@101");
}

// Replaying a batch's writes over the state before it gives the state after it; hashes and counts agree with the table.
TEST(hash_and_replay_after_random_batches) {
  constexpr unsigned kSeed = 20261121;
  std::mt19937 random(kSeed);
  Bench live, replica;
  Version version = 1;
  for (int round = 0; round < 300; ++round) {
    for (unsigned t = 0; t < 20; ++t) {
      live.add(
          [&](auto& b) {
            const auto key = [&] { return b.key("key" + std::to_string(random() % 40)); };
            if (random() % 3 == 0) b.guard(GuardKind::less, random() % 2 ? OnFalse::wait : OnFalse::fail, key(), 3);
            for (unsigned i = 0; i < 4; ++i) {
              switch (random() % 5) {
                case 0: b.op(OpKind::put, key(), Operand::bytes, b.value("v" + std::to_string(random() % 9))); break;
                case 1: b.op(OpKind::del, key()); break;
                case 2: b.range_op(OpKind::delete_range, "key1", "key13", 2); break;
                default: b.op(OpKind::add, key(), Operand::integer, static_cast<std::int64_t>(random() % 9) - 4);
              }
            }
          },
          static_cast<std::uint8_t>(random() % 2));
    }
    EXPECT_TRUE(live.run(version).ok());
    std::size_t value = 0;
    for (std::size_t i = 0; i < live.writes.size(); ++i) {
      const auto type = static_cast<ValueType>(live.writes.type[i]);
      std::string_view bytes;
      if (type == ValueType::bytes) {
        const std::uint32_t begin = value == 0 ? 0 : live.writes.value_end[value - 1];
        bytes = {live.writes.value_bytes.data() + begin, live.writes.value_end[value++] - begin};
      }
      static_cast<void>(
          replica.engine->load(live.writes.key(i), version + live.writes.rank[i], type, live.writes.word[i], bytes));
    }
    version = live.results.next_version;
    live.engine->release_through(live.batch);
    if (round % 40 == 39) {
      for (Bench* bench : {&live, &replica}) bench->engine->drop_tombstones(version - 500, [](std::string_view) {});
    }
    EXPECT_TRUE(live.engine->state_hash() == live.engine->compute_state_hash());
    EXPECT_TRUE(live.engine->state_hash() == replica.engine->state_hash());
    EXPECT_EQ(live.engine->stats().records, replica.engine->stats().records);
    EXPECT_EQ(live.engine->stats().tombstones, replica.engine->stats().tombstones);
    if (has_failed()) {
      FAIL("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
      return;
    }
  }
}

// Admission reserves by these bounds, so the memory may never grow by more.
TEST(memory_grows_by_no_more_than_the_bounds) {
  std::mt19937_64 random(20261124);
  constexpr std::size_t kBlock = std::size_t{1} << 20;  // the keys are in blocks
  Bench bench;
  std::uint64_t bound = 0;
  const EngineMemory before = bench.engine->memory();
  for (int i = 0; i < 30000; ++i) {
    std::string key = std::to_string(i) + "/";
    key.append(random() % 200, 'k');
    const std::string value(random() % (i % 100 == 0 ? 70000 : 300), 'v');
    bound += new_key_bytes(key.size()) + new_value_bytes(value.size());
    EXPECT_TRUE(bench.engine->load(key, static_cast<Version>(i) + 1, ValueType::bytes, 0, value).ok());
    const EngineMemory now = bench.engine->memory();
    EXPECT_TRUE(now.key_bytes + now.index_bytes + now.value_bytes <=
                before.key_bytes + before.index_bytes + before.value_bytes + bound + kBlock);
    EXPECT_TRUE(now.table_bytes <= table_bytes_until(before.slots, now.records));
    if (has_failed()) return;
  }
  EXPECT_EQ(bench.engine->memory().records, std::size_t{30000});
  EXPECT_TRUE(bench.engine->memory().value_bytes * 10 > bound * 5);  // the bounds are no more than they need to be
}

TEST(values_that_are_replaced_give_their_memory_back) {
  Bench bench;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(
        bench.engine->load("key" + std::to_string(i), 1, ValueType::bytes, 0, std::string(std::size_t(i), 'v')).ok());
  }
  EXPECT_TRUE(bench.engine->memory().value_bytes > std::size_t{400000});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(bench.engine->load("key" + std::to_string(i), 2, ValueType::integer, 5, {}).ok());
  }
  EXPECT_EQ(bench.engine->memory().value_bytes, std::size_t{0});
}

// A table takes the memory of its next eighth before it grows, and never has two copies of its slots.
TEST(a_table_that_grows_takes_an_eighth_more) {
  const std::size_t now = table_bytes_until(1000, 780);
  EXPECT_EQ(table_bytes_until(1000, 0), now);
  EXPECT_TRUE(table_bytes_until(1000, 781) > now * 11 / 10);
  EXPECT_TRUE(table_bytes_until(1000, 781) < now * 12 / 10);
  EXPECT_TRUE(table_bytes_until(1000, 100000) > std::size_t{100000} * 41 * 5 / 4);
  EXPECT_TRUE(table_bytes_until(1000, 100000) < std::size_t{100000} * 62);
}

}  // namespace
}  // namespace kilokv::test
