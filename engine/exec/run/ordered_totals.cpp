#include "engine/exec/run/ordered_totals.hpp"

#include <span>

#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kRounds = "rounds";  // the rounds of all passes

struct NamedCount {
  const char* name;
  std::uint64_t OrderedCounts::*count;
};
constexpr NamedCount kNamedCounts[] = {
    {"reservations", &OrderedCounts::reservations},
    {"chained_adds", &OrderedCounts::chained_adds},
    {"tail", &OrderedCounts::tail},
    {"walked", &OrderedCounts::walked},
};

}  // namespace

std::vector<const char*> ordered_counters() {
  std::vector<const char*> names = {kRounds};
  for (const NamedCount& count : kNamedCounts) names.push_back(count.name);
  return names;
}

OrderedArguments<HostSpace> ordered_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                                              const OrderedTuning& tuning, const EpochCounter& epochs) {
  OrderedArguments<HostSpace> a;
  set_batch_arguments(batch, records, results, &a);
  a.first_epoch = epochs.last();
  a.delta_max = ordered_delta_max(batch.columns.op_kind.size());
  a.tuning = tuning;
  return a;
}

void report_ordered(const OrderedArguments<HostSpace>& arguments, const BatchShape& shape, BatchResults* results,
                    ExecutionReport* report) {
  const std::uint64_t* const words = arguments.words;
  results->passes = static_cast<std::uint32_t>(words[kWordPasses]);
  results->next_version = arguments.batch.first_version + words[kWordPasses] * results->outcome.size();
  report->begin("ordered");
  OrderedCounts all;
  for (const OrderedCounts& of_group : std::span(arguments.counts, shape.threads.groups)) {
    all.add(of_group);
    report->decided_by.push_back(of_group.decided);
  }
  report->postponed = all.postponed;
  report->counters.add(kRounds, words[kWordRounds]);
  for (const NamedCount& count : kNamedCounts) report->counters.add(count.name, all.*count.count);
}

}  // namespace kilokv::engine
