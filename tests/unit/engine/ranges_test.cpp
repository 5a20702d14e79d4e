// Ranges over many chunks of the ordered index. What they find is compared with a model. The number of records that
// they look at must not grow with the range.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/key_hash.hpp"
#include "engine/table/record_store.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr unsigned kSeed = 20261122;
constexpr std::size_t kLookedMax = 3 * 128;  // the records of two chunks at the ends of the range, and of one between

std::string key_of(std::uint64_t i) {
  char key[17];
  std::snprintf(key, sizeof(key), "key%08llu", static_cast<unsigned long long>(i));
  return key;
}

// A record store with a model of it.
class Store {
 public:
  void write(const std::string& key, ValueType type) {
    const KeyId id = hash_key(key, store.secret());
    if (store.table().find(id) == store.table().absent_slot()) KILOKV_CHECK(store.insert(id, key));
    const std::uint32_t slot = store.table().find(id);
    const Cell before = store.table()[slot].cell;
    store.table()[slot].cell = {0, make_tag(++version, type)};
    store.settle(slot, before);
    model[key] = store.table()[slot].cell;
  }
  // A write as a batch with ranges makes it, undone or settled.
  void write_in_batch(const std::string& key, ValueType type, bool undone) {
    store.catch_up();
    const std::uint32_t slot = store.find(key);
    const Cell before = store.table()[slot].cell;
    const Cell after{0, make_tag(++version, type)};
    const OrderedIndex::Newest newest = store.summarize(slot, before, after);
    if (undone) return store.forget_summarized(slot, before, after, newest);
    store.table()[slot].cell = after;
    store.add_to_hash(RecordStore::change(store.table()[slot].id, before, after));
    if (version_of(before.tag) < store.noted_below()) store.note(store.table()[slot].id, version_of(before.tag));
    store.settle_rare(slot, before, after, 0, true);
    store.end_batch(version, true);
    model[key] = after;
  }
  void check(const std::string& from, const std::string& to, Version since) {
    bool changed = false;
    std::vector<std::string> live;
    for (auto at = model.lower_bound(from); at != model.end() && (to.empty() || at->first < to); ++at) {
      changed |= version_of(at->second.tag) > since;
      if (type_of(at->second.tag) != ValueType::absent && live.size() < 3) live.push_back(at->first);
    }
    for (int i = 0; i < 3; ++i) store.catch_up();  // all chunks take two steps
    std::size_t looked = 0;
    bool found = false;
    store.scan_newer(from, to, since, [&](std::uint32_t slot, std::string_view) {
      ++looked;
      found = version_of(store.table()[slot].cell.tag) > since;
      return !found;
    });
    EXPECT_EQ(found, changed);
    EXPECT_TRUE(looked <= kLookedMax);
    std::vector<std::string> seen;
    looked = 0;
    if (live.empty()) live.emplace_back();
    store.scan_live(from, to, [&](std::uint32_t slot, std::string_view key) {
      ++looked;
      if (type_of(store.table()[slot].cell.tag) != ValueType::absent) seen.emplace_back(key);
      return seen.size() < 3;
    });
    if (seen.empty()) seen.emplace_back();
    EXPECT_TRUE(seen == live);
    EXPECT_TRUE(looked == (live.front().empty() ? 0 : live.size()));  // at no record that is not live
  }

  RecordStore store{{1, 2}, 0, std::size_t{1} << 31};
  std::map<std::string, Cell> model;
  Version version = 0;
};

