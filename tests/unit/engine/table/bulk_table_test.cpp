// The record table that a grid works on: lookup, insertion and removal in bulk against a map, on several threads; ids
// that are there twice; the numbers of the records of a batch; a full table. Also the device's copy of the host's
// table: it is built, kept up to date, enlarged, and refused.

#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/device_records.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/platform/host.hpp"
#include "engine/sim/sim_platform.hpp"
#include "engine/table/bulk_table.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

// A table in host memory and a team that works on it, or the simulator's lanes, each run under another schedule.
struct HostTable {
  HostTable(std::uint32_t threads, std::uint32_t slots) : team(threads), capacity(slots), memory(4 * slots) {}
  HostTable(Lanes* simulated, std::uint64_t seed, std::uint32_t slots) : HostTable(1, slots) {
    lanes = simulated;
    schedule.seed = seed << 20;
  }

  struct Item {
    KeyId id;
    BulkAction action;
    Cell cell;
    std::uint32_t slot = 0;
  };

  // Runs the items; their cells and slots are then those found.
  void run(std::vector<Item>* items) {
    std::vector<KeyId> ids;
    std::vector<std::uint8_t> actions, pending(items->size());
    std::vector<std::uint32_t> slot_of(items->size());
    std::vector<std::uint64_t> cells;
    words = {};
    BulkArguments<HostSpace> a;
    for (const Item& item : *items) {
      ids.push_back(item.id);
      actions.push_back(static_cast<std::uint8_t>(item.action));
      cells.insert(cells.end(), {item.cell.word, item.cell.tag});
      a.inserting += item.action == BulkAction::insert || item.action == BulkAction::put ? 1 : 0;
      a.removing += item.action == BulkAction::remove ? 1 : 0;
    }
    a.slots = memory.data();
    a.capacity = capacity;
    a.size = static_cast<std::uint32_t>(items->size());
    a.first_epoch = epoch;
    a.ids = ids.data();
    a.actions = actions.data();
    a.slot_of = slot_of.data();
    a.pending = pending.data();
    a.cells = cells.data();
    a.words = words.data();
    on_threads([&](auto& platform) { BulkRun(platform, a).run(); });
    epoch += static_cast<std::uint32_t>(words[kBulkRounds]);
    for (std::size_t i = 0; i < items->size(); ++i) {
      (*items)[i].cell = {cells[2 * i], cells[2 * i + 1]};
      (*items)[i].slot = slot_of[i];
    }
  }

  // A batch finds these ids and numbers their records. Then it adds 1 to the word of each record, and the table gets
  // the records. `record_of`: the numbers of the records; empty: the run finds them, and fills it.
  struct Numbered {
    std::vector<std::uint32_t> first_of;
    std::vector<std::uint64_t> cells;
  };
  Numbered run_numbered(const std::vector<KeyId>& ids, std::vector<std::uint32_t>* record_of) {
    const std::size_t size = ids.size();
    std::vector<std::uint8_t> pending(size);
    std::vector<std::uint32_t> slot_of(size);
    std::vector<std::uint64_t> heads(heads_for(size));
    Numbered found{std::vector<std::uint32_t>(size), std::vector<std::uint64_t>(2 * size, kUntouched)};
    words = {};
    BulkArguments<HostSpace> a;
    a.slots = memory.data();
    a.capacity = capacity;
    a.size = static_cast<std::uint32_t>(size);
    a.heads_mask = static_cast<std::uint32_t>(heads.size() - 1);
    a.numbers_records = record_of->empty();
    record_of->resize(size);
    a.ids = ids.data();
    a.slot_of = slot_of.data();
    a.pending = pending.data();
    a.heads = heads.data();
    a.first_of = found.first_of.data();
    a.record_of = record_of->data();
    a.cells = found.cells.data();
    a.words = words.data();
    on_threads([&](auto& platform) { BulkRun(platform, a).run(); });
    const std::vector<std::uint64_t> cells = found.cells;
    for (std::size_t i = 0; i < size; ++i) {
      if (found.first_of[i] == i) ++found.cells[2 * (*record_of)[i]];
    }
    on_threads([&](auto& platform) { scatter_cells(platform, a); });
    found.cells = cells;
    return found;
  }
  static constexpr std::uint64_t kUntouched = 0xABABABAB;

