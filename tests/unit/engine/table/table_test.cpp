// The parts of the table, each against a plain model: record table, key arena, ordered index, byte values.

#include <malloc.h>

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
      model[low] = low * 7;
    } else if (step % 3 != 0) {
      ASSERT_EQ(table[slot].cell.word, model[low]);
      ASSERT_EQ(table.key_ref(slot), static_cast<std::uint32_t>(low));
      table.erase(slot);
      model.erase(low);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const auto& [low, word] : model) EXPECT_EQ(table[table.find(id_of(low))].cell.word, word);
  EXPECT_TRUE(table[table.absent_slot()].cell == Cell{});
}

// Columns stay with their records while the table grows and records come and go. The highest quarter of an id leads to
// its records.
TEST(record_table_keeps_columns_through_growth_and_erasure) {
  std::mt19937_64 random(kSeed);
  RecordTable table(0);
  std::set<std::uint64_t> model;  // low halves
  const auto id_of = [](std::uint64_t low) {
    return KeyId{low, low % 7 == 0 ? ~std::uint64_t{0} : low * 0x9e3779b97f4a7c15u};  // some share the last home
  };
  std::size_t growths = 0;
  for (int step = 0; step < 150000; ++step) {
    // Grows through all of it: the keys are ever more.
    const std::uint64_t low = 1 + random() % (100 + static_cast<std::uint64_t>(step) / 20);
    std::uint32_t slot = table.find(id_of(low));
    if (slot == table.absent_slot()) {
      const std::uint32_t capacity = table.capacity();
      slot = table.insert(id_of(low), static_cast<std::uint32_t>(low));
      growths += table.capacity() != capacity ? 1 : 0;
      table.set_chunk(slot, static_cast<std::uint32_t>(low * 3));
      model.insert(low);
    } else if (random() % 8 == 0) {
      table.erase(slot);
      model.erase(low);
    }
    if (step % 100 != 0) continue;
    for (const std::uint64_t known : model) {
      const std::uint32_t at = table.find(id_of(known));
      ASSERT_EQ(table.chunk(at), known * 3);
      ASSERT_EQ(table.key_ref(at), known);
    }
    if (step % 5000 != 0) continue;
    for (const std::uint64_t known : model) {
      const auto highest = static_cast<std::uint32_t>(id_of(known).high >> 32);
      std::set<std::uint64_t> expected, found;
      for (const std::uint64_t other : model) {
        if (id_of(other).high >> 32 == highest) expected.insert(other);
      }
      table.for_each_of(highest, [&](std::uint32_t at) { EXPECT_TRUE(found.insert(table[at].id.low).second); });
      ASSERT_TRUE(found == expected);
    }
  }
  EXPECT_TRUE(growths > 15);
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

// Ids with the same home and the same tag: the hint for all of them is the first one's slot.
TEST(record_table_corrects_hints) {
  constexpr std::uint64_t kTag = 7;
  const auto id_of = [](std::uint64_t i) { return KeyId{i << 8 | kTag, i}; };  // `high` has the home in its upper half
  RecordTable table(100);
  for (std::uint64_t i = 0; i < 10; ++i) table.insert(id_of(i), 0);
  std::vector<KeyId> ids;
  for (std::uint64_t i = 0; i < 11; ++i) ids.push_back(id_of(i));  // the last one has no slot
  ids.push_back(KeyId{kTag + 1, 0});                               // nor has this one, but no slot has its tag
  std::vector<std::uint32_t> hints(ids.size()), slots(ids.size());
  table.hint_all(ids, hints.data());
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(hints[i], hints[0]);
  EXPECT_EQ(hints[11], table.absent_slot());
  EXPECT_FALSE(table.check_hints(ids, hints.data(), slots.data()));
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(slots[i], table.find(ids[i]));
  EXPECT_TRUE(table.check_hints(std::span<const KeyId>(ids).first(10), hints.data(), slots.data()));
}

// The tags follow the slots: through growth, and through erasure, which moves the rest of a run back.
TEST(record_table_keeps_tags_through_growth_and_erasure) {
  RecordTable table(0);
  std::mt19937_64 random(kSeed);
  std::vector<KeyId> ids;
  for (std::uint64_t step = 0; step < 60000; ++step) {
    if (!ids.empty() && random() % 3 == 0) {
      const std::size_t i = random() % ids.size();
      table.erase(table.find(ids[i]));
      ids[i] = ids.back();
      ids.pop_back();
    } else {
      ids.push_back({random(), random()});
      table.insert(ids.back(), 0);
    }
    if (step % 500 != 0) continue;
    std::vector<std::uint32_t> slots(ids.size());
    EXPECT_TRUE(table.find_all(ids, slots.data()));
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(slots[i], table.find(ids[i]));
  }
}

TEST(record_table_load_stays_high) {
  RecordTable table(0);
  for (std::uint64_t i = 1; i <= 200000; ++i) {
    table.insert(KeyId{i, i * 0x9e3779b97f4a7c15u}, 0);
    const double load = static_cast<double>(table.size()) / table.capacity();
    if (i > 100) ASSERT_TRUE(load > 0.65 && load < 0.83);
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

// The same numbers of keys of every size come and go: after the first round there is room for all of them.
TEST(key_arena_takes_no_more_memory_for_keys_that_come_and_go) {
  KeyArena arena;
  std::vector<std::uint32_t> refs;
  std::size_t memory_bytes = 0;
  for (int round = 0; round < 40; ++round) {
    for (std::size_t bytes = 1; bytes <= 1024; ++bytes) {
      const auto ref = arena.add(std::string(bytes, static_cast<char>('a' + round % 26)));
      ASSERT_TRUE(ref.has_value());
      refs.push_back(*ref);
    }
    if (round == 0) memory_bytes = arena.memory_bytes();
    ASSERT_EQ(arena.memory_bytes(), memory_bytes);
    for (std::size_t i = 0; i < refs.size(); ++i) ASSERT_EQ(arena.view(refs[i]).size(), i + 1);
    std::shuffle(refs.begin(), refs.end(), std::mt19937(kSeed + static_cast<unsigned>(round)));
    for (const std::uint32_t ref : refs) arena.remove(ref);
    refs.clear();
  }
}

// Keys of one length leave their memory to keys of another, whichever comes first. What is left of it goes back.
TEST(key_arena_uses_the_memory_of_keys_of_another_length) {
  for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{6, 1000}, {1000, 6}, {16, 17}}) {
    KeyArena arena;
    std::vector<std::uint32_t> refs;
    const auto add = [&](std::size_t bytes) {
      for (std::size_t sum = 0; sum < (std::size_t{8} << 20); sum += KeyArena::memory_of(bytes)) {
        refs.push_back(*arena.add(std::string(bytes, 'a')));
      }
    };
    const auto remove_all = [&] {
      std::shuffle(refs.begin(), refs.end(), std::mt19937(kSeed));
      for (const std::uint32_t ref : refs) arena.remove(ref);
      refs.clear();
    };
    add(first);
    const std::size_t memory_bytes = arena.memory_bytes();
    remove_all();
    EXPECT_TRUE(arena.memory_bytes() <= std::size_t{3} << 20);
    EXPECT_EQ(arena.room().keys_of(KeyArena::memory_of(1024)) / 1000, arena.memory_bytes() / 1028 / 1000);
    add(second);
    EXPECT_TRUE(arena.memory_bytes() <= memory_bytes + (std::size_t{1} << 20));
    for (const std::uint32_t ref : refs) ASSERT_EQ(arena.view(ref).size(), second);
    remove_all();
    EXPECT_TRUE(arena.memory_bytes() <= std::size_t{3} << 20);
  }
}

// The newest goes first, so each block is opened, filled and emptied in turn, also at its very end.
TEST(key_arena_loses_nothing_when_the_newest_key_goes_first) {
  KeyArena arena;
  std::vector<std::uint32_t> refs;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t sum = 0; sum < (std::size_t{2} << 20) + 100; sum += 16) {
      refs.push_back(*arena.add(std::string(14, 'a')));
    }
    EXPECT_TRUE(arena.memory_bytes() <= std::size_t{4} << 20);
    for (; !refs.empty(); refs.pop_back()) arena.remove(refs.back());
    EXPECT_TRUE(arena.room().keys_of(16) >= arena.memory_bytes() / 16 - 4);
  }
}

