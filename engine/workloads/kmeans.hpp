// kmeans: the update stage of a clustering, in which each point is added to the sums of its cluster (STAMP's kmeans, as
// PR-STM runs it, section 4.6: 2 coordinates, 16 clusters, 5 iterations).
//
// The `keys` points are numbers that a hash makes; they are not in the database. A transaction adds a point to the four
// sums of its cluster and iteration (kmns............): of both coordinates, of what they leave of a constant, and
// of 1. The third is there for the invariant alone: the paper's transactions have three.
//
// ADDs commute and nothing is guarded, so every transaction commits, and the generator knows the centroids of an
// iteration without a look at the database: it sums the points that it sends, each once in an iteration. So they do not
// depend on the point that it begins with. After the last iteration it begins again with the first, into the same
// records.
//
// Invariant, of each cluster and iteration: the sums of coordinates and rest are its number of points times the
// constant, and none is below 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class KMeans {
 public:
  static constexpr std::uint64_t kClusters = 16, kIterations = 5, kSums = 4;
  static constexpr std::int64_t kExtent = 1 << 20;  // coordinates are below

  KMeans(std::uint64_t keys, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const Assignment next = assign_next();
      const std::array<std::int64_t, kSums> sums{next.point.x, next.point.y, 2 * kExtent - next.point.x - next.point.y,
                                                 1};
      sink->begin(0, 0);
      for (std::uint64_t sum = 0; sum < kSums; ++sum) {
        const std::uint32_t key = sink->key(sum_name(next.iteration, next.cluster, sum).view());
        sink->op(OpKind::add, key, Operand::integer, sums[sum]);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  struct Point {
    std::int64_t x = 0, y = 0;
  };
  struct Cluster {
    Point centroid, sum;
    std::int64_t points = 0;
  };
  struct Assignment {
    Point point;
    std::uint64_t iteration, cluster;
  };

  static Point point(std::uint64_t number);
  static KeyName sum_name(std::uint64_t iteration, std::uint64_t cluster, std::uint64_t sum) {
    return {"kmns", (iteration * kClusters + cluster) * kSums + sum};
  }
  std::uint64_t nearest(const Point& point) const;
  Assignment assign_next();
  void begin_iteration(std::uint64_t iteration);

  std::uint64_t points_, next_, sent_ = 0;  // sent_: in this iteration
  std::uint64_t iteration_ = 0;
  std::array<Cluster, kClusters> clusters_;
};

}  // namespace kilokv::engine
