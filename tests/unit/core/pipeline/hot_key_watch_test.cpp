#include "server/core/pipeline/hot_key_watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kilokv::server {
namespace {

using engine::FailedIn;
using engine::GuardKind;
using engine::OnFalse;
using engine::OpKind;
using engine::Outcome;

constexpr engine::KeyHashSecret kSecret{1, 2};
constexpr TimeUs kSecond = 1'000'000;

// A batch, and what became of its transactions.
struct Ran {
  engine::TransactionColumns columns;
  engine::BatchResults results;
  engine::ColumnsBuilder builder{&columns, kSecret};

  void end(Outcome outcome, FailedIn failed_in = FailedIn::none, std::uint32_t failed_index = engine::kNone) {
    builder.end();
    results.outcome.push_back(static_cast<std::uint8_t>(outcome));
    results.failed_in.push_back(static_cast<std::uint8_t>(failed_in));
    results.failed_index.push_back(failed_index);
  }
  void put(const std::string& key) {
    builder.begin();
    builder.op(OpKind::put, builder.key(key));
    end(Outcome::committed);
  }
};

std::map<std::string, HotKey> by_key(const HotKeys& hot) {
  std::map<std::string, HotKey> keys;
  for (const HotKey& key : hot.keys) keys[key.key + (key.is_range ? " range" : "")] = key;
  return keys;
}

std::set<std::string> names(const HotKeyWatch& watch, KeyUse use) {
  std::set<std::string> names;
  for (const auto& [name, key] : by_key(watch.top(use, 100, 0))) names.insert(name);
  return names;
}

TEST(HotKeyWatch, KnowsNothingBeforeTheFirstBatch) {
  const HotKeyWatch watch;
  EXPECT_TRUE(watch.top(KeyUse::write, 10, 5 * kSecond).keys.empty());
}

// What each transaction does by its outcome: only the list that ran counts.
TEST(HotKeyWatch, CountsEachUseWhereItBelongs) {
  Ran ran;
  auto& b = ran.builder;
  const auto transaction = [&](const std::string& name) {
    b.begin();
    b.guard(GuardKind::exists, OnFalse::fail, b.key(name + ".first"), 0);
    b.guard(GuardKind::less, OnFalse::fail, b.key(name + ".second"), 0, b.key(name + ".other"));
    b.op(OpKind::get, b.key(name + ".get"));
    b.op(OpKind::add, b.key(name + ".add"));
    b.range_op(OpKind::range_get, name + ".from", name + ".to", 5);
    b.begin_else();
    b.op(OpKind::del, b.key(name + ".del"));
    b.range_op(OpKind::delete_range, name + ".cut", name + ".to", 5);
  };
  transaction("committed");
  ran.end(Outcome::committed);
  transaction("failed");
  ran.end(Outcome::guard_failed, FailedIn::guards, 1);
  transaction("waits");
  ran.end(Outcome::postponed, FailedIn::guards, 0);
  transaction("expired");
  ran.end(Outcome::wait_expired, FailedIn::guards, 0);
  transaction("undone");
  ran.end(Outcome::overflow, FailedIn::then_ops, 1);
  transaction("else_undone");
  ran.end(Outcome::type_mismatch, FailedIn::else_ops, 0);
  transaction("mismatch");
  ran.end(Outcome::type_mismatch, FailedIn::guards, 1);
  HotKeyWatch watch;
  watch.note_batch(ran.columns, ran.results, 0, kSecret);

  std::set<std::string> reads = {"committed.get", "committed.from range", "undone.get", "undone.from range"};
  for (const std::string name : {"committed", "failed", "waits", "expired", "undone", "else_undone", "mismatch"}) {
    for (const std::string key : {".first", ".second", ".other"}) reads.insert(name + key);
  }
  EXPECT_EQ(names(watch, KeyUse::read), reads);
  EXPECT_EQ(names(watch, KeyUse::write),
            (std::set<std::string>{"committed.add", "undone.add", "failed.del", "failed.cut range", "else_undone.del",
                                   "else_undone.cut range"}));
  EXPECT_EQ(names(watch, KeyUse::failed_guard), (std::set<std::string>{"failed.second", "expired.first"}));
  EXPECT_EQ(names(watch, KeyUse::wait), (std::set<std::string>{"waits.first"}));
}

// A range guard, and a key with the bytes of the begin of the range.
TEST(HotKeyWatch, TellsARangeFromAKey) {
  Ran ran;
  ran.builder.begin();
  ran.builder.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", "b", 7);
  ran.builder.op(OpKind::get, ran.builder.key("a"));
  ran.end(Outcome::committed);
  HotKeyWatch watch;
  watch.note_batch(ran.columns, ran.results, 0, kSecret);
  EXPECT_EQ(names(watch, KeyUse::read), (std::set<std::string>{"a", "a range"}));
}

TEST(HotKeyWatch, TellsRatesAndForgets) {
  HotKeyWatch watch;
  Ran ran;
  for (int i = 0; i < 4; ++i) ran.put("hot");
  ran.put("warm");
  TimeUs now = 0;
  for (; now < 60 * kSecond; now += kSecond / 25) watch.note_batch(ran.columns, ran.results, now, kSecret);
  HotKeys hot = watch.top(KeyUse::write, 10, now);
  EXPECT_EQ(hot.sampled_one_in, 1u);
  EXPECT_NEAR(hot.per_second, 125, 3);
  ASSERT_EQ(hot.keys.size(), 2u);
  EXPECT_EQ(hot.keys[0].key, "hot");
  EXPECT_NEAR(hot.keys[0].per_second, 100, 2);
  EXPECT_NEAR(hot.keys[1].per_second, 25, 1);
  EXPECT_EQ(watch.top(KeyUse::write, 1, now).keys.size(), 1u);
  hot = watch.top(KeyUse::write, 10, now + kHotKeysHalfLifeUs);
  EXPECT_NEAR(hot.keys[0].per_second, 50, 2);
  EXPECT_TRUE(watch.top(KeyUse::write, 10, now + 20 * kHotKeysHalfLifeUs).keys.empty());
  // Much later, the weights have been scaled. What is new counts alone.
  Ran later;
  later.put("new");
  for (const TimeUs pause : {TimeUs{0}, 63 * kHotKeysHalfLifeUs, 100000 * kHotKeysHalfLifeUs}) {
    now += pause;
    for (const TimeUs end = now + 100 * kSecond; now < end; now += kSecond / 10) {
      watch.note_batch(later.columns, later.results, now, kSecret);
    }
    hot = watch.top(KeyUse::write, 1, now);
    ASSERT_EQ(hot.keys.size(), 1u);
    EXPECT_EQ(hot.keys[0].key, "new");
    EXPECT_NEAR(hot.keys[0].per_second, 10, 1) << pause;
  }
}

// The first second: the rate is not yet that of ten seconds.
TEST(HotKeyWatch, TellsTheRateOfAServerThatHasJustStarted) {
  HotKeyWatch watch;
  Ran ran;
  for (int i = 0; i < 10; ++i) ran.put("hot");
  TimeUs now = 5 * kSecond;
  for (; now < 7 * kSecond; now += kSecond / 10) watch.note_batch(ran.columns, ran.results, now, kSecret);
  EXPECT_NEAR(watch.top(KeyUse::write, 1, now).per_second, 100, 5);
}

// A Zipf distribution (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", 1994), as its table.
class Zipf {
 public:
  Zipf(std::size_t keys, double theta) : up_to_(keys) {
    double sum = 0;
    for (std::size_t i = 0; i < keys; ++i) up_to_[i] = sum += std::pow(static_cast<double>(i + 1), -theta);
    for (double& value : up_to_) value /= sum;
  }
  std::size_t operator()(std::mt19937_64& random) const {
    const double at = std::uniform_real_distribution<double>()(random);
    return static_cast<std::size_t>(std::lower_bound(up_to_.begin(), up_to_.end(), at) - up_to_.begin());
  }

