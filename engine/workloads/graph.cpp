#include "engine/workloads/graph.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

class GraphAudit : public StateAudit {
 public:
  explicit GraphAudit(const RandomGraph& graph) : graph_(graph), values_(graph.vertices, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    if (const std::uint64_t vertex = KeyName::index_of(key); vertex < values_.size()) values_[vertex] = integer;
  }

  std::string violation() const override {
    const std::vector<std::int64_t> least = minima();
    const std::vector<bool> has_source = sources();
    for (std::uint64_t vertex = 0; vertex < values_.size(); ++vertex) {
      const std::string problem = problem_of(vertex, least[vertex], has_source[vertex]);
      if (problem.empty()) continue;
      return "vertex " + std::to_string(vertex) + " has " + std::to_string(values_[vertex]) + ", " + problem;
    }
    return {};
  }

 private:
  std::string problem_of(std::uint64_t vertex, std::int64_t least, bool has_source) const {
    const std::int64_t value = values_[vertex], label = graph_.label(vertex);
    if (value < least) return "below the minimum that leads to it, " + std::to_string(least);
    if (value > label) return "above its label, " + std::to_string(label);
    if (graph_.label(static_cast<std::uint64_t>(value) % graph_.vertices) != value) return "which is no label";
    return value != label && !has_source ? "and no predecessor has as little" : "";
  }

  // The lower bound of each vertex: sweeps until nothing changes.
  std::vector<std::int64_t> minima() const {
    std::vector<std::int64_t> least(graph_.vertices);
    for (std::uint64_t vertex = 0; vertex < least.size(); ++vertex) least[vertex] = graph_.label(vertex);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint64_t edge = 0; edge < graph_.edges(); ++edge) {
        const std::int64_t sent = least[RandomGraph::source(edge)];
        std::int64_t& target = least[graph_.target(edge)];
        changed |= sent < target;
        target = std::min(target, sent);
      }
    }
    return least;
  }

  // For each vertex, whether a predecessor has a value that is no greater.
  std::vector<bool> sources() const {
    std::vector<bool> has_source(graph_.vertices, false);
    for (std::uint64_t edge = 0; edge < graph_.edges(); ++edge) {
      const std::uint64_t source = RandomGraph::source(edge), target = graph_.target(edge);
      if (source != target && values_[source] <= values_[target]) has_source[target] = true;
    }
    return has_source;
  }

  RandomGraph graph_;
  std::vector<std::int64_t> values_;
};

}  // namespace

Graph::Graph(std::uint64_t keys, std::uint64_t seed)
    : graph_{keys}, next_(RandomGraph::kDegree * Random(seed).below(keys)) {}

void Graph::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t vertex = 0; vertex < graph_.vertices; ++vertex) {
    visit({.key = KeyName(kPrefix, vertex).view(), .integer = graph_.label(vertex)});
  }
}

InvariantRule Graph::invariant() const {
  return {.statement = "each of " + std::to_string(graph_.vertices) +
                       " vertices has its label, or a smaller one that can have come over its edges",
          .records = graph_.vertices,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<GraphAudit>(graph_)};
}

}  // namespace kilokv::engine
