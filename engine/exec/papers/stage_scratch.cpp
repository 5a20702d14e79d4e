#include "engine/exec/papers/stage_scratch.hpp"

#include <algorithm>

#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
namespace {

const std::uint32_t* data_or_null(const std::vector<std::uint32_t>& column) {
  return column.empty() ? nullptr : column.data();
}

}  // namespace

using StageScratch = OwnScratch<LocalArguments<HostSpace>>;

void StageScratch::open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t staging,
                        std::uint32_t group_width, LocalArguments<HostSpace>* arguments, std::uint32_t part_bits) {
  LocalArguments<HostSpace>& a = *arguments;
  const std::uint32_t each = a.tuning.transactions_per_thread;
  const LocalTuning& local = a.local_tuning;
  plan_.make(batch, records, local.staged_records);
  // As many slots as any cut of this batch can need. Each of the parts needs at most as many slots as the whole batch,
  // rounded up to a tile.
  const std::uint64_t slots = 3 * position_room(a.batch.size, a.threads, group_width, each);
  grow(&stage_, stage_part_words(local.staged_records, local.signature_bits, staging, group_width, part_bits)
                    << part_bits);
  grow(&undecided_, std::max(slots, plan_.slots(staging, a.threads, group_width, each)));
  a.undecided = undecided_.data();
  a.class_end = plan_.class_end().data();
  a.classes = static_cast<std::uint32_t>(plan_.class_end().size());
  a.local.stage = stage_.data();
  a.local.slot_of = data_or_null(plan_.slot_of());
  a.local.record_of = data_or_null(plan_.record_of());
  a.local.order = data_or_null(plan_.order());
  a.local.hot_end = plan_.hot_end().data();
  a.local.behind = plan_.behind().data();
  a.local.staged = plan_.staged();
  if (local.times) {
    times_.assign(std::size_t{staging} * kLocalTimeWords, 0);
    a.local.times = times_.data();
  }
  a.local.part_bits = part_bits;
  a.local.threads = staging;
  a.local.hot_slots = static_cast<std::uint32_t>(plan_.hot_slots(staging, group_width, each));
}

void StageScratch::close(ExecutionReport* report) const { add_times(times_, report); }

void add_times(std::span<const std::uint64_t> words, ExecutionReport* report) {
  if (words.empty()) return;
  for (std::uint32_t i = 0; i < kLocalTimes; ++i) {
    std::uint64_t ticks = 0;
    for (std::size_t begin = 0; begin < words.size(); begin += kLocalTimeWords) ticks += words[begin + i];
    report->counters.add(counter_name_of(static_cast<LocalTime>(i)), ticks);
  }
}

std::size_t StageScratch::memory_bytes() const {
  return plan_.memory_bytes() + stage_.capacity() * sizeof(std::uint64_t) +
         undecided_.capacity() * sizeof(std::uint32_t) + times_.capacity() * sizeof(std::uint64_t);
}

}  // namespace kilokv::engine
