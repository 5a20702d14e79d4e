#include "server/core/waiting/parking_lot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "engine/base/key_hash.hpp"
#include "server/core/environment.hpp"
#include "tests/support/shown_limit.hpp"

namespace kilokv::server {
namespace {

using engine::BeforeImage;
using engine::ColumnsBuilder;
using engine::GuardKind;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;
using engine::TransactionColumns;
using Ids = std::vector<std::uint64_t>;

constexpr engine::KeyHashSecret kSecret{1, 2};
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

std::string key_name(std::uint64_t key) { return "account" + std::to_string(100'000'000 + key); }

std::vector<BeforeImage> written(const std::vector<std::uint64_t>& keys) {
  std::vector<BeforeImage> images;
  for (const std::uint64_t key : keys) {
    images.push_back({engine::hash_key(key_name(key), kSecret), {}});
  }
  return images;
}

// A withdrawal that waits for cover on each of the keys.
TransactionColumns withdrawal(const std::vector<std::uint64_t>& keys) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin(0, 1000);
  for (const std::uint64_t key : keys) {
    builder.guard(GuardKind::greater_equal, OnFalse::wait, builder.key(key_name(key)), 5);
  }
  builder.op(OpKind::add, builder.key(key_name(keys.front())), Operand::integer, -5);
  builder.end();
  return columns;
}

Parked parked(std::uint64_t arrival, TimeUs deadline_us = 1000) {
  Parked parked;
  parked.arrival = arrival;
  parked.deadline_us = deadline_us;
  return parked;
}

std::uint64_t park(ParkingLot* lot, const std::vector<std::uint64_t>& keys, Parked what) {
  const Result<std::uint64_t> id = lot->park(withdrawal(keys), 0, std::move(what));
  EXPECT_TRUE(id.ok());
  return id.ok() ? *id : 0;
}

// In the order in which they come up; one that waits for several of the keys comes up for each.
Ids candidates(ParkingLot* lot) {
  Ids ids;
  while (const Parked* parked = lot->next_candidate()) {
    ids.push_back(parked->id);
  }
  EXPECT_FALSE(lot->has_candidates());
  return ids;
}

Ids woken(ParkingLot* lot, const std::vector<std::uint64_t>& keys) {
  lot->written(written(keys));
  Ids ids = candidates(lot);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Ids due(const ParkingLot& lot, TimeUs stamp_us) {
  Ids ids;
  lot.due(stamp_us, lot.size(), &ids);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(ParkingLotTest, WakesByAnyGuardKey) {
  ParkingLot lot(100, kNoLimit);
  const std::uint64_t one = park(&lot, {1, 2}, parked(20));
  const std::uint64_t other = park(&lot, {2, 3}, parked(10));
  EXPECT_EQ(woken(&lot, {7}), Ids{});
  EXPECT_EQ(woken(&lot, {1}), Ids{one});
  EXPECT_EQ(woken(&lot, {3, 2, 1}), (Ids{one, other}));
  EXPECT_EQ(woken(&lot, {2}), (Ids{one, other}));  // they stay until they are taken
  EXPECT_EQ(woken(&lot, {}), Ids{});
  lot.take(other);
  EXPECT_EQ(woken(&lot, {2, 3}), Ids{one});
}

TEST(ParkingLotTest, ThoseWhoWaitForAKeyThatIsWrittenAllTheTimeTakeTurns) {
  ParkingLot lot(100, kNoLimit);
  const std::uint64_t a = park(&lot, {1}, parked(1));
  const std::uint64_t b = park(&lot, {1}, parked(2));
  const std::uint64_t c = park(&lot, {1}, parked(3));
  Ids ids;
  for (int i = 0; i < 2; ++i) {
    lot.written(written({1}));
    ids.push_back(lot.next_candidate()->id);
    lot.written(written({1}));
    ids.push_back(lot.next_candidate()->id);
  }
  EXPECT_EQ(ids, (Ids{a, b, c, a}));
  EXPECT_EQ(candidates(&lot), (Ids{b, c}));  // a has seen the last write
}

TEST(ParkingLotTest, AHotKeyDoesNotKeepThoseWhoWaitForAnotherFromTheirTurn) {
  ParkingLot lot(100, kNoLimit);
  for (std::uint64_t i = 0; i < 50; ++i) {
    park(&lot, {1}, parked(i));
  }
  const std::uint64_t other = park(&lot, {2}, parked(50));
  lot.written(written({1, 2}));
  lot.next_candidate();
  EXPECT_EQ(lot.next_candidate()->id, other);
  EXPECT_EQ(candidates(&lot).size(), 49u);
}

TEST(ParkingLotTest, WhatIsParkedAfterAWriteHasSeenIt) {
  ParkingLot lot(100, kNoLimit);
  const std::uint64_t before = park(&lot, {1}, parked(1));
  lot.written(written({1}));
  const std::uint64_t after = park(&lot, {1}, parked(2));
  EXPECT_EQ(candidates(&lot), Ids{before});
  lot.take(before);
  EXPECT_EQ(woken(&lot, {1}), Ids{after});
}

TEST(ParkingLotTest, NoMoreAreDueThanWanted) {
  ParkingLot lot(100, kNoLimit);
  for (std::uint64_t i = 0; i < 20; ++i) {
    park(&lot, {i}, parked(i, i % 2 == 0 ? 10 : 30));
  }
  Ids ids;
  lot.due(20, 4, &ids);
  EXPECT_EQ(ids.size(), 4u);
  for (const std::uint64_t id : ids) {
    EXPECT_EQ(lot.find(id)->deadline_us, 10);
  }
}

TEST(ParkingLotTest, TheOtherKeyOfACompareWakesAndARangeDoesNot) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin(0, 1000);
  builder.range_guard(GuardKind::range_unchanged, OnFalse::fail, key_name(8), key_name(9), 5);
  builder.guard(GuardKind::less, OnFalse::wait, builder.key(key_name(1)), 0, builder.key(key_name(2)));
  builder.op(OpKind::add, builder.key(key_name(3)), Operand::integer, 1);
  builder.end();
  ParkingLot lot(100, kNoLimit);
  const Result<std::uint64_t> id = lot.park(columns, 0, parked(1));
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(woken(&lot, {2}), Ids{*id});
  EXPECT_EQ(woken(&lot, {3, 8}), Ids{});
}

TEST(ParkingLotTest, WithoutAKeyToWaitForOnlyTimeWakes) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin(0, 1000);
  builder.range_guard(GuardKind::range_unchanged, OnFalse::wait, key_name(1), key_name(9), 5);
  builder.op(OpKind::add, builder.key(key_name(3)), Operand::integer, 1);
  builder.end();
  ParkingLot lot(100, kNoLimit);
  const Result<std::uint64_t> id = lot.park(columns, 0, parked(1, 40));
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(woken(&lot, {3}), Ids{});
  EXPECT_EQ(due(lot, 39), Ids{});
  EXPECT_EQ(due(lot, 40), Ids{*id});
}

TEST(ParkingLotTest, GivesBackWhatWasParkedAndKeepsItsIdWhenParkedAgain) {
  ParkingLot lot(100, kNoLimit);
  Parked what = parked(3, 77);
  what.owner = std::make_shared<int>(5);
  what.session = SessionId{};
  what.request = 4;
  what.index = 9;
  what.admitted_batch = 12;
  what.guard = 1;
  what.precedence = 2;
  const std::uint64_t id = park(&lot, {1, 2}, what);
  ASSERT_NE(lot.find(id), nullptr);
  Parked taken = lot.take(id);
  EXPECT_EQ(lot.find(id), nullptr);
  EXPECT_TRUE(lot.empty());
  EXPECT_EQ(lot.memory_bytes(), 0u);
  EXPECT_EQ(lot.next_deadline_us(), kNever);
  EXPECT_EQ(taken.owner, what.owner);
  EXPECT_EQ(taken.index, 9u);
  EXPECT_EQ(taken.admitted_batch, 12u);
  EXPECT_EQ(taken.deadline_us, 77);
  TransactionColumns columns;
  engine::unpack_transaction(taken.packed, &columns);
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_EQ(columns.key(columns.guard_key[1]), key_name(2));

  park(&lot, {5}, parked(4));
  EXPECT_EQ(park(&lot, {1, 2}, std::move(taken)), id);
  EXPECT_EQ(lot.list(0, 10).front()->id, id);
}

TEST(ParkingLotTest, LimitsNameTheirKnobsAndParkNothing) {
  ParkingLot few(1, kNoLimit);
  park(&few, {1}, parked(1));
  const Result<std::uint64_t> full = few.park(withdrawal({2}), 0, parked(2));
  expect_shown(full.status(), "raise --parked-max", ErrorReason::parked_full);
  EXPECT_EQ(few.size(), 1u);
  EXPECT_EQ(woken(&few, {2}), Ids{});

  ParkingLot small(100, 100);
  expect_shown(small.park(withdrawal({1}), 0, parked(1)).status(), "raise --parked-bytes-max",
               ErrorReason::parked_full);
  EXPECT_EQ(small.memory_bytes(), 0u);
}

TEST(ParkingLotTest, AParkedWithdrawalIsSmall) {
  ParkingLot lot(100, kNoLimit);
  Parked what = parked(1);
  what.session = SessionId{};
  park(&lot, {1}, std::move(what));
  EXPECT_LT(lot.memory_bytes(), 750u);
}

// The same, naively.
struct Model {
  struct Entry {
    Parked parked;
    std::vector<std::uint64_t> keys;
  };
  std::map<std::uint64_t, Entry> entries;

