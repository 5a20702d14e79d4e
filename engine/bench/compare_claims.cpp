#include "engine/bench/compare_claims.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kilokv::engine::bench {

namespace {

using Kind = CompareGraphKind;

constexpr const char* kAgainstGpustm = "prstm/gpustm";
constexpr const char* kAgainstSorted = "unsorted/sorted";
constexpr const char* kKiloAgainstLock = "kilo/lock";
constexpr const char* kLocalAgainstLock = "local/lock";
constexpr const char* kAgainstBest = "auto/best";
constexpr const char* kAgainstUniform = "hot/uniform";

const ComparePoint* find_point(const PanelResult& result, double value, char letter, std::string_view strategy) {
  for (const ComparePoint& point : result.points) {
    if (point.value == value && point.graph.letter == letter && point.strategy == strategy) return &point;
  }
  return nullptr;
}

// The point of the same strategy in the graph of that kind; null: there is none.
const ComparePoint* in_graph(const PanelResult& result, const ComparePoint& point, Kind kind) {
  for (const CompareGraph& graph : result.panel.graphs) {
    if (graph.kind == kind) return find_point(result, point.value, graph.letter, point.strategy);
  }
  return nullptr;
}

double ratio_of(const ComparePoint& numerator, const ComparePoint& denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.per_second.size(); ++i) {
    if (denominator.per_second[i] > 0) ratios.push_back(numerator.per_second[i] / denominator.per_second[i]);
  }
  return median_of(std::move(ratios));
}

// What the point is compared with, by the kind of the ratio; null: nothing.
const ComparePoint* other_side(const PanelResult& result, const ComparePoint& point, std::string_view kind) {
  const auto against = [&](const char* strategy, const char* other) {
    return point.strategy == strategy ? find_point(result, point.value, point.graph.letter, other) : nullptr;
  };
  if (kind == kAgainstGpustm) return against("prstm", "gpustm");
  if (kind == kKiloAgainstLock) return against("kilo", "lock");
  if (kind == kLocalAgainstLock) return against("local", "lock");
  if (kind == kAgainstBest) {
    return point.strategy == "auto" ? best_of(result, point.graph.letter, point.value) : nullptr;
  }
  if (kind == kAgainstUniform) return point.graph.kind == Kind::hot ? in_graph(result, point, Kind::uniform) : nullptr;
  return point.graph.kind == Kind::unsorted ? in_graph(result, point, Kind::sorted) : nullptr;
}

std::vector<const char*> kinds_of(const std::string& figures) {
  if (figures == "kilo") return {kKiloAgainstLock};
  if (figures == "local") return {kLocalAgainstLock};
  if (figures == "contention") return {kAgainstBest, kAgainstUniform};
  if (figures == "workloads") return {kAgainstBest};
  return {kAgainstGpustm, kAgainstSorted};
}

bool is_semantic(std::string_view kind) { return kind == kAgainstGpustm || kind == kAgainstSorted; }

bool belongs(const CompareRatio& ratio, const CompareClaim& claim, std::string_view kind) {
  return ratio.kind == kind && ratio.panel == claim.panel && ratio.graph == claim.graph &&
         ratio.strategy == claim.strategy && (!is_semantic(kind) || ratio.semantic_share >= kSemanticShareMin);
}

