// The record store while thousands of keys come and go: random batches on each platform against a model. The model is a
// std::map (engine/referee/model.hpp). It lives as long as the chain, and is never read from the engine. A chain has
// phases in which the table grows, and phases in which most keys are deleted and forgotten. Batches without ranges run
// in parallel where the platform can do so. They write few keys, so that most chunks of the index stay as they are.
// Batches with ranges then ask what changed. After each batch the test checks the referee's verdict, before-images and
// counts. Now and then it checks all records, the dirty ones, and the hash. A failure prints the command that replays
// its chain.
//
// KILOKV_TEST_SEED=N runs only chain N. Then the test does not check how often rare things happened.

#include "engine/table/record_store.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/key_hash.hpp"
#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{31, 37};
constexpr std::uint64_t kKeys = 12000;   // names; how many of them exist changes
constexpr std::size_t kBatchesKept = 8;  // that guards ask about, and whose tombstones are kept

std::string key_of(std::uint64_t i) {
  char key[16];
  std::snprintf(key, sizeof(key), "key%05llu", static_cast<unsigned long long>(i));
  return key;
}

struct Coverage {
  std::uint64_t batches = 0, parallel = 0, on_device = 0, refused = 0, unwritten = 0;
  std::uint64_t growths = 0, held = 0, failed = 0, pairs = 0, dropped = 0, images = 0, records_max = 0;
};

// An engine, and a model of it.
class Chain {
 public:
  Chain(EngineOptions options, std::uint64_t seed, Coverage* coverage) : random_(seed), coverage_(*coverage) {
    options.secret = kSecret;
    if (seed % 3 == 0) options.table_records_max = 4000;  // refuses batches
    engine_ = std::move(*Engine::create(options));
    slots_ = engine_->stats().table_slots;
  }

  // What went wrong first; empty: nothing.
  std::string run() {
    for (const std::size_t records : {3000, 300, 5000, 500, 7000}) {
      const bool grows = model_.records.size() < records;
      for (int round = 0; round < 60 && difference_.empty() && (model_.records.size() < records) == grows; ++round) {
        one_round(grows);
        if (round % 5 == 0) check_all();
      }
    }
    check_all();
    return difference_;
  }

 private:
  void fail(const std::string& text) {
    if (difference_.empty()) difference_ = text + " (batch " + std::to_string(header_.number) + ")";
  }
  void fail(const Status& status) {
    if (!status.ok()) fail(status.message());
  }

  void one_round(bool grows) {
    window_ = random_.below(kKeys);
    write_batch(5 + random_.below(60));
    if (grows) create_batch();
    if (random_.chance(0.3)) write_batch(1 + random_.below(5));
    if (random_.chance(0.2)) load_some();
    if (random_.chance(0.4)) drop_tombstones();
    range_batch(grows);
    if (random_.chance(0.1)) take_dirty();
  }

  std::string any_key() { return key_of(random_.below(kKeys)); }
  // One that exists, if any does.
  std::string known_key() {
    const auto at = model_.records.lower_bound(any_key());
    return at != model_.records.end() ? at->first : any_key();
  }
  void put(const std::string& key) {
    const std::uint32_t number = builder_.key(key);
    if (random_.chance(0.7)) {
      return builder_.op(OpKind::put, number, Operand::integer, static_cast<std::int64_t>(header_.number));
    }
    const std::string bytes(random_.below(40), static_cast<char>('a' + random_.below(26)));
    builder_.op(OpKind::put, number, Operand::bytes, builder_.value(bytes));
  }

  // Changes few keys, all over the table. Some transactions fail: the keys that they would create leave the table.
  void write_batch(std::uint64_t transactions) {
    for (std::uint64_t t = 0; t < transactions; ++t) {
      builder_.begin(static_cast<std::uint8_t>(random_.below(2)));
      switch (random_.below(6)) {
        case 0:
        case 1: {
          const std::string guarded = known_key();
          builder_.guard(GuardKind::version_equal, OnFalse::fail, builder_.key(guarded), 1);  // no batch writes it
          for (std::uint64_t i = 1 + random_.below(3); i > 0; --i) put(any_key());
          break;
        }
        case 2: builder_.op(OpKind::del, builder_.key(known_key())); break;
        case 3: builder_.op(OpKind::add, builder_.key(known_key()), Operand::integer, 1); break;
        default: put(known_key());
      }
      builder_.end();
    }
    execute();
  }

