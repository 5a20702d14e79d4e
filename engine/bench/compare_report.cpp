#include "engine/bench/compare_report.hpp"

#include <cstdio>

#include "engine/bench/machine.hpp"

namespace kilokv::engine::bench {

namespace {

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

std::string place(const ComparePanel& panel, char letter) {
  return format("figure %d%c, %s, %s, %g%% read-only", panel.figure, letter, panel.workload.c_str(),
                order_name(panel, letter), panel.read_only_share * 100);
}

// Millions a second, by value and strategy.
std::string graph_table(const CompareOptions& options, const PanelResult& result, const CompareGraph& graph) {
  std::string text = place(result.panel, graph.letter) + "\n" + format("%18s", to_string(result.panel.axis));
  for (const std::string& strategy : options.strategies) text += format(" %22s", strategy.c_str());
  double row = -1;
  for (const ComparePoint& point : result.points) {
    if (point.graph.letter != graph.letter) continue;
    if (point.value != row) text += format("\n%18g", row = point.value);
    text += format(" %9.4f %5.2f..%5.2f", median_of(point.per_second) / 1e6, least_of(point.per_second) / 1e6,
                   most_of(point.per_second) / 1e6);
  }
  return text + "\n\n";
}

std::string claim_line(const CompareReport& report, const CompareClaim& claim) {
  const ComparePanel& panel = report.results[claim.panel].panel;
  return format("  %-3s %s: %.3f at %s %g, median %.3f, %s %g\n", claim.holds() ? "yes" : "NO",
                place(panel, claim.graph).c_str(), claim.worst, to_string(panel.axis), claim.worst_at, claim.median,
                claim.at_least ? "at least" : "at most", claim.limit);
}

// Claims of one kind stand together.
std::string claim_lines(const CompareReport& report) {
  std::string text;
  std::string title;
  for (const CompareClaim& claim : report.claims) {
    const std::string of = claim.strategy + ": " + claim.claim;
    if (of != title) text += (title = of) + "\n";
    text += claim_line(report, claim);
  }
  return text;
}

}  // namespace

std::string point_line(const ComparePanel& panel, const ComparePoint& point) {
  const WorkloadReport& report = point.report;
  return format("%s, %s %g: %-8s %9.4f M/s, %llu transactions, %.4f aborts a commit, %llu retried, %llu postponed\n",
                place(panel, point.graph.letter).c_str(), to_string(panel.axis), point.value, point.strategy.c_str(),
                median_of(point.per_second) / 1e6, static_cast<unsigned long long>(report.counts.transactions),
                report.aborts_per_commit(), static_cast<unsigned long long>(report.execution.retried),
                static_cast<unsigned long long>(report.execution.postponed));
}

std::string compare_table(const CompareReport& report) {
  const Machine machine = this_machine();
  const CompareOptions& options = report.options;
  std::string text = format(
      "preset %s, device %s, batches of %llu, %llu repeats of %g s, seed %llu\n%s, %u core(s), %s, %s, commit %s\n",
      options.preset.c_str(), options.device.c_str(), static_cast<unsigned long long>(options.batch_transactions),
      static_cast<unsigned long long>(options.repeats), options.duration_seconds,
      static_cast<unsigned long long>(options.seed), machine.cpu.c_str(), machine.cores, machine.compiler.c_str(),
      machine.build_type.c_str(), machine.commit.c_str());
  text += "millions of transactions a second: median, least and most of the repeats; every engine verified\n\n";
  for (const PanelResult& result : report.results) {
    for (const CompareGraph& graph : result.panel.graphs) text += graph_table(options, result, graph);
  }
  text += format("Claims, where %g%% or more of the transactions are semantic; the worst of each graph:\n",
                 kSemanticShareMin * 100);
  text += claim_lines(report);
  if (report.claims.empty())
    text += "none: no workload with semantic transactions, or strategies of them are missing\n";
  return text;
}

}  // namespace kilokv::engine::bench