// 70,000 keys are some groups of chunks; they come in no order, so that chunks and groups are split anywhere.
TEST(ranges_look_at_few_records_however_many_they_have) {
  std::mt19937 random(kSeed);
  Store s;
  for (int i = 0; i < 70000; ++i) s.write(key_of(random() % 90000), ValueType::integer);
  const auto any_key = [&] {
    auto at = s.model.lower_bound(key_of(random() % 90000));
    return at == s.model.end() ? s.model.begin()->first : at->first;
  };
  for (int round = 0; round < 60 && !test::has_failed(); ++round) {
    if (round == 20) {  // most are deleted
      for (int i = 3000; i < 88000; ++i) {
        if (s.model.contains(key_of(static_cast<std::uint64_t>(i)))) {
          s.write(key_of(static_cast<std::uint64_t>(i)), ValueType::absent);
        }
      }
    }
    const Version settled = s.version;
    for (int i = 0; i < 20; ++i) s.write_in_batch(any_key(), ValueType::absent, true);
    s.check("", "", settled);
    for (int i = 0; i < 20; ++i) {
      s.write_in_batch(any_key(), random() % 2 == 0 ? ValueType::absent : ValueType::integer, random() % 2 == 0);
    }
    for (int i = 0; i < 20; ++i) s.write(any_key(), random() % 9 == 0 ? ValueType::integer : ValueType::absent);
    s.check("", "", s.version);
    for (int i = 0; i < 10; ++i) {
      s.check(key_of(random() % 90000), i % 2 == 0 ? "" : key_of(random() % 90000), s.version - random() % 50);
    }
    if (round < 40) continue;
    // What is deleted for long is forgotten, and the keys come again.
    for (int i = 0; i < 1000; ++i) {
      const std::uint32_t slot = s.store.find(any_key());
      if (type_of(s.store.table()[slot].cell.tag) != ValueType::absent) continue;
      s.model.erase(std::string(s.store.key(slot)));
      s.store.remove(slot);
    }
    for (int i = 0; i < 500; ++i) s.write(key_of(random() % 90000), ValueType::integer);
  }
}

// Guards, reads and deletes of ranges over some chunks, among writes that commit or are undone in the same batch.
Status run_chain(std::uint64_t seed, std::uint64_t* held, std::uint64_t* failed) {
  constexpr std::uint64_t kKeys = 1500;
  std::mt19937_64 random(seed);
  RefereeScenario scenario;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    if (random() % 3 != 0) scenario.load(key_of(i), 1);
  }
  for (int batch = 0; batch < 6; ++batch) {
    const Version first = scenario.header.first_version;
    for (int t = 0; t < 30; ++t) {
      ColumnsBuilder& b = scenario.builder;
      const auto some_key = [&] { return b.key(key_of(random() % kKeys)); };
      const auto any = [&](auto use) {
        const std::uint64_t from = random() % kKeys;
        use(key_of(from), random() % 4 == 0 ? "" : key_of(from + random() % (random() % 2 == 0 ? 20 : kKeys)));
      };
      b.begin(static_cast<std::uint8_t>(random() % 2), random() % 2 == 0 ? 0 : 1000);
      if (random() % 2 == 0) {
        const OnFalse on_false = random() % 2 == 0 ? OnFalse::wait : OnFalse::fail;
        any([&](const std::string& from, const std::string& to) {
          b.range_guard(GuardKind::range_unchanged, on_false, from, to, first - 1 - random() % 50 + random() % 70);
        });
      }
      for (int i = 0; i < 3; ++i) {
        switch (random() % 5) {
          case 0: b.op(OpKind::put, some_key(), Operand::integer, 1); break;
          case 1: b.op(OpKind::del, some_key()); break;
          case 2:
            any([&](const std::string& from, const std::string& to) {
              b.range_op(random() % 2 == 0 ? OpKind::range_get : OpKind::range_get_reverse, from, to, 5);
            });
            break;
          case 3:
            any([&](const std::string& from, const std::string& to) {
              b.range_op(OpKind::delete_range, from, to, static_cast<std::uint32_t>(1 + random() % 300));
            });
            break;
          default: b.op(OpKind::add, some_key(), Operand::integer, random() % 3 == 0 ? INT64_MAX : 1);
        }
      }
      b.end();
    }
    scenario.execute();
    if (Status status = scenario.check(); !status.ok()) return status;
    for (const std::uint8_t outcome : scenario.results.outcome) {
      ++*(outcome == static_cast<std::uint8_t>(Outcome::guard_failed) ? failed : held);
    }
    scenario.next_batch();
  }
  return {};
}

TEST(ranges_within_a_batch_equal_the_referee) {
  const char* const replayed = std::getenv("KILOKV_TEST_SEED");
  const std::uint64_t first = replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : 1;
  const std::uint64_t last = replayed != nullptr ? first : 60;
  std::uint64_t held = 0, failed = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Status status = run_chain(seed, &held, &failed);
    if (status.ok()) continue;
    std::fprintf(stderr, "replay: KILOKV_TEST_SEED=%llu engine_ranges_test\n", static_cast<unsigned long long>(seed));
    return FAIL(status.message());
  }
  if (replayed != nullptr) return;
  std::printf("%llu transactions, and %llu guards that failed\n", static_cast<unsigned long long>(held),
              static_cast<unsigned long long>(failed));
  EXPECT_TRUE(held > 1000 && failed > 500);
}

}  // namespace
}  // namespace kilokv::engine