 private:
  std::vector<double> up_to_;
};

// Under Zipf 0.99, the ten keys that were used most are among the twenty that are shown, also where only a sample is
// counted. And the rates are right.
TEST(HotKeyWatch, FindsTheHotKeysOfABusyServer) {
  const Zipf zipf(20000, 0.99);
  for (const std::uint32_t seed : {1u, 2u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    HotKeyWatch watch;
    std::map<std::string, std::uint64_t> exact;
    constexpr int kBatch = 512, kBatchesPerSecond = 400;
    TimeUs now = 0;
    for (; now < 2 * kSecond; now += kSecond / kBatchesPerSecond) {
      Ran ran;
      for (int i = 0; i < kBatch; ++i) {
        const std::string key = "key" + std::to_string(zipf(random));
        ran.put(key);
        ++exact[key];
      }
      watch.note_batch(ran.columns, ran.results, now, kSecret);
    }
    const HotKeys hot = watch.top(KeyUse::write, 20, now);
    EXPECT_GE(hot.sampled_one_in, 20u) << "of 204,800 uses a second, 5,000 are counted";
    EXPECT_NEAR(hot.per_second, kBatch * kBatchesPerSecond, 0.1 * kBatch * kBatchesPerSecond);
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const auto& [key, uses] : exact) order.emplace_back(uses, key);
    std::sort(order.rbegin(), order.rend());
    const auto found = by_key(hot);
    for (std::size_t i = 0; i < 10; ++i) {
      const auto at = found.find(order[i].second);
      ASSERT_NE(at, found.end()) << order[i].second << " is number " << i + 1;
      const double rate = static_cast<double>(order[i].first) / 2;
      EXPECT_NEAR(at->second.per_second, rate, 0.2 * rate + at->second.error) << i;
    }
  }
}

// However many uses come, no more are counted in a second than the bound and the first burst.
TEST(HotKeyWatch, CountsABoundedSample) {
  HotKeyWatch watch;
  Ran ran;
  for (int i = 0; i < 4096; ++i) ran.put("key" + std::to_string(i));
  TimeUs now = 0;
  for (; now < 5 * kSecond; now += kSecond / 1000) watch.note_batch(ran.columns, ran.results, now, kSecret);
  const HotKeys busy = watch.top(KeyUse::write, 1, now);
  EXPECT_GT(busy.sampled_one_in, 100u) << "of 4 million uses a second";
  EXPECT_NEAR(busy.per_second, 4096e3, 0.1 * 4096e3);
  // Then a calm time: each counts again.
  Ran calm;
  calm.put("calm");
  for (const TimeUs end = now + 100 * kSecond; now < end; now += kSecond / 100) {
    watch.note_batch(calm.columns, calm.results, now, kSecret);
  }
  const HotKeys after = watch.top(KeyUse::write, 1, now);
  EXPECT_EQ(after.sampled_one_in, 1u);
  EXPECT_EQ(after.keys.at(0).key, "calm");
}

// A transaction with very many operations is counted by a sample of them.
TEST(HotKeyWatch, CountsASampleOfALongTransaction) {
  HotKeyWatch watch;
  TimeUs now = 0;
  for (; now < 30 * kSecond; now += kSecond) {
    Ran ran;
    ran.builder.begin();
    for (int i = 0; i < 6400; ++i)
      ran.builder.op(OpKind::put, ran.builder.key(i % 2 == 0 ? "even" : "odd" + std::to_string(i)));
    ran.end(Outcome::committed);
    watch.note_batch(ran.columns, ran.results, now, kSecret);
  }
  const HotKeys hot = watch.top(KeyUse::write, 1, now);
  EXPECT_NEAR(hot.per_second, 6400, 640);
  EXPECT_EQ(hot.keys.at(0).key, "even");
}

}  // namespace
}  // namespace kilokv::server
