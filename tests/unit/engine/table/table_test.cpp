// The parts of the table, each against a plain model: record table, key arena, ordered index, byte values.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/table/blob_store.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/ordered_index.hpp"
#include "engine/table/record_store.hpp"
#include "engine/table/record_table.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr unsigned kSeed = 20261120;

TEST(record_table_equals_a_map_through_growth_and_erasure) {
  std::mt19937_64 random(kSeed);
  RecordTable table(10);
  std::map<std::uint64_t, std::uint64_t> model;  // low half -> word
  const auto id_of = [](std::uint64_t low) {
    return KeyId{low,
                 low % 3 == 0 ? ~std::uint64_t{0} - low % 2 : low * 0x9e3779b97f4a7c15u};  // many share the last home
  };
  for (int step = 0; step < 200000; ++step) {
    const std::uint64_t low = 1 + random() % (step < 100000 ? 4000 : 400);
    const std::uint32_t slot = table.find(id_of(low));
    ASSERT_EQ(slot != table.absent_slot(), model.contains(low));
    if (slot == table.absent_slot()) {
      const std::uint32_t added = table.insert(id_of(low), static_cast<std::uint32_t>(low));
      table[added].cell.word = low * 7;
      table.set_dirty(added, low % 2 == 0);
      model[low] = low * 7;
    } else if (step % 3 != 0) {
      ASSERT_EQ(table[slot].cell.word, model[low]);
      ASSERT_EQ(table.key_ref(slot), static_cast<std::uint32_t>(low));
      ASSERT_EQ(table.dirty(slot), low % 2 == 0);
      table.erase(slot);
      model.erase(low);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const auto& [low, word] : model) EXPECT_EQ(table[table.find(id_of(low))].cell.word, word);
  EXPECT_TRUE(table[table.absent_slot()].cell == Cell{});
}

// Long runs, runs over the end of the table, missing and repeated ids, and more ids than are looked up side by side.
TEST(record_table_finds_many_as_it_finds_each) {
  std::mt19937_64 random(kSeed);
  const auto id_of = [](std::uint64_t low) {
    return KeyId{low, low % 50 == 0 ? ~std::uint64_t{0} : low * 0x9e3779b97f4a7c15u};  // some share the last home
  };
  for (const std::size_t records : {0, 1, 51, 52, 5000}) {
    RecordTable table(records);
    for (std::uint64_t low = 1; low <= records; ++low) table.insert(id_of(low), 0);
    for (const std::size_t count : {0, 1, 15, 16, 1023, 1024, 1025, 5000}) {
      for (const bool some_missing : {false, true}) {
        std::vector<KeyId> ids;
        const std::uint64_t known = records + (some_missing ? 1 + count / 8 : 0);
        if (known == 0) continue;
        while (ids.size() < count) ids.push_back(id_of(1 + random() % known));
        std::vector<std::uint32_t> slots(count + 1, kSeed);
        const bool all_found = table.find_all(ids, slots.data());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(slots[i], table.find(ids[i]));
        ASSERT_EQ(slots[count], kSeed);
        ASSERT_EQ(all_found, std::find(slots.begin(), slots.end() - 1, table.absent_slot()) == slots.end() - 1);
      }
    }
  }
}

TEST(record_table_load_stays_high) {
  RecordTable table(0);
  for (std::uint64_t i = 1; i <= 200000; ++i) {
    table.insert(KeyId{i, i * 0x9e3779b97f4a7c15u}, 0);
    const double load = static_cast<double>(table.size()) / table.capacity();
    if (i > 100) ASSERT_TRUE(load > 0.62 && load < 0.81);
  }
}

TEST(key_arena_reuses_what_is_freed) {
  std::mt19937 random(kSeed);
  KeyArena arena;
  std::map<std::uint32_t, std::string> model;
  for (int step = 0; step < 100000; ++step) {
    if (model.size() < 1000 || random() % 2 == 0) {
      const std::string key(1 + random() % (step % 50 == 0 ? 1024 : 30), static_cast<char>('a' + step % 26));
      const auto ref = arena.add(key);
      ASSERT_TRUE(ref.has_value() && !model.contains(*ref));
      model[*ref] = key;
    } else {
      auto victim = model.lower_bound(static_cast<std::uint32_t>(random() % model.rbegin()->first));
      ASSERT_TRUE(arena.view(victim->first) == victim->second);
      arena.remove(victim->first);
      model.erase(victim);
    }
  }
  for (const auto& [ref, key] : model) EXPECT_TRUE(arena.view(ref) == key);
}

std::vector<std::string> keys_of(const OrderedIndex& index, std::string_view from, std::string_view to) {
  std::vector<std::string> keys;
  const auto all = [](RangeSummary) { return true; };
  index.scan(from, to, all, [&](std::uint32_t, std::string_view key) {
    keys.emplace_back(key);
    return true;
  });
  return keys;
}

TEST(ordered_index_equals_a_set) {
  std::mt19937 random(kSeed);
  KeyArena arena;
  OrderedIndex index(&arena);
  std::map<std::string, std::uint32_t> model;
  const auto expect_range = [&](const std::string& from, const std::string& to) {
    std::vector<std::string> expected;
    for (auto at = model.lower_bound(from); at != model.end() && (to.empty() || at->first < to); ++at) {
      expected.push_back(at->first);
    }
    ASSERT_TRUE(keys_of(index, from, to) == expected);
  };
  for (int step = 0; step < 60000; ++step) {
    // Grows, shrinks to almost nothing, and grows again.
    const bool grow = step < 20000 || step > 40000;
    const std::string key = std::to_string(random() % 30000);
    const auto known = model.find(key);
    if (known == model.end() && grow) {
      model[key] = *arena.add(key);
      index.insert(model[key]);
    } else if (!grow && !model.empty()) {
      auto victim = model.lower_bound(key);
      if (victim == model.end()) victim = model.begin();
      index.erase(victim->second);
      arena.remove(victim->second);
      model.erase(victim);
    }
    if (step % 500 == 0) expect_range(std::to_string(random() % 30000), step % 1000 == 0 ? "" : "5");
    if (kilokv::test::has_failed()) return;
  }
  expect_range("", "");
}

TEST(ordered_index_is_compact) {
  KeyArena arena;
  OrderedIndex index(&arena);
  for (int i = 0; i < 100000; ++i) index.insert(*arena.add(std::to_string(1000000 + i)));
  EXPECT_TRUE(index.memory_bytes() < 5 * 100000);
  EXPECT_EQ(keys_of(index, "", "").size(), std::size_t{100000});
}

TEST(blobs_live_as_long_as_they_are_referred_to) {
  BlobStore blobs;
  const std::uint64_t a = blobs.add("alpha"), b = blobs.add("");
  blobs.retain(a);
  blobs.release_after(3, a);
  blobs.release_after(5, b);
  blobs.release_through(4);
  EXPECT_EQ(blobs.size(), std::size_t{2});
  EXPECT_EQ(BlobStore::bytes(a), "alpha");
  EXPECT_EQ(BlobStore::bytes(b), "");
  blobs.release_through(5);
  EXPECT_EQ(blobs.size(), std::size_t{1});
  blobs.release(a);
  EXPECT_EQ(blobs.size(), std::size_t{0});
  EXPECT_TRUE(BlobStore::content_hash(blobs.add("x")) == BlobStore::content_hash(blobs.add("x")));
}

// At most 96 bytes, all told, for a 16-byte key with an integer. At every size, so at every load, keys in no order, all
// dirty.
TEST(memory_per_record) {
  RecordStore store({1, 2}, 0, std::size_t{1} << 31);
  std::mt19937_64 random(kSeed);
  double worst = 0;
  for (std::uint64_t i = 1; i <= 600000; ++i) {
    char key[17];
    std::snprintf(key, sizeof(key), "%016llx", static_cast<unsigned long long>(random()));
    const KeyId id = hash_key(key, store.secret());
    ASSERT_TRUE(store.insert(id, key));
    const SlotImage image{store.table().find(id), Cell{}};
    store.table()[image.slot].cell = {i, make_tag(i, ValueType::integer)};
    store.settle({&image, 1}, i, 0, false);
    if (i < 200000 || i % 1000 != 0) continue;
    worst = std::max(worst, static_cast<double>(store.memory_bytes()) / static_cast<double>(i));
  }
  std::printf("memory per record: at most %.1f bytes\n", worst);
  EXPECT_TRUE(worst <= 96);
}

}  // namespace
}  // namespace kilokv::engine