  template <class Body>
  void on_threads(const Body& body) {
    if (lanes != nullptr) {
      ++schedule.seed;
      const RunReport report = lanes->run(schedule, [&](std::uint32_t lane) {
        SimPlatform4 platform(lanes, lane);
        body(platform);
      });
      if (!report.status.ok()) FAIL(report.status.message());
    } else {
      team.run([&](std::uint32_t thread) {
        HostPlatform platform(&team, thread, nullptr);
        body(platform);
      });
    }
  }

  ThreadTeam team;
  Lanes* lanes = nullptr;
  Schedule schedule;
  std::uint32_t capacity;
  std::vector<std::uint64_t> memory;
  std::array<std::uint64_t, kBulkWords> words{};
  std::uint32_t epoch = 0;
};

// Few homes, so that runs of slots are long and many claim the same one.
KeyId id_of(std::uint64_t number) { return {number + 1, (number % 7) << 60 | number}; }

void run_against_a_map(HostTable& table, std::uint64_t seed, std::uint64_t items_max) {
  Random random(seed);
  std::map<std::uint64_t, Cell> model;
  for (int step = 0; step < 30; ++step) {
    std::vector<HostTable::Item> items;
    std::vector<std::uint64_t> numbers;
    std::map<std::uint64_t, Cell> after = model;
    std::set<std::uint64_t> puts, used;  // who is put has no other item, but for removal
    std::vector<std::uint64_t> removed;
    for (std::uint64_t i = 0; i < 1 + random.below(items_max); ++i) {
      const std::uint64_t number = random.below(3 * items_max / 2) + 1000 * (step / 10);
      const auto action = static_cast<BulkAction>(random.below(4));
      if (action != BulkAction::remove) {
        if (puts.contains(number) || (action == BulkAction::put && used.contains(number))) continue;
        (action == BulkAction::put ? puts : used).insert(number);
      }
      const Cell cell{random.below(1000), make_tag(random.below(1000) + 1, ValueType::integer)};
      items.push_back({id_of(number), action, cell});
      numbers.push_back(number);
      if (action == BulkAction::insert) after.try_emplace(number, Cell{});
      if (action == BulkAction::put) after[number] = cell;
      if (action == BulkAction::remove) removed.push_back(number);
    }
    table.run(&items);
    std::uint64_t gone = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].action == BulkAction::remove) continue;
      const auto record = after.find(numbers[i]);
      EXPECT_EQ(items[i].slot != kNoSlot, record != after.end());
      EXPECT_TRUE(items[i].cell == (record != after.end() ? record->second : Cell{}));
    }
    for (const std::uint64_t number : removed) gone += after.erase(number);
    EXPECT_EQ(table.words[kBulkRemoved], gone);
    EXPECT_EQ(table.words[kBulkFull], 0u);
    model = std::move(after);
    std::vector<HostTable::Item> all;
    for (const auto& [number, cell] : model) all.push_back({id_of(number), BulkAction::find, {}});
    table.run(&all);
    std::size_t i = 0;
    for (const auto& [number, cell] : model) {
      EXPECT_TRUE(all[i].slot != kNoSlot && all[i].cell == cell);
      ++i;
    }
    if (has_failed()) return FAIL("seed " + std::to_string(seed));
  }
}

TEST(bulk_actions_equal_a_map) {
  for (const std::uint32_t threads : {1u, 2u, 8u}) {
    for (std::uint64_t seed = 1; seed <= 20 && !has_failed(); ++seed) {
      HostTable table(threads, 4096);
      run_against_a_map(table, seed, 200);
    }
  }
}

TEST(bulk_actions_equal_a_map_in_the_simulator) {
  Lanes lanes({.blocks = 2, .block_threads = 4, .group_width = 4});
  for (std::uint64_t seed = 1; seed <= 50 && !has_failed(); ++seed) {
    HostTable table(&lanes, seed, 256);
    if (seed % 3 == 0) table.schedule.kind = Schedule::Kind::lockstep;
    if (seed % 2 == 0) table.schedule.stale_probability = 0.3;
    run_against_a_map(table, seed, 12);
  }
}

