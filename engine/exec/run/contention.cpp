#include "engine/exec/run/contention.hpp"

#include <algorithm>

#include "engine/txn/program.hpp"

namespace kilokv::engine {

namespace {

constexpr unsigned kHashShift = 54;

std::size_t run_of(std::uint16_t sampled) { return (sampled - 1u) / ContentionSample::kRun; }

}  // namespace

const char* to_string(Contention contention) {
  constexpr const char* kNames[kContentions] = {"low", "some", "high"};
  return kNames[static_cast<std::size_t>(contention)];
}

Contention ContentionSample::look_at(const TransactionColumns& columns) {
  if (++epoch_ == 0) records_.fill({});  // the epochs start again: all entries become free
  epoch_ += epoch_ == 0 ? 1 : 0;
  hottest_ = 0;
  const std::size_t n = columns.size();
  const std::size_t wanted = std::clamp(n / kBatchShare, kTransactionsMin, kTransactions);
  const std::size_t runs = wanted / kRun;
  const std::size_t step = std::max(n / runs, kRun);
  std::size_t uses = 0;
  std::uint16_t sampled = 0;
  const auto id = [&](std::uint32_t key) { return columns.key_id[key].low; };
  for (std::size_t i = 0; i < runs * kRun && uses < kUses; ++i) {
    const std::size_t t = i / kRun * step + i % kRun;
    if (t >= n) break;
    ++sampled;
    for (std::uint32_t g = columns.guard_begin(t); g < columns.guard_end[t] && uses + 1 < kUses; ++g) {
      for (const std::uint32_t key : {columns.guard_key[g], columns.guard_other[g]}) {
        if (key == kNone) continue;
        ++uses;
        use(id(key), sampled, false, true);
      }
    }
    const std::uint32_t begin = t == 0 ? 0 : columns.else_end[t - 1];
    for (std::uint32_t op = begin; op < columns.else_end[t] && uses < kUses; ++op) {
      const auto kind = static_cast<OpKind>(columns.op_kind[op]);
      ++uses;
      use(id(columns.op_key[op]), sampled, kind != OpKind::get, kind != OpKind::add);
    }
  }
  if (hottest_ < 2) return Contention::low;
  if (hottest_ * 32 < sampled) return Contention::low;
  return hottest_ * 4 < sampled ? Contention::some : Contention::high;
}

// Notes one use of a key in the hash table, which has twice as many places as there are uses. `by`: the number of the
// transaction in the sample, from 1.
void ContentionSample::use(std::uint64_t id, std::uint16_t by, bool changes, bool observes) {
  std::size_t at = id * std::uint64_t{0x9E3779B97F4A7C15} >> kHashShift;
  while (records_[at].epoch == epoch_ && records_[at].id != id) at = (at + 1) % kPlaces;
  Record& record = records_[at];
  if (record.epoch != epoch_) record = {.id = id, .epoch = epoch_};
  if (record.last != by) ++record.touched;
  record.spread |= record.last != 0 && run_of(record.last) != run_of(by);
  record.last = by;
  record.changed |= changes;
  record.observed |= observes;
  if (record.spread && record.changed && record.observed) hottest_ = std::max(hottest_, record.touched);
}

}  // namespace kilokv::engine