  // New keys side by side.
  void create_batch() {
    for (std::uint64_t i = 60 + random_.below(300); i > 0; --i) {
      builder_.begin();
      put(key_of(window_ = (window_ + 1 + random_.below(2)) % kKeys));
      builder_.end();
    }
    execute();
  }

  // As recovery does.
  void load_some() {
    for (std::uint64_t i = 1 + random_.below(20); i > 0; --i) {
      const std::string key = random_.chance(0.5) ? known_key() : any_key();
      const Version version = header_.first_version++;
      const auto type = static_cast<ValueType>(random_.below(3));
      const Status status = engine_->load(key, version, type, 5, "loaded");
      count_growth();
      if (!status.ok() && !model_.records.contains(key)) continue;  // the table is full
      fail(status);
      ModelValue value;
      if (type == ValueType::integer) value = std::int64_t{5};
      if (type == ValueType::bytes) value = "loaded";
      model_.records[key] = {value, version};
      dirty_.insert(key);
      visitable_.insert(key);
      recent_.push_back(key);
    }
  }

  // Narrow ranges around what was written lately, and anywhere; some are wide.
  void with_range(const std::function<void(const std::string&, const std::string&)>& use) {
    const std::uint64_t width = random_.chance(0.1) ? kKeys : 2 + random_.below(120);
    std::string from = any_key();
    if (!recent_.empty() && random_.chance(0.7)) from = recent_[random_.below(recent_.size())];
    const std::uint64_t at = std::strtoull(from.c_str() + 3, nullptr, 10);
    const std::uint64_t begin = at - std::min(at, random_.below(width / 2 + 1));
    use(key_of(begin), random_.chance(0.05) ? "" : key_of(begin + width));
  }
  // As of the end of one of the last batches.
  Version draw_version() {
    if (before_.empty() || random_.chance(0.2)) return header_.first_version - 1 + random_.below(20);
    return before_[random_.below(before_.size())] - 1;
  }

  void range_batch(bool grows) {
    for (std::uint64_t t = 10 + random_.below(40); t > 0; --t) {
      builder_.begin(static_cast<std::uint8_t>(random_.below(2)), random_.chance(0.5) ? 0 : 1000);
      if (random_.chance(0.8)) {
        with_range([&](const std::string& from, const std::string& to) {
          builder_.range_guard(GuardKind::range_unchanged, random_.chance(0.2) ? OnFalse::wait : OnFalse::fail, from,
                               to, draw_version());
        });
      }
      for (std::uint64_t i = random_.below(3); i > 0; --i) {
        if (random_.chance(0.5)) {
          with_range([&](const std::string& from, const std::string& to) {
            builder_.range_op(random_.chance(0.5) ? OpKind::range_get : OpKind::range_get_reverse, from, to,
                              static_cast<std::uint32_t>(1 + random_.below(20)));
          });
        } else if (random_.chance(grows ? 0.1 : 0.9)) {
          with_range([&](const std::string& from, const std::string& to) {
            builder_.range_op(OpKind::delete_range, from, to, static_cast<std::uint32_t>(1 + random_.below(100)));
          });
        } else {
          put(known_key());
          if (random_.chance(0.2)) builder_.op(OpKind::add, builder_.key(known_key()), Operand::integer, INT64_MAX);
        }
      }
      builder_.end();
    }
    if (random_.chance(0.5)) check_would_wait();
    execute();
  }

  // A look at ranges outside of a batch.
  void check_would_wait() {
    for (std::size_t t = 0; t < columns_.size(); ++t) {
      const ModelRun run = run_on_model(model_, columns_, t, header_.first_version, header_.time_us);
      if ((run.outcome == Outcome::postponed) != engine_->would_wait(columns_, t, header_.time_us)) {
        fail("would_wait of transaction " + std::to_string(t));
      }
    }
  }