// The mean of "twice as fast" and "half as fast" is 1.
double geometric_mean_of(const std::vector<double>& values) {
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

void add_worst(const std::vector<CompareRatio>& ratios, const char* kind, CompareClaim claim,
               std::vector<CompareClaim>* claims) {
  std::vector<double> values;
  for (const CompareRatio& ratio : ratios) {
    if (!belongs(ratio, claim, kind)) continue;
    if (values.empty() || ratio.ratio < claim.worst) {
      claim.worst = ratio.ratio;
      claim.worst_at = ratio.value;
    }
    values.push_back(ratio.ratio);
  }
  if (values.empty()) return;
  claim.mean = geometric_mean_of(values);
  claim.median = median_of(std::move(values));
  claims->push_back(claim);
}

// Compares the point without semantic transactions with the point that has the first few.
void add_collapse(const PanelResult& result, std::size_t panel, std::vector<CompareClaim>* claims) {
  const auto& values = result.panel.values;
  const auto few = std::find_if(values.begin(), values.end(), [](double share) { return share >= kSemanticShareMin; });
  if (result.panel.axis != CompareAxis::semantic_share || values.front() != 0 || few == values.end()) return;
  for (const CompareGraph& graph : result.panel.graphs) {
    const ComparePoint* const none = find_point(result, 0, graph.letter, "gpustm");
    const ComparePoint* const some = find_point(result, *few, graph.letter, "gpustm");
    if (graph.kind == Kind::sorted || none == nullptr || median_of(none->per_second) == 0) continue;
    const double left = median_of(some->per_second) / median_of(none->per_second);
    claims->push_back({.claim = "throughput with a few semantic transactions, divided by that without",
                       .panel = panel,
                       .graph = graph.letter,
                       .strategy = "gpustm",
                       .limit = kCollapsedRatioMax,
                       .at_least = false,
                       .worst = left,
                       .median = left,
                       .worst_at = *few,
                       .mean = left});
  }
}

// Adds a claim for every graph.
void add_for_graphs(const std::vector<PanelResult>& results, const std::vector<CompareRatio>& ratios, const char* kind,
                    const CompareClaim& claim, std::vector<CompareClaim>* claims) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const CompareGraph& graph : results[i].panel.graphs) {
      CompareClaim one = claim;
      one.panel = i;
      one.graph = graph.letter;
      if (kind == std::string_view(kAgainstUniform)) {
        one.limit = results[i].panel.workload_name() == "deposits" ? kHotDepositsMin : kHotTransfersMin;
      }
      add_worst(ratios, kind, one, claims);
    }
  }
}

}  // namespace

const ComparePoint* best_of(const PanelResult& result, char letter, double value) {
  const ComparePoint* best = nullptr;
  for (const ComparePoint& point : result.points) {
    if (point.value != value || point.graph.letter != letter || point.strategy == "auto") continue;
    if (best == nullptr || median_of(point.per_second) > median_of(best->per_second)) best = &point;
  }
  return best;
}

std::vector<CompareRatio> ratios_of(const std::string& figures, const std::vector<PanelResult>& results) {
  std::vector<CompareRatio> ratios;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const ComparePoint& point : results[i].points) {
      for (const char* const kind : kinds_of(figures)) {
        const ComparePoint* const other = other_side(results[i], point, kind);
        if (other == nullptr) continue;
        ratios.push_back({kind, i, point.graph.letter, point.strategy, point.value, point.setting.semantic_share,
                          ratio_of(point, *other)});
      }
    }
  }
  return ratios;
}

std::vector<CompareClaim> claims_of(const std::string& figures, const std::vector<PanelResult>& results,
                                    const std::vector<CompareRatio>& ratios) {
  std::vector<CompareClaim> claims;
  const auto add = [&](const char* kind, const CompareClaim& claim) {
    add_for_graphs(results, ratios, kind, claim, &claims);
  };
  for (const char* const kind : kinds_of(figures)) {
    if (kind == kAgainstGpustm) {
      add(kind, {.claim = "throughput divided by that of gpustm", .strategy = "prstm", .limit = 1});
      for (std::size_t i = 0; i < results.size(); ++i) add_collapse(results[i], i, &claims);
    } else if (kind == kAgainstSorted) {
      for (const char* strategy : {"prstm", "ordered"}) {
        add(kind,
            {.claim = "throughput unsorted, divided by that sorted", .strategy = strategy, .limit = kUnsortedRatioMin});
      }
    } else if (kind == kKiloAgainstLock) {
      add(kind, {.claim = "throughput divided by that of lock", .strategy = "kilo", .limit = 1, .on_average = true});
    } else if (kind == kLocalAgainstLock) {
      add(kind, {.claim = "throughput divided by that of lock", .strategy = "local", .limit = 1});
    } else if (kind == kAgainstBest) {
      add(kind, {.claim = "throughput divided by that of the best other strategy",
                 .strategy = "auto",
                 .limit = kAgainstBestMin});
    } else {
      add(kind, {.claim = "throughput with one hot account, divided by that without", .strategy = "auto"});
    }
  }
  return claims;
}

}  // namespace kilokv::engine::bench