// As many keys as room() promises fit without new memory, of any lengths up to the one that was asked for.
TEST(key_arena_keeps_its_word_about_room) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    KeyArena arena;
    std::vector<std::uint32_t> refs;
    const std::size_t longest = 1 + random() % (round % 2 == 0 ? 1024 : 40);
    for (int i = 0; i < 20000; ++i) refs.push_back(*arena.add(std::string(1 + random() % longest, 'a')));
    std::shuffle(refs.begin(), refs.end(), random);
    refs.resize(refs.size() / (1 + random() % 8));
    for (const std::uint32_t ref : refs) arena.remove(ref);
    const std::size_t asked = 1 + random() % longest, memory_bytes = arena.memory_bytes();
    const std::uint64_t promised = arena.room().keys_of(KeyArena::memory_of(asked));
    ASSERT_TRUE(promised > 0);
    for (std::uint64_t i = 0; i < promised; ++i) {
      ASSERT_TRUE(arena.add(std::string(random() % 2 == 0 ? asked : 1 + random() % asked, 'b')).has_value());
      ASSERT_EQ(arena.memory_bytes(), memory_bytes);
    }
  }
}

void insert(OrderedIndex* index, std::uint32_t ref) {
  std::uint32_t chunk = 0;
  std::vector<KeyPlace> moved;
  index->insert({&ref, 1}, false, &chunk, &moved);
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
      insert(&index, model[key]);
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
  for (int i = 0; i < 100000; ++i) insert(&index, *arena.add(std::to_string(1000000 + i)));
  EXPECT_TRUE(index.memory_bytes() < 9 * 100000);
  EXPECT_EQ(keys_of(index, "", "").size(), std::size_t{100000});
}