  void execute() {
    Column<std::uint8_t> expires(columns_.size());
    for (std::size_t t = 0; t < expires.size(); ++t) expires[t] = columns_.wait_timeout_us[t] == 0 ? 1 : 0;
    const Status status = engine_->execute(header_, columns_, expires, &results_, &writes_);
    count_growth();
    ++coverage_.batches;
    if (status.ok()) {
      check_images();
      check_results(expires);
      count_batch();
      before_.push_back(header_.first_version);
      if (before_.size() > kBatchesKept) before_.erase(before_.begin());
      header_.first_version = results_.next_version;
    } else {
      ++coverage_.refused;
      if (status.code() != StatusCode::resource_exhausted) fail(status);
      if (!engine_->before_images().empty()) fail("before-images of a batch that was refused");
      check_all();
    }
    engine_->release_through(header_.number);
    ++header_.number;
    header_.time_us += 1000;
    columns_.clear();
  }

  ModelRecord record_of(Cell cell) const {
    ModelRecord record{{}, version_of(cell.tag)};
    if (type_of(cell.tag) == ValueType::integer) record.value = static_cast<std::int64_t>(cell.word);
    if (type_of(cell.tag) == ValueType::bytes) record.value = std::string(engine_->bytes_of(cell));
    return record;
  }

  // Each key that the batch wrote, once, as the model had it: the model is not yet at the batch.
  void check_images() {
    const auto order = [](KeyId a, KeyId b) { return a.high != b.high ? a.high < b.high : a.low < b.low; };
    std::map<KeyId, ModelRecord, decltype(order)> expected(order);
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      const auto found = model_.records.find(writes_.key(i));
      expected.try_emplace(hash_key(writes_.key(i), kSecret),
                           found == model_.records.end() ? ModelRecord{} : found->second);
    }
    const std::vector<BeforeImage>& images = engine_->before_images();
    coverage_.images += images.size();
    if (images.size() != expected.size()) fail("the number of before-images");
    for (const BeforeImage& image : images) {
      const auto found = expected.find(image.id);
      if (found == expected.end()) return fail("a before-image of a key that the batch did not write");
      if (!(found->second == record_of(image.cell))) return fail("a before-image");
      expected.erase(found);
    }
  }

  // Brings the model to the end of the batch.
  void check_results(const Column<std::uint8_t>& expires) {
    const auto bytes_of = [this](Cell cell) { return engine_->bytes_of(cell); };
    fail(check_execution({header_, columns_, expires, results_, writes_, bytes_of}, referee_mode(engine_->execution()),
                         &model_));
    if (columns_.range_limit.empty()) recent_.clear();
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      dirty_.emplace(writes_.key(i));
      visitable_.emplace(writes_.key(i));
      recent_.emplace_back(writes_.key(i));
    }
    check_counts();
  }

  void check_counts() {
    const auto is_live = [](const auto& entry) { return !std::holds_alternative<std::monostate>(entry.second.value); };
    const auto live = std::count_if(model_.records.begin(), model_.records.end(), is_live);
    const EngineStats stats = engine_->stats();
    if (stats.records != static_cast<std::size_t>(live)) fail("the number of records");
    if (stats.tombstones != model_.records.size() - stats.records) fail("the number of tombstones");
    if (engine_->dirty_count() < dirty_.size()) fail("the number of dirty records");
    coverage_.records_max = std::max(coverage_.records_max, std::uint64_t{model_.records.size()});
  }
  void check_all() { fail(check_state(model_, *engine_)); }

  // In steps of any size: whatever the floor then is, there are no tombstones up to it, and all others are there.
  void drop_tombstones() {
    if (before_.size() < kBatchesKept) return;
    const Version wanted = before_[random_.below(3)] + random_.below(30);
    for (int step = 0; step < 3; ++step) {
      const std::size_t looked_max = random_.chance(0.3) ? SIZE_MAX : 1 + random_.below(60);
      const Version floor = engine_->tombstone_floor();
      std::set<std::string, std::less<>> dropped, expected;
      engine_->drop_tombstones(
          wanted, [&](std::string_view key) { dropped.emplace(key); }, looked_max);
      const Version reached = engine_->tombstone_floor();
      if (reached < floor || reached > std::max(floor, wanted)) return fail("the floor of tombstones");
      if (looked_max == SIZE_MAX && reached != std::max(floor, wanted)) return fail("tombstones that are left");
      for (const auto& [key, record] : model_.records) {
        const bool is_tombstone = std::holds_alternative<std::monostate>(record.value);
        if (is_tombstone && record.version <= reached) expected.insert(key);
      }
      model_.drop_tombstones(reached);
      for (const std::string& key : expected) dirty_.erase(key);
      if (dropped != expected) return fail("the tombstones that were dropped");
      coverage_.dropped += dropped.size();
    }
    check_counts();
  }

  // Every dirty record is visited. So may be one that was written since all were taken.
  void take_dirty() {
    const std::size_t wanted = random_.chance(0.5) ? SIZE_MAX : random_.below(500);
    const std::size_t expected = std::min(wanted, engine_->dirty_count());
    std::size_t visited = 0;
    const std::size_t taken = engine_->take_dirty(wanted, [&](const RecordView& record) {
      ++visited;
      const std::string key(record.key);
      dirty_.erase(key);
      if (!visitable_.contains(key)) fail("a record that is not dirty was visited");
      const auto found = model_.records.find(record.key);
      if (found == model_.records.end() || !(found->second == record_of(record.cell)))
        fail("what a dirty record holds");
    });
    if (taken != expected || visited > taken) fail("the number of dirty records that are taken");
    if (engine_->dirty_count() > 0) return;
    if (!dirty_.empty()) fail("a dirty record that was not visited");
    visitable_.clear();
  }

  void count_growth() {
    const std::size_t slots = engine_->stats().table_slots;
    coverage_.growths += slots != slots_ ? 1 : 0;
    slots_ = slots;
  }
  void count_batch() {
    const ExecutionReport& report = engine_->execution();
    coverage_.parallel += std::string_view(report.strategy) != "serial" ? 1 : 0;
    coverage_.on_device += report.on_device ? 1 : 0;
    coverage_.pairs += results_.pair_cell.size();
    for (std::size_t t = 0; t < columns_.size(); ++t) {
      const bool guarded = columns_.guard_begin(t) < columns_.guard_end[t];
      if (!guarded) continue;
      const bool held = results_.outcome[t] == static_cast<std::uint8_t>(Outcome::committed);
      if (columns_.range_limit.empty()) {
        coverage_.unwritten += held ? 0 : 1;
      } else {
        ++(held ? coverage_.held : coverage_.failed);
      }
    }
  }

  Random random_;
  Coverage& coverage_;
  std::unique_ptr<Engine> engine_;
  ModelState model_;
  TransactionColumns columns_;
  ColumnsBuilder builder_{&columns_, kSecret};
  BatchHeader header_{1, 1'000'000, 2};
  BatchResults results_;
  WriteColumns writes_;
  std::vector<Version> before_;                   // first versions of the last batches
  std::vector<std::string> recent_;               // keys written since the last batch without ranges began
  std::set<std::string, std::less<>> dirty_;      // written since they were visited
  std::set<std::string, std::less<>> visitable_;  // written since none was left
  std::uint64_t window_ = 0;
  std::size_t slots_ = 0;
  std::string difference_;
};

