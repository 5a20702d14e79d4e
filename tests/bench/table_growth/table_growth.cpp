// Measures what the growth of the record table costs: the longest single insert, the memory of a record, and the time
// of finds, inserts and erases.
//
// The records have keys of 16 bytes and integers, as in the limit on the memory of a record (96 bytes). "wall" has the
// waiting for a processor in it, so the longest insert of a busy machine is too long.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/key_hash.hpp"
#include "engine/platform/stopwatch.hpp"
#include "engine/table/record_store.hpp"
#include "engine/table/record_table.hpp"

namespace kilokv::bench {
namespace {

using engine::RecordStore;
using engine::RecordTable;
using engine::Stopwatch;
using Clock = std::chrono::steady_clock;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

double resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + std::strlen("VmRSS:"), nullptr) * 1024;
  }
  return 0;
}

// Wall times of single calls.
class Calls {
 public:
  template <class F>
  void time(const F& call) {
    const Clock::time_point begin = Clock::now();
    call();
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    longest_ = std::max(longest_, ms);
    over_1_ms_ += ms > 1 ? 1 : 0;
    over_10_ms_ += ms > 10 ? 1 : 0;
  }
  void print(const char* what) const {
    std::printf("%s: longest call %.3f ms, %zu of more than 1 ms, %zu of more than 10 ms\n", what, longest_, over_1_ms_,
                over_10_ms_);
  }

 private:
  double longest_ = 0;
  std::size_t over_1_ms_ = 0, over_10_ms_ = 0;
};

void print(const char* what, const Stopwatch& watch, std::size_t operations) {
  const double each = 1e9 / static_cast<double>(operations);
  std::printf("%s: %.1f ns of processor time, %.1f ns wall\n", what, watch.processor_seconds() * each,
              watch.seconds() * each);
}

class StoreGrowth {
 public:
  StoreGrowth(std::uint64_t seed, std::size_t records)
      : seed_(seed), records_(records), before_(resident_bytes()), store_({seed, ~seed}, 0, 2 * records) {}

  void run() {
    Calls calls;
    const Stopwatch watch;
    for (std::size_t i = 1; i <= records_; ++i) {
      insert(i, &calls);
      if (i % 1000 == 0) look(i);
    }
    print("store: insert and settle", watch, records_);
    calls.print("store: insert");
    std::printf("store: at most %.2f bytes/record (%.2f resident) from %zu records on\n", most_, most_resident_,
                records_ / 10);
    std::printf("store: at the end %.2f bytes/record (%.2f resident), load %.3f, %s\n", bytes(records_),
                resident(records_), static_cast<double>(records_) / store_.table().capacity(),
                store_.table().growing() ? "growing" : "not growing");
  }

 private:
  void insert(std::size_t i, Calls* calls) {
    char key[17];
    std::snprintf(key, sizeof(key), "%016llx", static_cast<unsigned long long>(mix(seed_ + i)));
    const KeyId id = engine::hash_key(key, store_.secret());
    calls->time([&] { KILOKV_CHECK(store_.insert(id, key)); });
    const std::uint32_t slot = store_.table().find(id);
    store_.table()[slot].cell = {i, make_tag(i, ValueType::integer)};
    store_.settle(slot, Cell{});
  }
  // Constant time, so that this does not disturb the measurement much.
  void look(std::size_t i) {
    if (i < records_ / 10) return;
    const engine::StoreMemory memory = store_.memory();
    const auto sum = static_cast<double>(memory.table + memory.keys + memory.index);
    most_ = std::max(most_, sum / static_cast<double>(i));
    if (i % 20000 == 0) most_resident_ = std::max(most_resident_, resident(i));
  }
  double bytes(std::size_t i) const { return static_cast<double>(store_.memory_bytes()) / static_cast<double>(i); }
  double resident(std::size_t i) const { return (resident_bytes() - before_) / static_cast<double>(i); }

  const std::uint64_t seed_;
  const std::size_t records_;
  const double before_;
  RecordStore store_;
  double most_ = 0, most_resident_ = 0;
};

class TableGrowth {
 public:
  TableGrowth(std::uint64_t seed, std::size_t records) : seed_(seed), records_(records), table_(0, 2 * records) {}

  void run() {
    Calls calls;
    const Stopwatch watch;
    for (std::size_t i = 0; i < records_; ++i) {
      calls.time([&] { table_.insert(id(i), 0); });
    }
    print("table: insert, with all growths", watch, records_);
    calls.print("table: insert");
    measure("table, at the end");
    while (!table_.growing()) table_.insert(id(records_++), 0);
    while (table_.growing() && 100 * table_.size() < 81 * (table_.capacity() * std::size_t{5} / 6)) {
      table_.insert(id(records_++), 0);
    }
    measure(table_.growing() ? "table, while it grows" : "table, after the growth");
  }

 private:
  KeyId id(std::uint64_t i) const { return {mix(seed_ + 2 * i) | 1, mix(~seed_ + 2 * i + 1)}; }

  void measure(const char* what) {
    constexpr std::size_t kBatch = 8192, kBatches = 64;
    std::vector<KeyId> ids(kBatch * kBatches);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = id(mix(i) % records_);
    std::vector<std::uint32_t> slots(kBatch);
    std::printf("%s: load %.3f\n", what, static_cast<double>(table_.size()) / table_.capacity());
    for (int round = 0; round < 3; ++round) {
      const Stopwatch watch;
      for (std::size_t begin = 0; begin < ids.size(); begin += kBatch) {
        KILOKV_CHECK(table_.find_all({ids.data() + begin, kBatch}, slots.data()));
      }
      print("  find", watch, ids.size());
    }
    const std::size_t count = records_ / 100;
    const Stopwatch erases;
    for (std::size_t i = 0; i < count; ++i) table_.erase(table_.find(id(i)));
    print("  find and erase", erases, count);
    const Stopwatch inserts;
    for (std::size_t i = 0; i < count; ++i) table_.insert(id(i), 0);
    print("  insert", inserts, count);
  }

  const std::uint64_t seed_;
  std::size_t records_;
  RecordTable table_;
};

int run(int argc, char** argv) {
  std::size_t records = 10000000;
  std::uint64_t seed = 1;
  bool store = true, table = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--records" && i + 1 < argc) {
      records = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--only-store") {
      table = false;
    } else if (flag == "--only-table") {
      store = false;
    } else {
      std::fprintf(stderr, "usage: table_growth [--records N] [--seed N] [--only-store | --only-table]\n");
      return 2;
    }
  }
  std::printf("seed %llu, %zu records\n", static_cast<unsigned long long>(seed), records);
  if (store) StoreGrowth(seed, records).run();
  if (table) TableGrowth(seed, records).run();
  return 0;
}

}  // namespace
}  // namespace kilokv::bench

int main(int argc, char** argv) { return kilokv::bench::run(argc, argv); }
