#include "engine/bench/compare_report.hpp"

#include "engine/bench/format.hpp"
#include "engine/bench/machine.hpp"

namespace kilokv::engine::bench {

namespace {

std::string place(const ComparePanel& panel, char letter) {
  std::string text = panel.name(letter) + ", " + panel.workload_name();
  const CompareGraphKind kind = panel.graph(letter).kind;
  if (panel.axis == CompareAxis::theta) {
    return text + format(", %g%% updates, %llu operation(s)", panel.update_share * 100,
                         static_cast<unsigned long long>(panel.operations));
  }
  if (panel.axis == CompareAxis::workload) return text;
  if (kind != CompareGraphKind::plain) text += std::string(", ") + to_string(kind);
  return text + format(", %g%% read-only", panel.read_only_share * 100);
}

std::string best_name(const ComparePoint* best) { return best == nullptr ? "" : best->strategy; }

// Millions of transactions a second, by value and strategy. The best strategy except `auto` has a star.
std::string graph_table(const CompareOptions& options, const PanelResult& result, const CompareGraph& graph) {
  std::string text = place(result.panel, graph.letter) + "\n" + format("%18s", to_string(result.panel.axis));
  for (const std::string& strategy : options.strategies) {
    if (measures(result.panel, strategy)) text += format(" %23s", strategy.c_str());
  }
  double row = -1;
  std::string best;
  for (const ComparePoint& point : result.points) {
    if (point.graph.letter != graph.letter) continue;
    if (point.value != row) {
      row = point.value;
      best = best_name(best_of(result, graph.letter, row));
      text += format("\n%18s", result.panel.value_name(row).c_str());
    }
    text += format(" %9.4f%c %5.2f..%5.2f", median_of(point.per_second) / 1e6, point.strategy == best ? '*' : ' ',
                   least_of(point.per_second) / 1e6, most_of(point.per_second) / 1e6);
  }
  return text + "\n\n";
}

// The share of each of the stage's times, by value.
std::string times_table(const PanelResult& result) {
  std::string text, names;
  for (const ComparePoint& point : result.points) {
    const auto times = point.timed.times();
    if (times.empty()) continue;
    text += format("\n%18s", result.panel.value_name(point.value).c_str());
    const bool is_first = names.empty();
    for (const auto& [name, share] : times) {
      text += format(" %9.1f", 100 * share);
      if (is_first) names += format(" %9s", name.c_str());
    }
    text += format(" %19.1f", 100 * point.timed.serialized_share());
  }
  if (text.empty()) return text;
  const std::string head = format("%18s", to_string(result.panel.axis)) + names;
  return "where the time of local's stage goes, in percent of its threads' time: figure " + result.panel.figure +
         "b, " + result.panel.workload_name() + "\n" + head + " serialized_attempts" + text + "\n\n";
}

std::string claim_line(const CompareReport& report, const CompareClaim& claim) {
  const ComparePanel& panel = report.results[claim.panel].panel;
  return format("  %-3s %s: %.3f at %s %s, median %.3f, mean %.3f, %s %g%s\n", claim.holds() ? "yes" : "NO",
                place(panel, claim.graph).c_str(), claim.worst, to_string(panel.axis),
                panel.value_name(claim.worst_at).c_str(), claim.median, claim.mean,
                claim.at_least ? "at least" : "at most", claim.limit, claim.on_average ? " on average" : "");
}

// Claims of one kind follow each other under one title.
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
  return format("%s, %s %s: %-8s %9.4f M/s, %llu transactions, %.4f aborts a commit, %llu retried, %llu postponed\n",
                place(panel, point.graph.letter).c_str(), to_string(panel.axis), panel.value_name(point.value).c_str(),
                point.strategy.c_str(), median_of(point.per_second) / 1e6,
                static_cast<unsigned long long>(report.counts.transactions), report.aborts_per_commit(),
                static_cast<unsigned long long>(report.execution.counter("retried")),
                static_cast<unsigned long long>(report.execution.postponed));
}

std::string compare_table(const CompareReport& report) {
  const Machine machine = this_machine();
  const CompareOptions& options = report.options;
  std::string text = format(
      "figures %s, preset %s, device %s, batches of %llu, %llu repeats of %g s, seed %llu\n"
      "%s, %u core(s), %s, %s, commit %s\n",
      options.figures.c_str(), options.preset.c_str(), options.device.c_str(),
      static_cast<unsigned long long>(options.batch_transactions), static_cast<unsigned long long>(options.repeats),
      options.duration_seconds, static_cast<unsigned long long>(options.seed), machine.cpu.c_str(), machine.cores,
      machine.compiler.c_str(), machine.build_type.c_str(), machine.commit.c_str());
  text +=
      "millions of transactions a second: median, smallest..largest of the repeats; *: the best strategy except auto;\n"
      "every engine is verified\n\n";
  for (const PanelResult& result : report.results) {
    for (const CompareGraph& graph : result.panel.graphs) text += graph_table(options, result, graph);
    text += times_table(result);
  }
  text += options.figures == "prstm" ? format(
                                           "Claims, where %g%% or more of the transactions are semantic; each line is "
                                           "the worst point of a graph:\n",
                                           kSemanticShareMin * 100)
                                     : "Claims; each line is the worst point of a graph:\n";
  text += claim_lines(report);
  if (report.claims.empty()) text += "none: the workloads or strategies that the claims are about are missing\n";
  return text;
}

}  // namespace kilokv::engine::bench