// Where and how the batches of a chain run.
struct Platform {
  const char* test;
  const char* strategy;
  const char* device = "cpu";
};

void run_chains(const Platform& platform) {
  constexpr std::uint64_t kChains = 3;
  const char* const replayed = std::getenv("KILOKV_TEST_SEED");
  const std::uint64_t first = replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : 1;
  const std::uint64_t last = replayed != nullptr ? first : kChains;
  Coverage coverage;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    EngineOptions options;
    options.strategy = platform.strategy;
    options.device = platform.device;
    options.threads = 2;
    const std::string difference = Chain(options, seed, &coverage).run();
    if (difference.empty()) continue;
    std::fprintf(stderr, "replay: KILOKV_TEST_SEED=%llu engine_record_store_test %s\n",
                 static_cast<unsigned long long>(seed), platform.test);
    return FAIL(difference);
  }
  std::printf("  %llu batches, %llu in parallel, %llu refused: the table grew %llu times, to %llu records\n",
              static_cast<unsigned long long>(coverage.batches), static_cast<unsigned long long>(coverage.parallel),
              static_cast<unsigned long long>(coverage.refused), static_cast<unsigned long long>(coverage.growths),
              static_cast<unsigned long long>(coverage.records_max));
  std::printf("  range guards: %llu held, %llu did not; %llu pairs, %llu tombstones dropped, %llu before-images\n",
              static_cast<unsigned long long>(coverage.held), static_cast<unsigned long long>(coverage.failed),
              static_cast<unsigned long long>(coverage.pairs), static_cast<unsigned long long>(coverage.dropped),
              static_cast<unsigned long long>(coverage.images));
  const bool is_serial = std::string_view(platform.strategy) == "serial";
  EXPECT_EQ(coverage.on_device > 0, std::string_view(platform.device) != "cpu");
  EXPECT_EQ(coverage.parallel > coverage.batches / 3, !is_serial);
  if (replayed != nullptr) return;
  EXPECT_TRUE(coverage.records_max > 5000);
  EXPECT_TRUE(coverage.growths > 10 * kChains);
  EXPECT_TRUE(coverage.held > 500 * kChains && coverage.failed > 500 * kChains);
  EXPECT_TRUE(coverage.unwritten > 500 * kChains);
  EXPECT_TRUE(coverage.refused > 0);
  EXPECT_TRUE(coverage.dropped > 2000 * kChains);
}