// `dense`: the host has numbered the records in the order in which they are named.
void number_against_a_map(HostTable& table, std::uint64_t seed, std::uint64_t ids_max, bool dense) {
  Random random(seed);
  std::vector<HostTable::Item> items;
  std::map<std::uint64_t, Cell> model;
  for (std::uint64_t number = 0; number < ids_max; number += 1 + random.below(3)) {
    const Cell cell{random.below(1000), make_tag(random.below(1000) + 1, ValueType::integer)};
    items.push_back({id_of(number), BulkAction::put, cell});
    model[number] = cell;
  }
  table.run(&items);
  std::vector<KeyId> ids;
  std::vector<std::uint32_t> first_of, record_of, records;
  std::map<std::uint64_t, std::uint32_t> firsts;
  std::uint64_t digest = 0, change = 0;
  for (std::uint32_t i = 0; i < 1 + random.below(2 * ids_max); ++i) {
    const std::uint64_t number = random.below(ids_max);
    ids.push_back(id_of(number));
    const auto [first, is_first] = firsts.try_emplace(number, i);
    first_of.push_back(first->second);
    record_of.push_back(is_first ? static_cast<std::uint32_t>(firsts.size() - 1) : record_of[first->second]);
    const auto record = model.find(number);
    const Cell cell = record == model.end() ? Cell{} : record->second;
    digest += cell_digest(i, cell);
    if (is_first) change += change_digest(ids.back(), cell, {cell.word + 1, cell.tag});
  }
  if (dense) records = record_of;
  const HostTable::Numbered found = table.run_numbered(ids, &records);
  EXPECT_TRUE(found.first_of == first_of);
  EXPECT_TRUE(records == (dense ? record_of : first_of));
  EXPECT_EQ(table.words[kBulkDigest], digest);
  EXPECT_EQ(table.words[kBulkChange], change);
  std::size_t touched = 0;
  for (std::size_t word = 0; word < found.cells.size(); word += 2)
    touched += found.cells[word] != HostTable::kUntouched;
  EXPECT_EQ(touched, firsts.size());  // one cell for each record
  std::vector<HostTable::Item> all;
  for (const auto& [number, cell] : model) all.push_back({id_of(number), BulkAction::find, {}});
  table.run(&all);
  std::size_t i = 0;
  for (const auto& [number, cell] : model) {
    const bool was_named = firsts.contains(number);
    const Cell cell_before{all[i].cell.word - (was_named ? 1 : 0), all[i].cell.tag};
    EXPECT_TRUE(cell_before == cell);
    if (was_named) {
      const std::uint32_t record = records[firsts[number]];
      EXPECT_TRUE((Cell{found.cells[2 * record], found.cells[2 * record + 1]} == cell));
    }
    ++i;
  }
  if (has_failed()) FAIL("seed " + std::to_string(seed));
}

TEST(the_records_of_a_batch_are_numbered) {
  for (const std::uint32_t threads : {1u, 2u, 8u}) {
    for (std::uint64_t seed = 1; seed <= 60 && !has_failed(); ++seed) {
      HostTable table(threads, 4096);
      number_against_a_map(table, seed, seed % 4 == 0 ? 3 : 300, seed % 2 == 0);
    }
  }
}

TEST(the_records_of_a_batch_are_numbered_in_the_simulator) {
  Lanes lanes({.blocks = 2, .block_threads = 4, .group_width = 4});
  for (std::uint64_t seed = 1; seed <= 200 && !has_failed(); ++seed) {
    HostTable table(&lanes, seed, 256);
    if (seed % 3 == 0) table.schedule.kind = Schedule::Kind::lockstep;
    if (seed % 2 == 0) table.schedule.stale_probability = 0.3;
    number_against_a_map(table, seed, 1 + seed % 16, seed % 5 == 0);
  }
}

TEST(an_id_that_stands_often_gets_one_slot) {
  HostTable table(8, 1024);
  std::vector<HostTable::Item> items(500, {id_of(5), BulkAction::insert, {}});
  table.run(&items);
  EXPECT_EQ(table.words[kBulkInserted], 1u);
  for (const HostTable::Item& item : items) EXPECT_EQ(item.slot, items[0].slot);
  EXPECT_TRUE(table.words[kBulkRounds] <= 2);
}

