#include "engine/exec/run/ordered_totals.hpp"

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
  report->counters.add(kRounds, words[kWordRounds]);
  for (const NamedCount& count : kNamedCounts) report->counters.add(count.name, all.*count.count);
}

}  // namespace kilokv::engine