  template <class Predicate>
  Ids select(Predicate predicate) const {
    Ids ids;
    for (const auto& [id, entry] : entries) {
      if (predicate(entry)) {
        ids.push_back(id);
      }
    }
    return ids;
  }
};

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : random_(seed) {}

  void step() {
    const std::uint64_t choice = random_() % 4;
    if (choice < 2) {
      add();
    } else if (choice == 2 && !model_.entries.empty()) {
      const auto it = std::next(model_.entries.begin(), static_cast<std::ptrdiff_t>(random_() % model_.entries.size()));
      Parked taken = lot_.take(it->first);
      ASSERT_EQ(taken.arrival, it->second.parked.arrival);
      if (random_() % 2 == 0) {  // it ran, was postponed and is parked again
        ASSERT_EQ(park(&lot_, it->second.keys, std::move(taken)), it->first);
      } else {
        model_.entries.erase(it);
      }
    }
    compare();
  }

 private:
  void add() {
    Model::Entry entry;
    for (std::uint64_t count = 1 + random_() % 3; count > 0; --count) {
      entry.keys.push_back(random_() % 40);
    }
    entry.parked.arrival = (++arrivals_ * 7919) % 10'007;
    entry.parked.deadline_us = static_cast<TimeUs>(random_() % 50);
    entry.parked.index = arrivals_;
    if (random_() % 2 == 0) {
      entry.parked.session = SessionId{};
      entry.parked.request = random_() % 3;
    }
    const std::uint64_t id = park(&lot_, entry.keys, entry.parked);
    ASSERT_FALSE(model_.entries.contains(id));
    model_.entries[id] = std::move(entry);
  }

