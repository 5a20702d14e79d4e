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
  lot->tell_lanes(SIZE_MAX);
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

// Takes all that are due, in their turns. The batches take at most `max` each.
Ids take_due(ParkingLot* lot, TimeUs stamp_us, std::size_t max = SIZE_MAX) {
  Ids ids;
  lot->begin_batch(stamp_us);
  while (Parked* const parked = ids.size() == max ? nullptr : lot->next_due()) {
    EXPECT_LE(parked->due_us(), stamp_us);
    lot->choose(parked);
    ids.push_back(parked->id);
  }
  for (const std::uint64_t id : ids) lot->take(id);
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

TEST(ParkingLotTest, TheyAreDueInTheOrderOfTheirDeadlines) {
  ParkingLot lot(100, kNoLimit);
  const std::uint64_t late = park(&lot, {1}, parked(1, 30)), second = park(&lot, {2}, parked(2, 20)),
                      first = park(&lot, {3}, parked(3, 10)), third = park(&lot, {4}, parked(4, 25));
  EXPECT_EQ(lot.next_due_us(), 10);
  EXPECT_EQ(take_due(&lot, 25, 1), Ids{first});
  EXPECT_EQ(lot.next_due_us(), 25) << "the stamp, because some are due and left";
  EXPECT_EQ(take_due(&lot, 25), (Ids{second, third}));
  EXPECT_EQ(lot.next_due_us(), 30);
  EXPECT_EQ(take_due(&lot, 29), Ids{});
  EXPECT_EQ(take_due(&lot, 30), Ids{late});
}

TEST(ParkingLotTest, WhatSleepsIsDueOnlyWhileItIsThere) {
  ParkingLot lot(100, kNoLimit);
  const std::uint64_t first = park(&lot, {1}, parked(1, 10)), second = park(&lot, {2}, parked(2, 50));
  EXPECT_EQ(take_due(&lot, 20, 0), Ids{});
  lot.take(first);
  EXPECT_EQ(lot.next_due(), nullptr) << "what is left of this client is not due";
  EXPECT_EQ(lot.next_due_us(), 50);
  const std::uint64_t again = park(&lot, {3}, parked(3, 15));
  EXPECT_EQ(take_due(&lot, 20), Ids{again});
  EXPECT_EQ(take_due(&lot, 50), Ids{second});
}

// A transaction of `packed` bytes at least.
TransactionColumns large(std::size_t packed) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  builder.begin(0, 1000);
  builder.guard(GuardKind::bytes_equal, OnFalse::wait, builder.key(key_name(1)),
                builder.value(std::string(packed, 'x')));
  builder.op(OpKind::get, builder.key(key_name(1)));
  builder.end();
  return columns;
}

TEST(ParkingLotTest, AListLooksAtABoundedNumberOfBytes) {
  ParkingLot lot(10'000, kNoLimit);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(lot.park(large(1 << 20), 0, parked(i)).ok());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(lot.park(large(64 << 10), 0, parked(i)).ok());
  for (std::uint64_t i = 0; i < 5; ++i) park(&lot, {2}, parked(i));
  std::vector<std::size_t> pages;
  std::uint64_t after = 0;
  for (bool has_more = true; has_more;) {
    const ParkingLot::Page page = lot.list(after, 2000);
    ASSERT_FALSE(page.parked.empty()) << "at least one";
    pages.push_back(page.parked.size());
    after = page.parked.back()->id;
    has_more = page.has_more;
  }
  EXPECT_EQ(after, 108u);
  ASSERT_EQ(pages.size(), 16u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(pages[i], 1u) << "of a MiB";
  for (std::size_t i = 3; i < 15; ++i) EXPECT_EQ(pages[i], 8u) << "of 64 KiB";
  EXPECT_FALSE(lot.list(0, 1).parked.empty());
  EXPECT_TRUE(lot.list(0, 1).has_more);
  EXPECT_FALSE(lot.list(107, 1).has_more) << "the page ends with the last one";
  EXPECT_FALSE(lot.list(0, 1, 1).has_more);
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
  EXPECT_EQ(take_due(&lot, 39), Ids{});
  EXPECT_EQ(take_due(&lot, 40), Ids{*id});
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
  EXPECT_EQ(lot.next_due_us(), kNever);
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
  EXPECT_EQ(lot.list(0, 10).parked.front()->id, id);
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
  park(&lot, {1}, what);
  const std::uint64_t with_its_client = lot.memory_bytes();
  park(&lot, {2}, what);
  EXPECT_LT(lot.memory_bytes() - with_its_client, 950u);
  EXPECT_LT(2 * with_its_client - lot.memory_bytes(), 400u) << "of the client";
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
    if (random_() % 3 == 0) move_one();
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
    if (random_() % 3 == 0) entry.parked.next_time_us = static_cast<TimeUs>(random_() % 50);
    entry.parked.index = arrivals_;
    entry.parked.client = random_() % 4 == 0 ? nullptr : clients_[random_() % clients_.size()].get();
    if (random_() % 2 == 0) {
      entry.parked.session = SessionId{};
      entry.parked.request = random_() % 3;
    }
    const std::uint64_t id = park(&lot_, entry.keys, entry.parked);
    ASSERT_FALSE(model_.entries.contains(id));
    model_.entries[id] = std::move(entry);
  }

  // A candidate gets another time, or none.
  void move_one() {
    lot_.written(written({random_() % 40}));
    lot_.tell_lanes(SIZE_MAX);
    Parked* const candidate = lot_.next_candidate();
    if (candidate == nullptr) return;
    const TimeUs next_us = random_() % 3 == 0 ? kNever : static_cast<TimeUs>(random_() % 50);
    model_.entries.at(candidate->id).parked.next_time_us = next_us;
    lot_.set_next_time(candidate, next_us);
    candidates(&lot_);
  }

  void compare() {
    const std::vector<std::uint64_t> keys{random_() % 40, random_() % 40};
    ASSERT_EQ(woken(&lot_, keys), model_.select([&](const Model::Entry& entry) {
      return std::find_first_of(entry.keys.begin(), entry.keys.end(), keys.begin(), keys.end()) != entry.keys.end();
    }));
    TimeUs earliest = kNever;
    Ids all;
    for (const auto& [id, entry] : model_.entries) {
      earliest = std::min({earliest, entry.parked.deadline_us, entry.parked.next_time_us});
      all.push_back(id);
    }
    ASSERT_EQ(lot_.next_due_us(), earliest);
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
    for (const Parked* found : lot_.list(after, 3, last).parked) {
      listed.push_back(found->id);
    }
    ASSERT_EQ(listed, wanted);
  }

  std::mt19937_64 random_;
  const std::vector<std::shared_ptr<Client>> clients_{std::make_shared<Client>("one"), std::make_shared<Client>("two"),
                                                      std::make_shared<Client>("three")};
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
