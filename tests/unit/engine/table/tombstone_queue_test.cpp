// The tombstone queue against a model: a set of the entries that were added and not yet taken. A stale entry may leave
// the queue unseen; any other entry is taken once, lowest version first.

#include "engine/table/tombstone_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr unsigned kSeed = 20261210;
constexpr std::size_t kSegmentMax = 1024;  // of the queue

// A queue with a model of it.
class Model {
 public:
  // The key is deleted at this version: an older entry of the key is stale from then on.
  void add(std::uint64_t key, Version version) {
    if (!added_.emplace(version, key).second) return;
    write(key);
    deleted_[key] = version;
    valid_.insert(version);
    queue_.add({version, {key, ~key}}, [this](const Tombstone& t) {
      EXPECT_TRUE(added_.contains({t.version, t.id.low}));  // what was taken is not asked about again
      return is_stale(t);
    });
  }
  // The key is written: its entry is stale.
  void write(std::uint64_t key) {
    const auto found = deleted_.find(key);
    if (found == deleted_.end()) return;
    valid_.erase(valid_.find(found->second));
    deleted_.erase(found);
  }
  void take() {
    const Tombstone* const front = queue_.front();
    EXPECT_TRUE(queue_.size() >= deleted_.size());
    if (front == nullptr) return EXPECT_EQ(queue_.size(), std::size_t{0});
    const Tombstone taken = *front;
    queue_.pop();
    EXPECT_EQ(taken.id.high, ~taken.id.low);
    EXPECT_EQ(added_.erase({taken.version, taken.id.low}), std::size_t{1});
    if (!valid_.empty()) EXPECT_TRUE(taken.version <= *valid_.begin());
    if (is_stale(taken)) return;
    ++valid_taken_;
    write(taken.id.low);
  }
  void take_all() {
    for (std::size_t left = queue_.size(); left > 0; --left) {
      EXPECT_EQ(queue_.size(), left);
      take();
    }
    EXPECT_TRUE(queue_.front() == nullptr);
    EXPECT_TRUE(deleted_.empty());
  }

  std::size_t size() const { return queue_.size(); }
  std::size_t memory_bytes() const { return queue_.memory_bytes(); }
  std::size_t valid_taken() const { return valid_taken_; }

 private:
  bool is_stale(const Tombstone& t) const {
    const auto found = deleted_.find(t.id.low);
    return found == deleted_.end() || found->second != t.version;
  }

  TombstoneQueue queue_;
  std::map<std::uint64_t, Version> deleted_;  // by key, since when
  std::multiset<Version> valid_;              // of the keys that are deleted
  std::set<std::pair<Version, std::uint64_t>> added_;
  std::size_t valid_taken_ = 0;
};

// The queue grows to some segments and shrinks to nothing, again and again. Some versions are lower than the newest.
TEST(tombstones_are_taken_lowest_version_first) {
  std::mt19937_64 random(kSeed);
  Model model;
  Version version = 100000;
  for (int step = 0; step < 300000 && !test::has_failed(); ++step) {
    const std::uint64_t key = random() % 6000;
    const bool grows = step / 15000 % 2 == 0;
    switch (random() % (grows ? 8 : 20)) {
      case 0: model.write(key); break;
      case 1: model.add(key, version - random() % 3000); break;
      case 2:
      case 3: model.add(key, version); break;  // of the same version as the one before
      case 4:
      case 5:
      case 6: model.add(key, ++version); break;
      default: model.take();
    }
  }
  model.take_all();
  EXPECT_TRUE(model.valid_taken() > 50000);
}

// The first segment is cleaned after a part of it was taken.
TEST(cleaning_keeps_what_is_valid_and_nothing_that_was_taken) {
  for (const std::size_t taken : {std::size_t{1}, kSegmentMax / 2, kSegmentMax - 1, kSegmentMax}) {
    for (const std::uint64_t stale_of_8 : {0, 1, 7, 8}) {
      Model model;
      Version version = 0;
      for (std::uint64_t key = 0; key < 4 * kSegmentMax; ++key) model.add(key, ++version);
      for (std::size_t i = 0; i < taken; ++i) model.take();
      for (std::uint64_t key = 0; key < 4 * kSegmentMax; ++key) {
        if (key * 5 % 8 < stale_of_8) model.write(key);
      }
      for (std::uint64_t key = 0; key < 8 * kSegmentMax; ++key) model.add(10 * kSegmentMax + key, ++version);
      model.take_all();
    }
  }
}

TEST(late_tombstones_are_taken_in_their_turn) {
  Model model;
  for (std::uint64_t key = 0; key < 1000; ++key) model.add(key, 1'000'000 + key);
  for (std::uint64_t key = 1000; key < 3000; ++key) model.add(key, key * 7919 % 1'100'003);  // some are not late
  model.take_all();
  EXPECT_EQ(model.valid_taken(), std::size_t{3000});
}

TEST(stale_tombstones_take_no_more_memory) {
  constexpr std::uint64_t kKeys = 3000;
  std::mt19937_64 random(kSeed);
  Model model;
  std::size_t size_max = 0, memory_bytes_max = 0;
  for (Version version = 1; version <= 400000; ++version) {
    model.add(random() % kKeys, version);
    size_max = std::max(size_max, model.size());
    memory_bytes_max = std::max(memory_bytes_max, model.memory_bytes());
  }
  EXPECT_TRUE(size_max < 4 * kKeys);
  EXPECT_TRUE(memory_bytes_max < 4 * kKeys * sizeof(Tombstone) + 8 * kSegmentMax * sizeof(Tombstone));
  model.take_all();
}

}  // namespace
}  // namespace kilokv::engine
