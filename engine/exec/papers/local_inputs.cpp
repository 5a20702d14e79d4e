#include "engine/exec/papers/local_inputs.hpp"

#include <algorithm>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
namespace {

const std::uint32_t* data_or_null(const std::vector<std::uint32_t>& column) {
  return column.empty() ? nullptr : column.data();
}

}  // namespace

using LocalInputs = TicketedInputs<LocalArguments<HostSpace>>;

BatchShape LocalInputs::open(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records,
                             BatchResults* results, LocalArguments<HostSpace>* arguments, std::uint32_t staging,
                             std::uint32_t part_bits) {
  const LocalTuning& tuning = arguments->local_tuning;
  if (staging == 0) staging = threads.number;
  plan(batch, *records, tuning.staged_records);
  BatchShape shape = fill(batch, threads, records, results, arguments, staging, part_bits);
  shape.stage_words =
      stage_part_words(tuning.staged_records, tuning.signature_bits, staging, threads.group_width, part_bits)
      << part_bits;
  // As many slots as any cut of this batch can need. Each of the parts needs at most as many slots as the whole batch,
  // rounded up to a tile.
  const std::uint32_t each = arguments->tuning.transactions_per_thread;
  shape.undecided = std::max<std::size_t>(
      3 * position_room(arguments->batch.size, threads.number, threads.group_width, each), shape.undecided);
  return shape;
}

void LocalInputs::close(const LocalArguments<HostSpace>& arguments, ExecutionReport* report) const {
  if (!arguments.local_tuning.times) return;
  for (std::uint32_t i = 0; i < kLocalTimes; ++i) {
    std::uint64_t ticks = 0;
    for (std::uint32_t thread = 0; thread < arguments.local.threads; ++thread) {
      ticks += arguments.local.times[std::size_t{thread} * kLocalTimeWords + i];
    }
    report->counters.add(counter_name_of(static_cast<LocalTime>(i)), ticks);
  }
}

const StagePlan& LocalInputs::plan(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t slots) {
  plan_.make(batch, records, slots);
  return plan_;
}

BatchShape LocalInputs::fill(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records,
                             BatchResults* results, LocalArguments<HostSpace>* arguments, std::uint32_t staging,
                             std::uint32_t part_bits) const {
  LocalArguments<HostSpace>& a = *arguments;
  const std::uint32_t each = a.tuning.transactions_per_thread;
  KILOKV_CHECK(batch.columns.size() <= kTicketedTransactionsMax);
  set_batch_arguments(batch, records, results, &a);
  a.class_end = plan_.class_end().data();
  a.classes = static_cast<std::uint32_t>(plan_.class_end().size());
  a.threads = threads.number;
  a.local.slot_of = data_or_null(plan_.slot_of());
  a.local.record_of = data_or_null(plan_.record_of());
  a.local.order = data_or_null(plan_.order());
  a.local.hot_end = plan_.hot_end().data();
  a.local.behind = plan_.behind().data();
  a.local.staged = plan_.staged();
  a.local.part_bits = part_bits;
  a.local.threads = staging;
  a.local.hot_slots = static_cast<std::uint32_t>(plan_.hot_slots(staging, threads.group_width, each));
  BatchShape shape = shape_of(batch, *records, threads, each);
  shape.undecided = plan_.slots(staging, threads.number, threads.group_width, each);
  return shape;
}

}  // namespace kilokv::engine
