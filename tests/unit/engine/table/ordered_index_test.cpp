// The ordered index against a std::map. Keys come in batches and one by one, in order and in none. They share prefixes,
// are prefixes of each other, and have zero bytes, because the index compares heads (table/sorted_keys.hpp) where it
// can.

#include "engine/table/ordered_index.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/table/key_arena.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr unsigned kSeed = 20261128;

struct Entry {
  std::uint32_t ref = 0, chunk = 0;
  bool live = false;
  Version version = 0;
};

// An index, and a model of it.
class Index {
 public:
  // Keys may come twice, and may be there already.
  void insert(const std::vector<std::string>& keys, bool live) {
    std::vector<std::uint32_t> refs;
    std::map<std::string, Entry> added;
    for (const std::string& key : keys) {
      if (!model_.contains(key)) added[key] = {};
    }
    for (auto& [key, entry] : added) {
      entry = {*arena_.add(key), 0, live, 0};
      refs.push_back(entry.ref);
    }
    std::vector<std::uint32_t> chunks(refs.size());
    std::vector<KeyPlace> moved;
    index_.insert(refs, live, chunks.data(), &moved);
    std::size_t at = 0;
    for (auto& [key, entry] : added) entry.chunk = chunks[at++];
    for (const KeyPlace& place : moved) {
      const std::string key(arena_.view(place.key_ref));
      ASSERT_TRUE(model_.contains(key) && !added.contains(key));
      Entry& entry = model_[key];
      ASSERT_TRUE(entry.chunk != place.chunk);
      entry.chunk = place.chunk;
      index_.raise(place.chunk, entry.version);
    }
    model_.merge(added);
  }
  void erase(const std::string& key) {
    const auto known = model_.find(key);
    if (known == model_.end()) return;
    index_.erase(known->second.ref);
    arena_.remove(known->second.ref);
    model_.erase(known);
  }
  void write(const std::string& key, bool live) {
    const auto known = model_.find(key);
    if (known == model_.end()) return;
    Entry& entry = known->second;
    entry.version = ++version_;
    index_.raise(entry.chunk, entry.version);
    if (entry.live != live) index_.set_live(entry.chunk, entry.ref, live);
    entry.live = live;
  }

  void check(const std::string& from, const std::string& to) const {
    std::vector<std::string> all, live;
    std::vector<Version> versions;
    for (auto at = model_.lower_bound(from); at != model_.end() && (to.empty() || at->first < to); ++at) {
      all.push_back(at->first);
      versions.push_back(at->second.version);
      if (at->second.live) live.push_back(at->first);
    }
    std::vector<std::string> seen, seen_live, seen_reverse, seen_live_reverse;
    const auto into = [](std::vector<std::string>* keys) {
      return [keys](std::uint32_t, std::string_view key) {
        keys->emplace_back(key);
        return true;
      };
    };
    index_.scan(
        from, to, [](RangeSummary) { return true; }, into(&seen));
    index_.scan_live(from, to, into(&seen_live));
    ASSERT_TRUE(seen == all);
    ASSERT_TRUE(seen_live == live);
    index_.scan_reverse(from, to, into(&seen_reverse));
    ASSERT_TRUE(std::equal(seen_reverse.begin(), seen_reverse.end(), all.rbegin(), all.rend()));
    index_.scan_live_reverse(from, to, into(&seen_live_reverse));
    ASSERT_TRUE(std::equal(seen_live_reverse.begin(), seen_live_reverse.end(), live.rbegin(), live.rend()));
    if (!live.empty()) {  // it ends when it is told
      std::size_t left = 1 + live.size() / 2;
      index_.scan_live_reverse(from, to, [&](std::uint32_t, std::string_view key) {
        --left;
        return key > live[live.size() / 2];
      });
      ASSERT_TRUE(left == 1 + live.size() / 2 - (live.size() - live.size() / 2));
    }
    const Version since = version_ - version_ / 4;
    std::vector<std::string> newer;
    index_.scan(
        from, to, [&](RangeSummary of) { return of.newest > since; }, into(&newer));
    ASSERT_TRUE(std::includes(all.begin(), all.end(), newer.begin(), newer.end()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (versions[i] > since) ASSERT_TRUE(std::binary_search(newer.begin(), newer.end(), all[i]));
    }
  }
  std::size_t size() const { return model_.size(); }

 private:
  KeyArena arena_;
  OrderedIndex index_{&arena_};
  std::map<std::string, Entry> model_;
  Version version_ = 0;
};

using MakeKey = std::function<std::string(std::mt19937*)>;

std::string random_bytes(std::mt19937* random, std::size_t size, unsigned kinds) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>((*random)() % kinds * (255 / (kinds - 1))));
  return bytes;
}

