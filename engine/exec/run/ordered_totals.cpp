#include "engine/exec/run/ordered_totals.hpp"

namespace kilokv::engine {

void report_ordered(const BatchHeader& header, std::span<const std::uint64_t> words,
                    std::span<const OrderedCounts> counts, BatchResults* results, ExecutionReport* report) {
  results->passes = static_cast<std::uint32_t>(words[kWordPasses]);
  results->next_version = header.first_version + words[kWordPasses] * results->outcome.size();
  report->begin("ordered");
  report->rounds = words[kWordRounds];
  for (const OrderedCounts& of_group : counts) {
    report->reservations += of_group.reservations;
    report->chained_adds += of_group.chained_adds;
    report->postponed += of_group.postponed;
    report->tail += of_group.tail;
    report->walked += of_group.walked;
    report->decided_by.push_back(of_group.decided);
  }
}

}  // namespace kilokv::engine