TEST(keys_that_come_and_go_on_serial) { run_chains({"keys_that_come_and_go_on_serial", "serial"}); }
TEST(keys_that_come_and_go_on_ordered) { run_chains({"keys_that_come_and_go_on_ordered", "ordered"}); }
TEST(keys_that_come_and_go_on_prstm) { run_chains({"keys_that_come_and_go_on_prstm", "prstm"}); }
TEST(keys_that_come_and_go_on_kilo) { run_chains({"keys_that_come_and_go_on_kilo", "kilo"}); }
TEST(keys_that_come_and_go_on_local) { run_chains({"keys_that_come_and_go_on_local", "local"}); }
TEST(keys_that_come_and_go_on_the_emulated_device) {
  run_chains({"keys_that_come_and_go_on_the_emulated_device", "ordered", "emulated"});
}

// More records change than the index may lag behind: ranges then look at all keys, and find what changed. Step by step
// the index catches up, while more records change, and keys come and go.
TEST(an_index_that_lags_behind_catches_up) {
  constexpr std::size_t kBehind = 50, kCaughtUp = 40;
  RecordStore store(kSecret, 64, 100000, kBehind, kCaughtUp);
  Random random(5);
  Version version = 1;
  const auto write = [&](const std::string& key) {
    if (store.find(key) == store.table().absent_slot()) EXPECT_TRUE(store.insert(hash_key(key, kSecret), key));
    const std::uint32_t slot = store.find(key);
    const Cell before = store.table()[slot].cell;
    const bool deletes = random.chance(0.1) && type_of(before.tag) == ValueType::integer;
    store.table()[slot].cell = {0, make_tag(++version, deletes ? ValueType::absent : ValueType::integer)};
    store.settle(slot, before);
  };
  const auto newer = [&](Version since, std::size_t* looked) {
    std::size_t found = 0;
    *looked = 0;
    store.scan_newer("", "", since, [&](std::uint32_t slot, std::string_view) {
      ++*looked;
      found += version_of(store.table()[slot].cell.tag) > since ? 1 : 0;
      return true;
    });
    return found;
  };
  std::uint64_t rounds_behind = 0, rounds_caught_up = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t writes = random.below(round % 200 == 0 ? 4000 : 30);
    for (std::uint64_t i = 0; i < writes; ++i) write(key_of(random.below(3000)));
    if (random.chance(0.2)) store.drop_tombstones(version - random.below(100), 30, {});
    store.catch_up();
    const Version since = version - random.below(std::min<Version>(version, 60));
    std::size_t expected = 0, looked = 0;
    store.scan("", "", [&](std::uint32_t slot, std::string_view) {
      expected += version_of(store.table()[slot].cell.tag) > since ? 1 : 0;
      return true;
    });
    ASSERT_EQ(newer(since, &looked), expected);
    std::size_t none_newer = 0;
    ASSERT_EQ(newer(version, &none_newer), std::size_t{0});
    ++(none_newer == 0 ? rounds_caught_up : rounds_behind);
  }
  std::printf("rounds behind: %llu, caught up: %llu\n", static_cast<unsigned long long>(rounds_behind),
              static_cast<unsigned long long>(rounds_caught_up));
  EXPECT_TRUE(rounds_behind > 50 && rounds_caught_up > 50);
}

