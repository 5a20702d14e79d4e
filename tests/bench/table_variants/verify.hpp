// Compares a variant with std::unordered_map, over random operations. A difference ends the process.
#pragma once

#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/types.hpp"

namespace kilokv::bench {

// Where the homes of a run's ids are: anywhere, at a few places, at the end, or where the least or the greatest hash of
// a home is, so that it may be the boundary of a move.
enum class Homes { spread, few, last, edges };

template <class Table>
class Verifier {
 public:
  Verifier(std::uint64_t seed, Homes homes, std::size_t records_max)
      : random_(seed), homes_(homes), records_max_(records_max), table_(0, records_max) {}

  // Grows to records_max, shrinks to a few records, and so on. Insert, erase and write are as likely as that needs.
  void run(std::size_t steps) {
    bool grows = true;
    for (std::size_t step = 0; step < steps; ++step) {
      if (live_.size() >= records_max_) grows = false;
      if (live_.size() < records_max_ / 8) grows = true;
      const std::uint64_t dice = random_() % 8;
      if (dice == 0 && !live_.empty()) {
        write();
      } else if (live_.empty() || (dice < 6) == grows) {
        insert();
      } else {
        erase();
      }
      if constexpr (Table::kSliced) {
        if (random_() % 64 == 0) table_.move_some(static_cast<std::uint32_t>(random_() % 100));
        if (random_() % 4096 == 0 && table_.capacity() < records_max_) table_.start_growth();
        if (table_.moving() && step % 16 == 0) {
          check_some(64);
          ++checked_moving_;
        }
      }
      if (step % 512 == 0) check_some(1500);
      if (step % 8192 == 0) check_all();
    }
    check_all();
  }
  // How often the table was checked while it moved.
  std::size_t checked_moving() const { return checked_moving_; }

 private:
  KeyId new_id() {
    // Some share the lower half with others, or with a mark.
    const std::uint64_t low = (random_() % 4 == 0 ? random_() % 64 : random_()) | 1;
    const std::uint64_t any = random_();
    if (homes_ == Homes::few) return {low, any % 7 << 60 | any >> 40};
    if (homes_ == Homes::last) return {low, ~(any >> 6)};
    if (homes_ == Homes::edges) {
      const std::uint64_t capacity = table_.capacity();
      const std::uint64_t least = ((any % capacity << 32) + capacity - 1) / capacity;
      return {low, (least - (any >> 63)) << 32};
    }
    return {low, any};
  }
  static std::uint32_t key_ref_of(KeyId id) { return static_cast<std::uint32_t>(id.low >> 7); }

  void insert() {
    const KeyId id = new_id();
    if (words_.contains(id)) return;
    const std::uint32_t place = table_.insert(id, key_ref_of(id));
    KILOKV_CHECK(table_[place].id == id && table_[place].cell == Cell{});
    table_[place].cell = {random_(), 1};
    words_[id] = table_[place].cell.word;
    live_.push_back(id);
  }
  void erase() {
    std::swap(live_[random_() % live_.size()], live_.back());
    const KeyId id = live_.back();
    live_.pop_back();
    words_.erase(id);
    table_.erase(table_.find(id));
    erased_.push_back(id);
  }
  void write() {
    const KeyId id = live_[random_() % live_.size()];
    words_[id] = random_();
    table_[table_.find(id)].cell.word = words_[id];
  }

  void check_place(KeyId id, std::uint32_t place) {
    const auto known = words_.find(id);
    KILOKV_CHECK((known == words_.end()) == (place == table_.absent()));
    KILOKV_CHECK(table_[table_.absent()].id == KeyId{});
    if (known == words_.end()) return;
    KILOKV_CHECK(table_[place].id == id && table_[place].cell.word == known->second);
    KILOKV_CHECK(table_.key_ref(place) == key_ref_of(id));
  }
  void check(const std::vector<KeyId>& ids) {
    std::vector<std::uint32_t> places(ids.size());
    const bool has_all = table_.find_all(ids, places.data());
    bool expected = true;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check_place(ids[i], places[i]);
      KILOKV_CHECK(table_.find(ids[i]) == places[i]);
      expected &= words_.contains(ids[i]);
    }
    KILOKV_CHECK(has_all == expected);
  }
  // Of ids that are there, that were there, and that were never there.
  void check_some(std::size_t count_max) {
    std::vector<KeyId> ids;
    const std::size_t count = random_() % count_max;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t dice = random_() % 4;
      if (dice == 0 && !erased_.empty()) {
        ids.push_back(erased_[random_() % erased_.size()]);
      } else if (dice == 1 || live_.empty()) {
        ids.push_back(new_id());
      } else {
        ids.push_back(live_[random_() % live_.size()]);
      }
    }
    check(ids);
  }
  void check_all() {
    check(live_);
    KILOKV_CHECK(table_.size() == live_.size());
    std::size_t seen = 0;
    table_.for_each([&](const engine::Slot& slot) {
      const auto known = words_.find(slot.id);
      KILOKV_CHECK(known != words_.end() && known->second == slot.cell.word);
      ++seen;
    });
    KILOKV_CHECK(seen == live_.size());
  }

  std::mt19937_64 random_;
  Homes homes_;
  std::size_t records_max_;
  Table table_;
  struct HashId {
    std::size_t operator()(KeyId id) const { return id.low ^ id.high * 0x9e3779b97f4a7c15; }
  };
  std::unordered_map<KeyId, std::uint64_t, HashId> words_;
  std::vector<KeyId> live_, erased_;
  std::size_t checked_moving_ = 0;
};

template <class Table>
void verify(std::uint64_t seed) {
  std::size_t checked_moving = 0;
  const auto run = [&](Homes homes, std::size_t records_max, std::size_t steps) {
    Verifier<Table> verifier(seed++, homes, records_max);
    verifier.run(steps);
    checked_moving += verifier.checked_moving();
  };
  for (int i = 0; i < 4; ++i) {
    run(Homes::spread, 20000, 100000);
    run(Homes::edges, 20000, 100000);
  }
  for (int i = 0; i < 30; ++i) {
    run(Homes::few, 400, 4000);
    run(Homes::last, 400, 4000);
  }
  KILOKV_CHECK(!Table::kSliced || checked_moving > 1000);
  std::printf("verified: %s, %zu times while it moved\n", Table::kName, checked_moving);
}

}  // namespace kilokv::bench
