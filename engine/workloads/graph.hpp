// graph: every vertex takes the minimum of its predecessors (the graph processing of PR-STM, section 4.8).
//
// `keys` vertices (vert............) with 10 edges each, whose ends a hash draws, so that no edge is stored. The labels
// at the start are those of the paper, random from 1 to 10,000, times the number of vertices, plus the vertex: no two
// are equal, and each tells where it came from.
//
// The paper's transaction sends a vertex's label to all its neighbours and writes to those that have a greater one. A
// guard decides for its whole transaction here, so each edge is one: FAIL guard value(u) < value(v), GET u, PUT v.
// The paper's threads go on from the vertices that changed. This generator sees no results: it sends along all edges,
// in turn, again and again. After some sweeps (keys * 10 transactions each) nothing changes any more, and all that is
// left are guards that fail: measure the first few on a fresh database, by the number of batches.
//
// Invariant: each value is the label of some vertex; it is no less than the minimum over all that lead to this vertex,
// and no more than its own label; where it is less, a predecessor has one that is no more than it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The graph itself: a function of its size.
struct RandomGraph {
  static constexpr std::uint64_t kDegree = 10, kLabels = 10'000;

  std::uint64_t edges() const { return vertices * kDegree; }
  static std::uint64_t source(std::uint64_t edge) { return edge / kDegree; }
  std::uint64_t target(std::uint64_t edge) const { return splitmix64(&edge) % vertices; }
  std::int64_t label(std::uint64_t vertex) const {
    std::uint64_t mixer = ~vertex;
    return static_cast<std::int64_t>((1 + splitmix64(&mixer) % kLabels) * vertices + vertex);
  }

  std::uint64_t vertices;
};

class Graph {
 public:
  // Requires: keys >= 2.
  Graph(std::uint64_t keys, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::uint64_t edge = next_;
      next_ = next_ + 1 == graph_.edges() ? 0 : next_ + 1;
      sink->begin(0, 0);
      const std::uint32_t source = sink->key(KeyName(kPrefix, RandomGraph::source(edge)).view());
      const std::uint32_t target = sink->key(KeyName(kPrefix, graph_.target(edge)).view());
      sink->guard(GuardKind::less, OnFalse::fail, source, 0, target);
      sink->op(OpKind::get, source, Operand::integer, 0);
      sink->op(OpKind::put, target, Operand::get, 0);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr std::string_view kPrefix = "vert";

  RandomGraph graph_;
  std::uint64_t next_;  // edge
};

}  // namespace kilokv::engine