// Keys that come split the chunk of a key that changed. The index must still find the change.
TEST(changes_are_found_after_a_split_moved_them) {
  for (std::uint64_t changed = 0; changed < 2000; changed += 97) {
    RecordStore store(kSecret, 64, 100000);
    std::vector<std::string> names;
    std::vector<NewKey> keys;
    const auto insert = [&](std::uint64_t from) {
      names.clear();
      keys.clear();
      for (std::uint64_t i = from; i < 2000; i += 2) names.push_back(key_of(i));
      for (const std::string& name : names) keys.push_back({hash_key(name, kSecret), name});
      ASSERT_TRUE(store.insert(keys, true));
    };
    const auto write = [&](std::uint64_t key, Version version) {
      const std::uint32_t slot = store.find(key_of(key));
      const Cell before = store.table()[slot].cell;
      store.table()[slot].cell = {0, make_tag(version, ValueType::integer)};
      store.settle(slot, before);
    };
    insert(0);
    for (std::uint64_t i = 0; i < 2000; i += 2) write(i, 1);
    write(changed / 2 * 2, 5);
    store.catch_up();
    insert(1);
    bool found = false;
    store.scan_newer("", "", 4, [&](std::uint32_t slot, std::string_view) {
      found = found || version_of(store.table()[slot].cell.tag) == 5;
      return true;
    });
    ASSERT_TRUE(found);
  }
}

// Everything that a key takes: its entry in the arena, its place in the index, its byte values. Rounds have the same
// numbers of keys and values of every size.
TEST(keys_that_come_and_go_take_no_more_memory) {
  constexpr std::uint64_t kCreated = 3000;
  const std::unique_ptr<Engine> engine = std::move(*Engine::create({.strategy = "serial", .secret = kSecret}));
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  BatchResults results;
  WriteColumns writes;
  BatchHeader header{1, 1'000'000, 2};
  const auto execute = [&] {
    ASSERT_TRUE(engine->execute(header, columns, Column<std::uint8_t>(columns.size()), &results, &writes).ok());
    engine->release_through(header.number++);
    header.first_version = results.next_version;
    columns.clear();
  };
  const auto put = [&](std::uint64_t key, std::size_t bytes) {
    builder.begin();
    builder.op(OpKind::put, builder.key(key_of(key)), Operand::bytes, builder.value(std::string(bytes, 'x')));
    builder.end();
  };
  std::size_t memory_bytes = 0;
  for (std::uint64_t round = 0; round < 30; ++round) {
    const std::uint64_t begin = 10000 + round * 1000;
    for (std::uint64_t i = 0; i < kCreated; ++i) put(begin + i, i % 1000);
    execute();
    for (std::uint64_t i = 0; i < kCreated; ++i) put(begin + i, (i + 500) % 1000);  // replaced
    execute();
    // Values that nobody keeps: of a guard that fails, and of a write that the next one replaces.
    for (std::uint64_t i = 0; i < kCreated; ++i) {
      builder.begin();
      builder.guard(GuardKind::absent, OnFalse::fail, builder.key(key_of(begin + i)), 0);
      builder.op(OpKind::put, builder.key(key_of(begin + kKeys + i)), Operand::bytes,
                 builder.value(std::string(i % 1000, 'y')));
      builder.end();
    }
    put(begin, 100);
    put(begin, 200);
    execute();
    for (std::uint64_t i = 0; i < 2 * kCreated; ++i) {
      const std::string bytes(i % 900, 'z');
      ASSERT_TRUE(engine->load(key_of(begin + i % kCreated), header.first_version++, ValueType::bytes, 0, bytes).ok());
    }
    EXPECT_EQ(engine->stats().records, kCreated);
    const std::size_t full_bytes = engine->stats().memory_bytes;
    builder.begin();
    builder.range_op(OpKind::delete_range, "key", "", kCreated);
    builder.end();
    execute();
    engine->drop_tombstones(header.first_version - 1, {});
    engine->clear_dirty();
    EXPECT_EQ(engine->stats().records + engine->stats().tombstones, std::size_t{0});
    if (round == 2) memory_bytes = full_bytes;
    if (round > 2) EXPECT_TRUE(full_bytes <= memory_bytes);
    if (test::has_failed()) return FAIL("round " + std::to_string(round));
  }
}

}  // namespace
}  // namespace kilokv::engine