// Keys come and go in the same order, round after round: a chunk or a group that is given up is used again.
void expect_index_is_reused(const std::vector<std::string>& keys, int rounds) {
  KeyArena arena;
  OrderedIndex index(&arena);
  std::size_t full_bytes = 0, empty_bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::uint32_t> refs;
    for (const std::string& key : keys) {
      refs.push_back(*arena.add(key));
      insert(&index, refs.back());
    }
    // The arrays of free numbers have their size after the first round.
    if (round == 1) full_bytes = index.memory_bytes();
    if (round > 1) ASSERT_EQ(index.memory_bytes(), full_bytes);
    for (const std::uint32_t ref : refs) {
      index.erase(ref);
      arena.remove(ref);
    }
    if (round == 0) empty_bytes = index.memory_bytes();
    ASSERT_EQ(index.memory_bytes(), empty_bytes);
    ASSERT_TRUE(keys_of(index, "", "").empty());
  }
  EXPECT_TRUE(empty_bytes < full_bytes / 4);  // empty chunks hold no keys
}

TEST(ordered_index_takes_no_more_memory_for_keys_that_come_and_go) {
  std::vector<std::string> keys;
  for (int i = 0; i < 70000; ++i) keys.push_back(std::to_string(1000000 + i));
  expect_index_is_reused(keys, 10);
  std::shuffle(keys.begin(), keys.end(), std::mt19937(kSeed));
  expect_index_is_reused(keys, 10);
}

TEST(blobs_take_no_more_memory_for_values_that_come_and_go) {
  BlobStore blobs;
  std::vector<std::uint64_t> words;
  std::size_t memory_bytes = 0;
  const std::size_t of_process = ::mallinfo2().uordblks;  // a sanitizer's allocator always says 0
  for (BatchNumber batch = 1; batch <= 40; ++batch) {
    for (std::size_t bytes = 0; bytes < 8000; bytes += 5) {
      words.push_back(blobs.add(std::string(bytes, static_cast<char>('a' + batch % 26))));
    }
    if (batch == 1) memory_bytes = blobs.memory_bytes();
    ASSERT_EQ(blobs.memory_bytes(), memory_bytes);
    std::shuffle(words.begin(), words.end(), std::mt19937(kSeed + static_cast<unsigned>(batch)));
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i % 2 == 0) {
        blobs.release(words[i]);
      } else {
        blobs.release_after(batch, words[i]);
      }
    }
    blobs.release_through(batch);
    ASSERT_EQ(blobs.size(), std::size_t{0});
    words.clear();
  }
  EXPECT_TRUE(::mallinfo2().uordblks < of_process + 2 * memory_bytes / 3);
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
  const std::uint64_t first = blobs.add("x"), second = blobs.add("x");
  EXPECT_TRUE(BlobStore::content_hash(first) == BlobStore::content_hash(second));
  blobs.release(first);
  blobs.release(second);
}

// At most 96 bytes, all told, for a 16-byte key with an integer. At every size, so at every load, keys in no order,
// all dirty.
TEST(memory_per_record) {
  RecordStore store({1, 2}, 0, std::size_t{1} << 31);
  std::mt19937_64 random(kSeed);
  double worst = 0;
  for (std::uint64_t i = 1; i <= 600000; ++i) {
    char key[17];
    std::snprintf(key, sizeof(key), "%016llx", static_cast<unsigned long long>(random()));
    const KeyId id = hash_key(key, store.secret());
    ASSERT_TRUE(store.insert(id, key));
    const std::uint32_t slot = store.table().find(id);
    store.table()[slot].cell = {i, make_tag(i, ValueType::integer)};
    store.settle(slot, Cell{});
    if (i < 200000 || i % 1000 != 0) continue;
    worst = std::max(worst, static_cast<double>(store.memory_bytes()) / static_cast<double>(i));
  }
  std::printf("memory per record: at most %.2f bytes\n", worst);
  EXPECT_TRUE(worst <= 96);
}

}  // namespace
}  // namespace kilokv::engine
