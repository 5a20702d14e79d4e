#include "engine/exec/papers/ticketed_inputs.hpp"

#include <iterator>
#include <span>

#include "engine/base/check.hpp"
#include "engine/exec/run/host_arguments.hpp"

namespace kilokv::engine {
namespace {

struct NamedCount {
  const char* name;
  std::uint64_t TicketedCounts::*count;
};
constexpr NamedCount kNamedCounts[] = {
    {"attempts", &TicketedCounts::attempts},
    {"conflicts", &TicketedCounts::conflicts},
    {"under_locks", &TicketedCounts::under_locks},
    {"steals", &TicketedCounts::steals},
    {"stolen", &TicketedCounts::stolen},
    {"retried", &TicketedCounts::retried},
    {"wasted_tickets", &TicketedCounts::wasted},
    {"hazards", &TicketedCounts::hazards},
    {"limit_changes", &TicketedCounts::limits},
    {"staged", &TicketedCounts::staged},
    {"lane_restarts", &TicketedCounts::restarts},
    {"signature_aliases", &TicketedCounts::aliases},
    {"warp_serialized", &TicketedCounts::warp_serialized},
    {"block_serialized", &TicketedCounts::block_serialized},
};
static_assert(std::size(kNamedCounts) + 2 == ticketed_counts(), "all but decided and postponed, which others report");

}  // namespace

std::vector<const char*> ticketed_counters() {
  std::vector<const char*> names;
  for (const NamedCount& count : kNamedCounts) names.push_back(count.name);
  return names;
}

void find_class_ends(const ResolvedBatch& batch, std::vector<std::uint32_t>* ends) {
  const auto n = static_cast<std::uint32_t>(batch.columns.size());
  const auto precedence = [&](std::uint32_t position) {
    return batch.columns.precedence[batch.order.empty() ? position : batch.order[position]];
  };
  ends->clear();
  for (std::uint32_t position = 1; position < n; ++position) {
    if (precedence(position) != precedence(position - 1)) ends->push_back(position);
  }
  if (n > 0) ends->push_back(n);
}

void report_ticketed(const char* strategy, const TicketedArguments<HostSpace>& arguments, const BatchShape& shape,
                     BatchResults* results, ExecutionReport* report) {
  const std::uint64_t passes = arguments.words[kTicketedPasses];
  results->passes = static_cast<std::uint32_t>(passes);
  results->next_version = arguments.batch.first_version + passes * results->outcome.size();
  report->begin(strategy);
  report->any_order = true;
  TicketedCounts all;
  for (const TicketedCounts& of_group : std::span(arguments.counts, shape.threads.groups)) {
    all.add(of_group);
    report->decided_by.push_back(of_group.decided);
  }
  report->postponed = all.postponed;
  for (const NamedCount& count : kNamedCounts) report->counters.add(count.name, all.*count.count);
}

BatchShape ClassInputs::open(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records,
                             BatchResults* results, TicketedArguments<HostSpace>* arguments) {
  TicketedArguments<HostSpace>& a = *arguments;
  KILOKV_CHECK(batch.columns.size() <= kTicketedTransactionsMax);
  find_class_ends(batch, &class_end_);
  set_batch_arguments(batch, records, results, &a);
  a.class_end = class_end_.data();
  a.classes = static_cast<std::uint32_t>(class_end_.size());
  a.threads = threads.number;
  return shape_of(batch, *records, threads, a.tuning.transactions_per_thread);
}

}  // namespace kilokv::engine
