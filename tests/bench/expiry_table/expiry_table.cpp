// Measures the table of expiries: the longest single insert, the memory of a key, finds, and the deletes of all keys in
// the order of their times. `expiry_table [KEYS]`, 10,000,000 by default.
//
// All times are wall time, so the longest insert of a busy machine is too long.
#include "engine/table/expiry_table.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

namespace kilokv::bench {
namespace {

using engine::ExpiryTable;
using Clock = std::chrono::steady_clock;

constexpr double kLongUs = 1000;
constexpr std::size_t kShown = 6, kFinds = 1000000, kBatch = 1024;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

void insert_all(const std::vector<KeyId>& ids, std::mt19937_64* random, ExpiryTable* table) {
  std::vector<std::pair<double, std::size_t>> longest;
  const double before = resident_bytes();
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const TimeUs expires_us = 1000000 + static_cast<TimeUs>(i * 10 + (*random)() % 1000);
    const Clock::time_point one = Clock::now();
    table->set(ids[i], expires_us);
    if (const double us = us_since(one); us > kLongUs) longest.emplace_back(us, i);
  }
  const auto keys = static_cast<double>(ids.size());
  std::printf("insert: %.0f ns each, %zu took more than 1 ms, %.0f bytes each (counted: %zu)\n",
              us_since(begin) * 1000 / keys, longest.size(), (resident_bytes() - before) / keys,
              ExpiryTable::kKeyBytes);
  std::sort(longest.rbegin(), longest.rend());
  longest.resize(std::min(longest.size(), kShown));
  for (const auto& [us, size] : longest) std::printf("  %.1f ms at %zu keys\n", us / 1000, size);
}

void find_some(const std::vector<KeyId>& ids, const ExpiryTable& table) {
  TimeUs sum = 0;
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < kFinds; ++i) sum += table.find(ids[i * 7919 % ids.size()]);
  std::printf("find: %.0f ns (sum %lld)\n", us_since(begin) * 1000 / kFinds, static_cast<long long>(sum));
}

void expire_all(ExpiryTable* table) {
  const auto keys = static_cast<double>(table->size());
  double longest_us = 0;
  std::vector<KeyId> due;
  const Clock::time_point begin = Clock::now();
  while (!table->empty()) {
    const Clock::time_point one = Clock::now();
    due.clear();
    table->visit_due(kNever - 1, kBatch, [&](KeyId id, TimeUs) { due.push_back(id); });
    for (const KeyId& id : due) table->set(id, 0);
    longest_us = std::max(longest_us, us_since(one));
  }
  std::printf("expire: %.0f ns each; the longest %zu together %.2f ms\n", us_since(begin) * 1000 / keys, kBatch,
              longest_us / 1000);
}

}  // namespace
}  // namespace kilokv::bench

int main(int count, char** arguments) {
  std::vector<kilokv::KeyId> ids(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10000000);
  std::mt19937_64 random(1);
  for (kilokv::KeyId& id : ids) id = {random(), random()};
  kilokv::engine::ExpiryTable table;
  kilokv::bench::insert_all(ids, &random, &table);
  kilokv::bench::find_some(ids, table);
  kilokv::bench::expire_all(&table);
}
