#include "engine/bench/compare_plan.hpp"

#include <algorithm>

namespace kilokv::engine::bench {

namespace {

constexpr double kReadOnlyShare = 0.2;

// Which figures a workload has. A new workload is a line here, and a name in CompareOptions::workloads.
struct Figure {
  int number;
  const char* workload;
  CompareAxis axis;
  bool has_read_only;  // a second panel
  char first_letter;
};
constexpr Figure kFigures[] = {
    {7, "bank-semantic", CompareAxis::threads, true, 'A'},
    {7, "vacation", CompareAxis::threads, true, 'A'},
    {8, "bank-semantic", CompareAxis::records_per_lock, true, 'A'},
    {8, "vacation", CompareAxis::records_per_lock, true, 'A'},
    {9, "bank-semantic", CompareAxis::semantic_share, true, 'A'},
    {9, "vacation", CompareAxis::semantic_share, true, 'A'},
    {10, "skiplist", CompareAxis::threads, true, 'A'},
    {11, "skiplist", CompareAxis::records_per_lock, true, 'A'},
    {12, "kmeans", CompareAxis::threads, false, 'A'},
    {12, "kmeans", CompareAxis::records_per_lock, false, 'B'},
    {13, "graph", CompareAxis::threads, false, 'A'},
    {13, "graph", CompareAxis::records_per_lock, false, 'B'},
};

std::vector<double> values_of(const CompareOptions& options, CompareAxis axis) {
  switch (axis) {
    case CompareAxis::threads: return {options.threads.begin(), options.threads.end()};
    case CompareAxis::records_per_lock: return {options.records_per_lock.begin(), options.records_per_lock.end()};
    case CompareAxis::semantic_share: break;
  }
  return options.semantic_shares;
}

// A and B are unsorted, C and D sorted; B and D are 20% read-only.
ComparePanel panel_of(const CompareOptions& options, const Figure& figure, bool read_only) {
  const char letter = static_cast<char>(figure.first_letter + (read_only ? 1 : 0));
  ComparePanel panel{figure.number,     figure.workload,
                     figure.axis,       read_only ? kReadOnlyShare : 0,
                     {{letter, false}}, values_of(options, figure.axis)};
  if (Workload::kind(figure.workload).has_pairs) panel.graphs.push_back({static_cast<char>(letter + 2), true});
  return panel;
}

}  // namespace

const char* to_string(CompareAxis axis) {
  switch (axis) {
    case CompareAxis::threads: return "threads";
    case CompareAxis::records_per_lock: return "records_per_lock";
    case CompareAxis::semantic_share: return "semantic_share";
  }
  return "unknown";
}

const char* order_name(const ComparePanel& panel, char letter) {
  if (panel.graphs.size() == 1) return "no pairs";
  return panel.graphs.front().letter == letter ? "unsorted" : "sorted";
}

std::vector<ComparePanel> compare_panels(const CompareOptions& options) {
  std::vector<ComparePanel> panels;
  for (const Figure& figure : kFigures) {
    const auto& chosen = options.workloads;
    if (std::find(chosen.begin(), chosen.end(), figure.workload) == chosen.end()) continue;
    panels.push_back(panel_of(options, figure, false));
    if (figure.has_read_only) panels.push_back(panel_of(options, figure, true));
  }
  return panels;
}

CompareSetting setting_at(const CompareOptions& options, const ComparePanel& panel, const CompareGraph& graph,
                          double value) {
  CompareSetting setting;
  setting.threads = options.threads.back();
  setting.semantic_share = Workload::kind(panel.workload).has_pairs ? 1 : 0;
  setting.read_only_share = panel.read_only_share;
  setting.is_sorted = graph.is_sorted;
  switch (panel.axis) {
    case CompareAxis::threads: setting.threads = static_cast<std::uint64_t>(value); break;
    case CompareAxis::records_per_lock: setting.records_per_lock = static_cast<std::uint64_t>(value); break;
    case CompareAxis::semantic_share: setting.semantic_share = value; break;
  }
  return setting;
}

WorkloadOptions workload_at(const CompareOptions& options, const ComparePanel& panel, const CompareSetting& setting) {
  const WorkloadKind kind = Workload::kind(panel.workload);
  WorkloadOptions workload;
  workload.name = panel.workload;
  workload.keys = options.preset == "paper" ? kind.keys_paper : kind.keys_small;
  if (options.keys != 0) workload.keys = std::min(options.keys, kind.keys_max);
  workload.seed = options.seed;
  workload.semantic.wait_share = setting.semantic_share;
  workload.semantic.read_only_share = setting.read_only_share;
  workload.semantic.order = setting.is_sorted ? PairOrder::deposits_first : PairOrder::withdrawals_first;
  return workload;
}

std::uint64_t batches_at(const CompareOptions& options, const WorkloadOptions& workload) {
  if (workload.name != "graph") return 0;
  const std::uint64_t edges = RandomGraph{workload.keys}.edges();
  return std::max<std::uint64_t>(edges / (options.repeats * options.batch_transactions), 1);
}

}  // namespace kilokv::engine::bench
