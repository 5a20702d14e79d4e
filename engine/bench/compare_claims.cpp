#include "engine/bench/compare_claims.hpp"

#include <algorithm>
#include <string_view>

namespace kilokv::engine::bench {

namespace {

constexpr const char* kAgainstGpustm = "prstm/gpustm";
constexpr const char* kAgainstSorted = "unsorted/sorted";

const ComparePoint* find_point(const PanelResult& result, double value, bool is_sorted, std::string_view strategy) {
  for (const ComparePoint& point : result.points) {
    if (point.value == value && point.graph.is_sorted == is_sorted && point.strategy == strategy) return &point;
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

bool belongs(const CompareRatio& ratio, const CompareClaim& claim, const char* kind) {
  return ratio.kind == std::string_view(kind) && ratio.panel == claim.panel && ratio.graph == claim.graph &&
         ratio.strategy == claim.strategy && ratio.semantic_share >= kSemanticShareMin;
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
  claim.median = median_of(std::move(values));
  claims->push_back(claim);
}

// From no semantic transactions to the first few.
void add_collapse(const PanelResult& result, std::size_t panel, std::vector<CompareClaim>* claims) {
  const auto& values = result.panel.values;
  const auto few = std::find_if(values.begin(), values.end(), [](double share) { return share >= kSemanticShareMin; });
  if (result.panel.axis != CompareAxis::semantic_share || values.front() != 0 || few == values.end()) return;
  for (const CompareGraph& graph : result.panel.graphs) {
    const ComparePoint* const none = find_point(result, 0, graph.is_sorted, "gpustm");
    const ComparePoint* const some = find_point(result, *few, graph.is_sorted, "gpustm");
    if (graph.is_sorted || none == nullptr || median_of(none->per_second) == 0) continue;
    const double left = median_of(some->per_second) / median_of(none->per_second);
    claims->push_back({"what a few semantic transactions leave of its throughput", panel, graph.letter, "gpustm",
                       kCollapsedRatioMax, false, left, left, *few});
  }
}

}  // namespace

std::vector<CompareRatio> ratios_of(const std::vector<PanelResult>& results) {
  std::vector<CompareRatio> ratios;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const ComparePoint& point : results[i].points) {
      const auto add = [&](const char* kind, const ComparePoint* other) {
        if (other == nullptr) return;
        ratios.push_back({kind, i, point.graph.letter, point.strategy, point.value, point.setting.semantic_share,
                          ratio_of(point, *other)});
      };
      const bool sorted = point.graph.is_sorted;
      if (point.strategy == "prstm") add(kAgainstGpustm, find_point(results[i], point.value, sorted, "gpustm"));
      if (!sorted) add(kAgainstSorted, find_point(results[i], point.value, true, point.strategy));
    }
  }
  return ratios;
}

std::vector<CompareClaim> claims_of(const std::vector<PanelResult>& results, const std::vector<CompareRatio>& ratios) {
  std::vector<CompareClaim> claims;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const CompareGraph& graph : results[i].panel.graphs) {
      add_worst(ratios, kAgainstGpustm, {"throughput, of gpustm's", i, graph.letter, "prstm", 1}, &claims);
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) add_collapse(results[i], i, &claims);
  for (const char* strategy : {"prstm", "ordered"}) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const char letter = results[i].panel.graphs.front().letter;
      add_worst(ratios, kAgainstSorted, {"throughput unsorted, of that sorted", i, letter, strategy, kUnsortedRatioMin},
                &claims);
    }
  }
  return claims;
}

}  // namespace kilokv::engine::bench
