#include "engine/bench/compare_plan.hpp"

#include <algorithm>
#include <cstdio>

namespace kilokv::engine::bench {

namespace {

using Kind = CompareGraphKind;

constexpr double kReadOnlyShare = 0.2;
const std::vector<CompareGraph> kOneGraph = {{'A', Kind::plain}};

// Which figures of the PR-STM paper a workload has. A new workload is a line here, and a name in compare_options.cpp.
struct Figure {
  const char* number;
  const char* workload;
  CompareAxis axis;
  bool has_read_only;  // it has a second panel, 20% read-only
  char first_letter;
};
constexpr Figure kPrstmFigures[] = {
    {"7", "bank-semantic", CompareAxis::threads, true, 'A'},
    {"7", "vacation", CompareAxis::threads, true, 'A'},
    {"8", "bank-semantic", CompareAxis::records_per_lock, true, 'A'},
    {"8", "vacation", CompareAxis::records_per_lock, true, 'A'},
    {"9", "bank-semantic", CompareAxis::semantic_share, true, 'A'},
    {"9", "vacation", CompareAxis::semantic_share, true, 'A'},
    {"10", "skiplist", CompareAxis::threads, true, 'A'},
    {"11", "skiplist", CompareAxis::records_per_lock, true, 'A'},
    {"12", "kmeans", CompareAxis::threads, false, 'A'},
    {"12", "kmeans", CompareAxis::records_per_lock, false, 'B'},
    {"13", "graph", CompareAxis::threads, false, 'A'},
    {"13", "graph", CompareAxis::records_per_lock, false, 'B'},
};

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

std::vector<double> values_of(const CompareOptions& options, CompareAxis axis) {
  switch (axis) {
    case CompareAxis::threads: return doubles(options.threads);
    case CompareAxis::records_per_lock: return doubles(options.records_per_lock);
    case CompareAxis::semantic_share: return options.semantic_shares;
    case CompareAxis::concurrency_limit: return doubles(options.concurrency_limits);
    case CompareAxis::keys: return doubles(options.sizes);
    case CompareAxis::theta: return options.thetas;
    case CompareAxis::workload: break;
  }
  std::vector<double> numbers(options.workloads.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  return numbers;
}

bool is_chosen(const CompareOptions& options, const std::string& workload) {
  return std::find(options.workloads.begin(), options.workloads.end(), workload) != options.workloads.end();
}

// Graphs A and B are unsorted, C and D are sorted. B and D are 20% read-only.
ComparePanel prstm_panel(const CompareOptions& options, const Figure& figure, bool read_only) {
  const char letter = static_cast<char>(figure.first_letter + (read_only ? 1 : 0));
  const bool has_pairs = Workload::kind(figure.workload).has_pairs;
  ComparePanel panel{.figure = figure.number,
                     .axis = figure.axis,
                     .workloads = {figure.workload},
                     .graphs = {{letter, has_pairs ? Kind::unsorted : Kind::plain}},
                     .values = values_of(options, figure.axis),
                     .read_only_share = read_only ? kReadOnlyShare : 0};
  if (has_pairs) panel.graphs.push_back({static_cast<char>(letter + 2), Kind::sorted});
  return panel;
}

std::vector<ComparePanel> prstm_panels(const CompareOptions& options) {
  std::vector<ComparePanel> panels;
  for (const Figure& figure : kPrstmFigures) {
    if (!is_chosen(options, figure.workload)) continue;
    panels.push_back(prstm_panel(options, figure, false));
    if (figure.has_read_only) panels.push_back(prstm_panel(options, figure, true));
  }
  return panels;
}

ComparePanel panel_of_all(const CompareOptions& options, const std::string& figure) {
  return {.figure = figure,
          .axis = CompareAxis::workload,
          .workloads = options.workloads,
          .graphs = kOneGraph,
          .values = values_of(options, CompareAxis::workload)};
}

// Figure 6 is by workload. Figures 7 and 8 are by limits, and have only `kilo` and the strategy that it is compared
// with.
std::vector<ComparePanel> kilo_panels(const CompareOptions& options) {
  std::vector<ComparePanel> panels = {panel_of_all(options, "6")};
  for (const std::string& workload : options.workloads) {
    panels.push_back({.figure = "7, 8",
                      .axis = CompareAxis::concurrency_limit,
                      .workloads = {workload},
                      .graphs = kOneGraph,
                      .values = values_of(options, CompareAxis::concurrency_limit),
                      .only = {"serial", "kilo"}});
  }
  return panels;
}

std::vector<ComparePanel> local_panels(const CompareOptions& options) {
  constexpr std::pair<const char*, const char*> kFigures[] = {{"3", "local-ht"}, {"4", "local-km"}, {"5", "local-ga"}};
  std::vector<ComparePanel> panels;
  for (const auto& [figure, workload] : kFigures) {
    if (!is_chosen(options, workload)) continue;
    panels.push_back({.figure = figure,
                      .axis = CompareAxis::keys,
                      .workloads = {workload},
                      .graphs = kOneGraph,
                      .values = values_of(options, CompareAxis::keys),
                      .has_times = true});
  }
  return panels;
}

// Rows that are read, and rows that are read and changed; transfers; and what one hot account leaves of the throughput
// of transfers and deposits.
std::vector<ComparePanel> contention_panels(const CompareOptions& options) {
  std::vector<ComparePanel> panels;
  for (const std::uint64_t operations : options.operations) {
    for (const double share : options.update_shares) {
      if (!is_chosen(options, "ycsb-f")) continue;
      panels.push_back({.figure = "contention",
                        .axis = CompareAxis::theta,
                        .workloads = {"ycsb-f"},
                        .graphs = kOneGraph,
                        .values = values_of(options, CompareAxis::theta),
                        .update_share = share,
                        .operations = operations});
    }
  }
  for (const char* workload : {"bank", "deposits"}) {
    if (!is_chosen(options, workload)) continue;
    panels.push_back({.figure = "hot account",
                      .axis = CompareAxis::threads,
                      .workloads = {workload},
                      .graphs = {{'A', Kind::uniform}, {'B', Kind::hot}},
                      .values = {static_cast<double>(options.threads.back())}});
  }
  return panels;
}

}  // namespace

const char* to_string(CompareAxis axis) {
  switch (axis) {
    case CompareAxis::threads: return "threads";
    case CompareAxis::records_per_lock: return "records_per_lock";
    case CompareAxis::semantic_share: return "semantic_share";
    case CompareAxis::concurrency_limit: return "concurrency_limit";
    case CompareAxis::keys: return "keys";
    case CompareAxis::theta: return "theta";
    case CompareAxis::workload: return "workload";
  }
  return "unknown";
}

const char* to_string(CompareGraphKind kind) {
  switch (kind) {
    case CompareGraphKind::plain: return "no pairs";
    case CompareGraphKind::unsorted: return "unsorted";
    case CompareGraphKind::sorted: return "sorted";
    case CompareGraphKind::uniform: return "uniform";
    case CompareGraphKind::hot: return "hot";
  }
  return "unknown";
}

std::string ComparePanel::workload_at(const CompareGraph& of, double value) const {
  if (axis == CompareAxis::workload) return workloads[static_cast<std::size_t>(value)];
  if (of.kind != Kind::hot) return workloads.front();
  return workloads.front() == "bank" ? "hot" : "hot-" + workloads.front();
}

std::string ComparePanel::value_name(double value) const {
  if (axis == CompareAxis::workload) return workloads[static_cast<std::size_t>(value)];
  if (axis == CompareAxis::concurrency_limit && value == 0) return "adapts";
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string ComparePanel::name(char letter) const {
  const bool is_of_paper = figure.front() >= '0' && figure.front() <= '9';
  return is_of_paper ? "figure " + figure + letter : figure;
}

const CompareGraph& ComparePanel::graph(char letter) const {
  return *std::find_if(graphs.begin(), graphs.end(), [&](const CompareGraph& of) { return of.letter == letter; });
}

std::vector<ComparePanel> compare_panels(const CompareOptions& options) {
  if (options.figures == "kilo") return kilo_panels(options);
  if (options.figures == "local") return local_panels(options);
  if (options.figures == "contention") return contention_panels(options);
  if (options.figures == "workloads") return {panel_of_all(options, "workloads")};
  return prstm_panels(options);
}

CompareSetting setting_at(const CompareOptions& options, const ComparePanel& panel, const CompareGraph& graph,
                          double value) {
  CompareSetting setting;
  setting.workload = panel.workload_at(graph, value);
  setting.threads = options.threads.back();
  setting.semantic_share = Workload::kind(setting.workload).has_pairs ? 1 : 0;
  setting.read_only_share = panel.read_only_share;
  setting.update_share = panel.update_share;
  setting.operations = panel.operations;
  setting.is_sorted = graph.kind == Kind::sorted;
  const auto number = static_cast<std::uint64_t>(value);
  switch (panel.axis) {
    case CompareAxis::threads: setting.threads = number; break;
    case CompareAxis::records_per_lock: setting.records_per_lock = number; break;
    case CompareAxis::semantic_share: setting.semantic_share = value; break;
    case CompareAxis::concurrency_limit: setting.concurrency_limit = number; break;
    case CompareAxis::keys: setting.keys = number; break;
    case CompareAxis::theta: setting.theta = value; break;
    case CompareAxis::workload: break;
  }
  return setting;
}

WorkloadOptions workload_at(const CompareOptions& options, const CompareSetting& setting) {
  const WorkloadKind kind = Workload::kind(setting.workload);
  WorkloadOptions workload;
  workload.name = setting.workload;
  workload.keys = options.preset == "paper" ? kind.keys_paper : kind.keys_small;
  if (options.keys != 0) workload.keys = std::min(options.keys, kind.keys_max);
  if (setting.keys != 0) workload.keys = setting.keys;
  workload.distribution.theta = setting.theta;
  workload.seed = options.seed;
  workload.ycsb.update_share = setting.update_share;
  workload.ycsb.operations = static_cast<std::uint32_t>(setting.operations);
  workload.mixed.ranges = false;
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