// Grows, changes, shrinks to nothing, and grows again.
void run(const MakeKey& make, std::size_t batch_max, unsigned seed) {
  std::mt19937 random(seed);
  Index index;
  const auto some = [&](std::size_t count) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i) keys.push_back(make(&random));
    return keys;
  };
  for (int round = 0; round < 24 && !test::has_failed(); ++round) {
    for (int i = 0; i < 4; ++i) index.insert(some(1 + random() % batch_max), random() % 2 == 0);
    for (const std::string& key : some(300)) index.write(key, random() % 2 == 0);
    for (const std::string& key : some(round % 8 < 5 ? 100 : 4 * batch_max)) index.erase(key);
    index.check("", "");
    const std::string from = make(&random), to = make(&random);
    index.check(std::min(from, to), std::max(from, to));
    index.check(from, "");
  }
}

void run_batches(const MakeKey& make) {
  for (const std::size_t batch_max : {1, 30, 3000}) run(make, batch_max, kSeed);
}

TEST(index_of_numbers) {
  run_batches([](std::mt19937* random) { return std::to_string((*random)() % 30000); });
}

// Zero bytes stand where a head has them for bytes that are not there. High bytes would be negative as char.
TEST(index_of_short_keys_of_few_bytes) {
  run_batches([](std::mt19937* random) { return random_bytes(random, 1 + (*random)() % 9, 2); });
  run_batches([](std::mt19937* random) { return random_bytes(random, 1 + (*random)() % 7, 3); });
  run_batches([](std::mt19937* random) { return random_bytes(random, 1 + (*random)() % 3, 256); });
}

TEST(index_of_keys_with_long_prefixes) {
  run_batches([](std::mt19937* random) {
    std::string key(1 + (*random)() % 3 * 300, 'p');
    key += random_bytes(random, (*random)() % 12, 2);
    key.append((*random)() % 2 * (1024 - key.size()), '\0');
    return key;
  });
}

TEST(index_of_keys_that_lengthen_and_shorten_prefixes) {
  run_batches([](std::mt19937* random) {
    std::string key = "tenant-";
    for (auto depth = (*random)() % 5; depth > 0; --depth) key += std::to_string((*random)() % 3) + "/shelf/";
    return (*random)() % 50 == 0 ? key.substr(0, 1 + (*random)() % key.size())
                                 : key + std::to_string((*random)() % 400);
  });
}

// Many groups of chunks.
TEST(index_of_many_keys) {
  std::mt19937 random(kSeed);
  Index index;
  for (int round = 0; round < 6 && !test::has_failed(); ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < 40000; ++i) keys.push_back(std::to_string(random()));
    index.insert(keys, round % 2 == 0);
    index.check("", "");
    for (int i = 0; i < 3000; ++i) {
      index.insert({std::to_string(random())}, true);
      index.write(keys[random() % keys.size()], random() % 2 == 0);
    }
    index.check("3", "7");
  }
  EXPECT_TRUE(index.size() > 250000);
}

TEST(index_of_keys_in_order) {
  for (const std::size_t batch : {1, 100, 5000}) {
    for (const bool reverse : {false, true}) {
      Index index;
      std::vector<std::string> keys;
      for (int i = 0; i < 100000 && !test::has_failed(); ++i) {
        keys.push_back("order/" + std::to_string(reverse ? 999999 - i : 100000 + i));
        if (keys.size() < batch && i + 1 < 100000) continue;
        index.insert(keys, true);
        keys.clear();
      }
      index.check("", "");
      index.check("order/15", "order/95");
      EXPECT_EQ(index.size(), std::size_t{100000});
    }
  }
}

}  // namespace
}  // namespace kilokv::engine
