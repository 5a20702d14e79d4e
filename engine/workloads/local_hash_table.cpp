#include "engine/workloads/local_hash_table.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace kilokv::engine {

namespace {

class BucketAudit : public StateAudit {
 public:
  explicit BucketAudit(std::uint64_t buckets) : buckets_(buckets) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    constexpr std::uint64_t kItems = LocalHashTable::kItems;
    const std::uint64_t index = KeyName::index_of(key);
    Table& table = tables_[index / kItems];
    (key.starts_with("lhtc") ? table.counts : table.locations)[index % kItems] = integer;
  }

  std::string violation() const override {
    if (tables_.empty()) return {};
    const std::uint64_t last = tables_.rbegin()->first;
    const std::uint64_t kept = LocalHashTable::kTablesKept, first = last < kept ? 0 : last - kept + 1;
    for (std::uint64_t number = first; number <= last; ++number) {
      const auto table = tables_.find(number);
      std::string problem = table == tables_.end() ? "is missing" : problem_of(table->second, number == last);
      if (!problem.empty()) return "table " + std::to_string(number) + " " + problem;
    }
    return {};
  }

 private:
  struct Table {
    std::array<std::int64_t, LocalHashTable::kItems> counts{}, locations{};
  };

  std::string problem_of(const Table& table, bool may_be_open) const {
    std::array<std::int64_t, LocalHashTable::kItems> found{};
    for (std::uint64_t item = 0; item < LocalHashTable::kItems; ++item) {
      const std::int64_t location = table.locations[item];
      if (location == 0 && !may_be_open) return "does not have item " + std::to_string(item);
      if (location == 0) continue;
      ++found[item % buckets_];
      for (std::uint64_t other = item % buckets_; other < item; other += buckets_) {
        if (table.locations[other] == location) return "has two items in one location, " + std::to_string(item);
      }
      if (location > table.counts[item % buckets_]) return "has no location for item " + std::to_string(item);
    }
    for (std::uint64_t bucket = 0; bucket < LocalHashTable::kItems; ++bucket) {
      if (found[bucket] == table.counts[bucket]) continue;
      return "has " + std::to_string(found[bucket]) + " items in bucket " + std::to_string(bucket) + " instead of " +
             std::to_string(table.counts[bucket]);
    }
    return {};
  }

  std::uint64_t buckets_;
  std::map<std::uint64_t, Table> tables_;
};

}  // namespace

LocalHashTable::LocalHashTable(std::uint64_t buckets, std::uint64_t seed) : buckets_(buckets), random_(seed) {
  begin_table(0);
}

InvariantRule LocalHashTable::invariant() const {
  return {.statement = "the items of each bucket have the locations 1 to their number, each one",
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<BucketAudit>(buckets_)};
}

}  // namespace kilokv::engine
