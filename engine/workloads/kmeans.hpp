// kmeans, local-km: the update stage of a clustering, in which each point is added to the sums of its cluster.
//
// kmeans is STAMP's, as PR-STM runs it (section 4.6: 2 coordinates, 16 clusters, 5 iterations); `keys` are the points.
// local-km is the KM of GPU-LocalTM ("Hardware support for local memory transactions on GPU architectures", section
// 5.1.2: the 256 points of a work-group, of 3 coordinates, one iteration); `keys` are the centers, 2 to 256 of them, so
// KM2 to KM256. A batch of 256 is the paper's.
//
// A hash makes the points from their numbers; they are not in the database. A transaction adds a point to the sums of
// its cluster and iteration (kmns............, lkms............): a sum for each coordinate, a sum of what the
// coordinates leave of a constant, and a count. The last sum but one serves only the invariant, so the papers'
// transactions have one sum less.
//
// ADDs commute and there are no guards, so every transaction commits. The generator itself computes the centroids of an
// iteration, without reading the database: it sums the points that it sends, each once in an iteration. So the
// centroids do not depend on the point with which it begins. After the last iteration it starts again with the first
// one, and into the same records.
//
// Invariant, for each cluster and iteration: the sums of the coordinates and the rest are the number of points times
// the constant, and none is below 0.
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

struct KMeansShape {
  static constexpr std::uint64_t kDimensionsMax = 3;

  std::uint64_t sums() const { return dimensions + 2; }
  std::uint64_t records() const { return iterations * clusters * sums(); }

  std::string_view prefix;  // of its keys
  std::uint64_t points, clusters, dimensions, iterations;
};

class KMeans {
 public:
  static constexpr std::int64_t kExtent = 1 << 20;  // coordinates are below
  static constexpr KMeansShape stamp(std::uint64_t points) { return {"kmns", points, 16, 2, 5}; }
  static constexpr std::uint64_t kWorkGroup = 256;
  static constexpr KMeansShape local(std::uint64_t centers) { return {"lkms", kWorkGroup, centers, 3, 1}; }

  // Requires: 1 <= dimensions <= kDimensionsMax, and at least one of all else.
  KMeans(const KMeansShape& shape, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    const std::uint64_t dimensions = shape_.dimensions;
    for (std::size_t i = 0; i < transactions; ++i) {
      const Assignment next = assign_next();
      std::int64_t rest = static_cast<std::int64_t>(dimensions) * kExtent;
      sink->begin(0, 0);
      for (std::uint64_t dimension = 0; dimension < dimensions; ++dimension) {
        add(sink, next, dimension, next.point[dimension]);
        rest -= next.point[dimension];
      }
      add(sink, next, dimensions, rest);
      add(sink, next, dimensions + 1, 1);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  using Point = std::array<std::int64_t, KMeansShape::kDimensionsMax>;  // dimensions that are not used are 0
  struct Cluster {
    Point centroid{}, sum{};
    std::int64_t points = 0;
  };
  struct Assignment {
    Point point;
    std::uint64_t iteration, cluster;
  };

  template <TransactionSink Sink>
  void add(Sink* sink, const Assignment& to, std::uint64_t sum, std::int64_t amount) const {
    const std::uint64_t index = (to.iteration * shape_.clusters + to.cluster) * shape_.sums() + sum;
    sink->op(OpKind::add, sink->key(KeyName(shape_.prefix, index).view()), Operand::integer, amount);
  }

  Point point(std::uint64_t number) const;
  std::uint64_t nearest(const Point& point) const;
  Assignment assign_next();
  void begin_iteration(std::uint64_t iteration);

  KMeansShape shape_;
  std::uint64_t next_, sent_ = 0;  // points; sent_: in this iteration
  std::uint64_t iteration_ = 0;
  std::vector<Cluster> clusters_;
};

}  // namespace kilokv::engine
