#include "engine/workloads/kmeans.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kilokv::engine {

namespace {

class ClusterAudit : public StateAudit {
 public:
  explicit ClusterAudit(const KMeansShape& shape) : shape_(shape), balance_(shape.iterations * shape.clusters, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    const std::uint64_t cluster = index / shape_.sums();
    if (cluster >= balance_.size()) return;
    const bool is_count = index % shape_.sums() == shape_.sums() - 1;
    const std::int64_t of_point = static_cast<std::int64_t>(shape_.dimensions) * KMeans::kExtent;
    balance_[cluster] += is_count ? -of_point * integer : integer;
  }

  std::string violation() const override {
    for (std::size_t i = 0; i < balance_.size(); ++i) {
      if (balance_[i] == 0) continue;
      return "cluster " + std::to_string(i % shape_.clusters) + " of iteration " + std::to_string(i / shape_.clusters) +
             ": its sums differ by " + std::to_string(balance_[i]) + " from those of its points";
    }
    return {};
  }

 private:
  KMeansShape shape_;
  std::vector<std::int64_t> balance_;  // by iteration and cluster
};

}  // namespace

KMeans::KMeans(const KMeansShape& shape, std::uint64_t seed)
    : shape_(shape), next_(Random(seed).below(shape.points)), clusters_(shape.clusters) {
  begin_iteration(0);
}

// 20 bits of the hash for each coordinate.
KMeans::Point KMeans::point(std::uint64_t number) const {
  const std::uint64_t bits = splitmix64(&number);
  Point at{};
  for (std::uint64_t dimension = 0; dimension < shape_.dimensions; ++dimension) {
    at[dimension] = static_cast<std::int64_t>(bits >> (20 * dimension)) & (kExtent - 1);
  }
  return at;
}

void KMeans::begin_iteration(std::uint64_t iteration) {
  iteration_ = iteration;
  sent_ = 0;
  for (std::uint64_t i = 0; i < clusters_.size(); ++i) {
    Cluster& cluster = clusters_[i];
    if (iteration == 0) {
      cluster.centroid = point(i);
    } else if (cluster.points > 0) {
      cluster.centroid = cluster.sum;
      for (std::int64_t& coordinate : cluster.centroid) coordinate /= cluster.points;
    }
    cluster.sum = {};
    cluster.points = 0;
  }
}

std::uint64_t KMeans::nearest(const Point& point) const {
  std::uint64_t best = 0;
  std::int64_t least = INT64_MAX;
  for (std::uint64_t i = 0; i < clusters_.size(); ++i) {
    std::int64_t distance = 0;
    for (std::size_t dimension = 0; dimension < point.size(); ++dimension) {
      const std::int64_t apart = point[dimension] - clusters_[i].centroid[dimension];
      distance += apart * apart;
    }
    if (distance < least) best = i;
    least = distance < least ? distance : least;
  }
  return best;
}

KMeans::Assignment KMeans::assign_next() {
  if (sent_ == shape_.points) begin_iteration((iteration_ + 1) % shape_.iterations);
  ++sent_;
  const Point at = point(std::exchange(next_, next_ + 1 == shape_.points ? 0 : next_ + 1));
  const std::uint64_t cluster = nearest(at);
  for (std::size_t dimension = 0; dimension < at.size(); ++dimension)
    clusters_[cluster].sum[dimension] += at[dimension];
  ++clusters_[cluster].points;
  return {at, iteration_, cluster};
}

void KMeans::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t i = 0; i < shape_.records(); ++i) {
    visit({.key = KeyName(shape_.prefix, i).view(), .integer = 0});
  }
}

InvariantRule KMeans::invariant() const {
  return {.statement = "the sums of each cluster and iteration are those of its number of points",
          .records = shape_.records(),
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<ClusterAudit>(shape_)};
}

}  // namespace kilokv::engine
