#include "engine/exec/run/ordered_totals.hpp"

namespace kilokv::engine {

void report_ordered(const BatchHeader& header, std::span<const std::uint64_t> words,
                    std::span<const OrderedCounts> counts, BatchResults* results, ExecutionReport* report) {
  results->passes = static_cast<std::uint32_t>(words[kWordPasses]);
  results->next_version = header.first_version + words[kWordPasses] * results->outcome.size();
  report->begin("ordered");
  OrderedCounts all;
  for (const OrderedCounts& of_group : counts) {
    all.add(of_group);
    report->decided_by.push_back(of_group.decided);
  }
  report->postponed = all.postponed;
  Counters& counters = report->counters;
  counters.add("rounds", words[kWordRounds]);  // of all passes
  counters.add("reservations", all.reservations);
  counters.add("chained_adds", all.chained_adds);
  counters.add("tail", all.tail);
  counters.add("walked", all.walked);
}

}  // namespace kilokv::engine
