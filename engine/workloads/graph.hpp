// graph: every vertex takes the minimum of its predecessors (the graph processing of PR-STM, section 4.8).
//
// `keys` vertices (vert............) with 10 edges each. A hash draws the ends of the edges, so no edge is stored. The
// label of a vertex at the start is the paper's random number from 1 to 10,000, times the number of vertices, plus the
// vertex. So no two labels are equal, and each label tells its origin.
//
// The paper's transaction sends a vertex's label to all its neighbours, and writes to those with a greater label. Here
// a guard decides for its whole transaction, so each edge is one transaction: FAIL guard value(u) < value(v), GET u,
// PUT v. The paper's threads continue from the vertices that changed. This generator sees no results: it sends along
// all edges, in turn, again and again. After some sweeps (keys * 10 transactions each) nothing changes any more, and
// all guards fail. Therefore measure the first sweeps on a fresh database, by the number of batches.
//
// Invariant: each value is the label of some vertex. It is at least the minimum over all vertices that lead to this
// vertex, and at most its own label. If it is less than its own label, a predecessor has a value that is no greater.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The graph itself. It depends only on its size.
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