  void compare() {
    const std::vector<std::uint64_t> keys{random_() % 40, random_() % 40};
    ASSERT_EQ(woken(&lot_, keys), model_.select([&](const Model::Entry& entry) {
      return std::find_first_of(entry.keys.begin(), entry.keys.end(), keys.begin(), keys.end()) != entry.keys.end();
    }));
    const auto stamp_us = static_cast<TimeUs>(random_() % 50);
    ASSERT_EQ(due(lot_, stamp_us),
              model_.select([&](const Model::Entry& entry) { return entry.parked.deadline_us <= stamp_us; }));
    TimeUs earliest = kNever;
    Ids all;
    for (const auto& [id, entry] : model_.entries) {
      earliest = std::min(earliest, entry.parked.deadline_us);
      all.push_back(id);
    }
    ASSERT_EQ(lot_.next_deadline_us(), earliest);
    ASSERT_EQ(lot_.size(), all.size());
    compare_request(random_() % 3);
    compare_list(all);
  }

  void compare_request(std::uint64_t request) {
    const Ids ids = model_.select(
        [&](const Model::Entry& entry) { return entry.parked.session && entry.parked.request == request; });
    const std::optional<ParkingLot::IdRange> range = lot_.ids_of_request({SessionId{}, request});
    ASSERT_EQ(range.has_value(), !ids.empty());
    if (!range) return;
    ASSERT_LE(range->first, ids.front());
    ASSERT_GE(range->last, ids.back());
  }

  void compare_list(const Ids& all) {
    const std::uint64_t after = all.empty() ? 0 : all[random_() % all.size()];
    const std::uint64_t last = random_() % 2 == 0 ? UINT64_MAX : after + random_() % 4;
    Ids wanted, listed;
    std::copy_if(all.begin(), all.end(), std::back_inserter(wanted),
                 [&](std::uint64_t id) { return id > after && id <= last; });
    wanted.resize(std::min<std::size_t>(wanted.size(), 3));
    for (const Parked* found : lot_.list(after, 3, last)) {
      listed.push_back(found->id);
    }
    ASSERT_EQ(listed, wanted);
  }

  std::mt19937_64 random_;
  ParkingLot lot_{100'000, kNoLimit};
  Model model_;
  std::uint32_t arrivals_ = 0;
};

TEST(ParkingLotTest, AgreesWithTheModel) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun run(seed);
    for (int i = 0; i < 200; ++i) {
      run.step();
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(ParkingLotTest, TheIdsOfARequestAreARange) {
  ParkingLot lot(100, kNoLimit);
  const auto of_request = [](std::uint64_t request) {
    Parked what = parked(1);
    what.session = SessionId{};
    what.request = request;
    return what;
  };
  const auto expect_range = [&](std::uint64_t first, std::uint64_t last) {
    const std::optional<ParkingLot::IdRange> range = lot.ids_of_request({SessionId{}, 6});
    ASSERT_TRUE(range);
    EXPECT_EQ(range->first, first);
    EXPECT_EQ(range->last, last);
  };
  park(&lot, {1}, of_request(7));
  const std::uint64_t first = park(&lot, {1}, of_request(6));
  expect_range(first, first);
  park(&lot, {1}, of_request(7));
  const std::uint64_t last = park(&lot, {1}, of_request(6));
  park(&lot, {1}, of_request(7));
  expect_range(first, last);
  EXPECT_FALSE(lot.ids_of_request({SessionId{}, 5}));
  EXPECT_FALSE(lot.ids_of_request({SessionId{{1}}, 6}));
  Parked one = lot.take(first), other = lot.take(last);
  EXPECT_FALSE(lot.ids_of_request({SessionId{}, 6}));
  park(&lot, {1}, std::move(other));
  expect_range(last, last);
  park(&lot, {1}, std::move(one));  // after one with a higher id
  expect_range(first, last);
}

}  // namespace
}  // namespace kilokv::server