TEST(a_full_table_says_so) {
  HostTable table(4, 64);
  std::vector<HostTable::Item> items;
  for (std::uint64_t i = 0; i < 70; ++i) items.push_back({id_of(i), BulkAction::insert, {}});
  table.run(&items);
  EXPECT_EQ(table.words[kBulkInserted], 64u);
  EXPECT_EQ(table.words[kBulkFull], 6u);
}

// An engine on the emulated device, in the open.
struct DeviceBench {
  explicit DeviceBench(const EmulatedDeviceOptions& options = {}) {
    auto made = std::make_unique<DeviceExecutor>(open_emulated(options));
    executor = made.get();
    EngineOptions engine;
    engine.strategy = "ordered";
    engine.secret = kSecret;
    bench.engine = create_engine_with(engine, std::move(made));
  }
  void put(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      bench.add([i](ColumnsBuilder& b) { b.op(OpKind::put, b.key("key" + std::to_string(i)), Operand::integer, 7); });
    }
    ASSERT_TRUE(bench.run(next).ok());
    next = bench.results.next_version;
  }
  // Whether each of the keys reads as this, on the device.
  void expect(std::uint64_t first, std::uint64_t count, const std::string& text) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      bench.add([i](ColumnsBuilder& b) { b.op(OpKind::get, b.key("key" + std::to_string(i))); });
    }
    ASSERT_TRUE(bench.run(next).ok());
    next = bench.results.next_version;
    for (std::uint64_t i = 0; i < count && !has_failed(); ++i) {
      const std::string read = bench.read(i);
      EXPECT_EQ(read.substr(0, read.find('@')), text);
    }
    EXPECT_TRUE(bench.engine->execution().on_device);
  }

  Bench bench;
  DeviceExecutor* executor;
  Version next = 100;
};

TEST(the_table_on_the_device_grows) {
  DeviceBench device;
  for (std::uint64_t i = 0; i < 20; ++i) device.put(i * 500, 500);
  device.expect(0, 10000, "7");
  EXPECT_EQ(device.executor->table().records(), std::size_t{10000});
  EXPECT_TRUE(device.executor->table().builds() >= 3);
  EXPECT_TRUE(device.executor->table().capacity() >= 12500);
}

// What the host changes alone reaches the device: loaded records, batches with ranges (on `serial`), dropped
// tombstones.
TEST(the_table_on_the_device_follows_the_host) {
  DeviceBench device;
  device.put(0, 100);
  const std::uint64_t builds = device.executor->table().builds();
  device.bench.load("key200", 41, 5000);
  device.next = 6000;
  device.bench.add([](ColumnsBuilder& b) { b.range_op(OpKind::delete_range, "key1", "key2", 1000); });
  ASSERT_TRUE(device.bench.run(device.next).ok());
  EXPECT_FALSE(device.bench.engine->execution().on_device);
  device.next = device.bench.results.next_version;
  device.expect(1, 1, "-");
  device.expect(10, 10, "-");
  device.expect(20, 80, "7");
  device.expect(200, 1, "41");
  device.bench.engine->drop_tombstones(device.next, {});
  device.expect(10, 10, "-");
  EXPECT_EQ(device.bench.read(0), "-");  // without a version
  device.put(10, 10);
  device.expect(10, 10, "7");
  EXPECT_EQ(device.executor->table().builds(), builds);
}

TEST(a_device_without_memory_for_the_table_is_given_up_with_a_clear_error) {
  EmulatedDeviceOptions options;
  options.memory_bytes_max = std::size_t{3} << 20;
  DeviceBench device(options);
  device.put(0, 500);
  EXPECT_TRUE(device.bench.engine->execution().on_device);
  for (std::uint64_t i = 0; i < 100000; ++i) device.bench.load("load" + std::to_string(i), 1, 50000 + i);
  device.next = 200000;
  device.put(500, 500);
  EXPECT_FALSE(device.bench.engine->execution().on_device);
  const EngineDevice now = device.bench.engine->device();
  EXPECT_EQ(now.name, "cpu");
  EXPECT_TRUE(now.reason.find("device memory: a table for 101") != std::string::npos);
  EXPECT_EQ(device.bench.get("key999").substr(0, 1), "7");
}

}  // namespace
}  // namespace kilokv::test
