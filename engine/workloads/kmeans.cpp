#include "engine/workloads/kmeans.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kilokv::engine {

namespace {

class ClusterAudit : public StateAudit {
 public:
  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    const std::uint64_t cluster = index / KMeans::kSums;
    if (cluster >= balance_.size()) return;
    const bool is_count = index % KMeans::kSums == KMeans::kSums - 1;
    balance_[cluster] += is_count ? -2 * KMeans::kExtent * integer : integer;
  }

  std::string violation() const override {
    for (std::size_t i = 0; i < balance_.size(); ++i) {
      if (balance_[i] == 0) continue;
      return "cluster " + std::to_string(i % KMeans::kClusters) + " of iteration " +
             std::to_string(i / KMeans::kClusters) + ": its sums differ by " + std::to_string(balance_[i]) +
             " from those of its points";
    }
    return {};
  }

 private:
  std::array<std::int64_t, KMeans::kIterations * KMeans::kClusters> balance_{};
};

}  // namespace

KMeans::KMeans(std::uint64_t keys, std::uint64_t seed) : points_(keys), next_(Random(seed).below(keys)) {
  begin_iteration(0);
}

KMeans::Point KMeans::point(std::uint64_t number) {
  const std::uint64_t bits = splitmix64(&number);
  return {static_cast<std::int64_t>(bits % kExtent), static_cast<std::int64_t>((bits >> 32) % kExtent)};
}

void KMeans::begin_iteration(std::uint64_t iteration) {
  iteration_ = iteration;
  sent_ = 0;
  for (std::uint64_t i = 0; i < kClusters; ++i) {
    Cluster& cluster = clusters_[i];
    if (iteration == 0) {
      cluster.centroid = point(i);
    } else if (cluster.points > 0) {
      cluster.centroid = {cluster.sum.x / cluster.points, cluster.sum.y / cluster.points};
    }
    cluster.sum = {};
    cluster.points = 0;
  }
}

std::uint64_t KMeans::nearest(const Point& point) const {
  std::uint64_t best = 0;
  std::int64_t least = 4 * kExtent * kExtent;
  for (std::uint64_t i = 0; i < kClusters; ++i) {
    const std::int64_t x = point.x - clusters_[i].centroid.x, y = point.y - clusters_[i].centroid.y;
    const std::int64_t distance = x * x + y * y;
    if (distance < least) best = i;
    least = distance < least ? distance : least;
  }
  return best;
}

KMeans::Assignment KMeans::assign_next() {
  if (sent_ == points_) begin_iteration((iteration_ + 1) % kIterations);
  ++sent_;
  const Point at = point(std::exchange(next_, next_ + 1 == points_ ? 0 : next_ + 1));
  const std::uint64_t cluster = nearest(at);
  clusters_[cluster].sum.x += at.x;
  clusters_[cluster].sum.y += at.y;
  ++clusters_[cluster].points;
  return {at, iteration_, cluster};
}

void KMeans::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
    for (std::uint64_t i = 0; i < kClusters * kSums; ++i) {
      visit({.key = sum_name(iteration, i / kSums, i % kSums).view(), .integer = 0});
    }
  }
}

InvariantRule KMeans::invariant() const {
  return {.statement = "the sums of each cluster and iteration are those of its number of points",
          .records = kIterations * kClusters * kSums,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<ClusterAudit>()};
}

}  // namespace kilokv::engine
