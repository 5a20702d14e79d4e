#include "engine/exec/collect/rank_order.hpp"

#include <algorithm>

#include "engine/txn/program.hpp"

namespace kilokv::engine {
namespace {

// A walk through all ranks takes passes x n steps, and a sort takes n log n.
constexpr std::uint32_t kWalkedPassesMax = 4;

}  // namespace

void RankOrder::sort(const BatchResults& results, bool in_order) {
  in_order_ = in_order;
  by_rank_.clear();
  if (in_order) return;
  const auto n = static_cast<std::uint32_t>(results.wrote.size());
  by_rank_.reserve(std::size_t{kWalkedPassesMax} * n);
  if (results.passes > kWalkedPassesMax) {
    for (std::uint32_t t = 0; t < n; ++t) {
      if (results.wrote[t] != 0) by_rank_.push_back(t);
    }
    std::sort(by_rank_.begin(), by_rank_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return results.rank[a] < results.rank[b]; });
    return;
  }
  by_rank_.assign(std::size_t{results.passes} * n, kNone);
  for (std::uint32_t t = 0; t < n; ++t) {
    if (results.wrote[t] != 0) by_rank_[results.rank[t]] = t;
  }
  by_rank_.erase(std::remove(by_rank_.begin(), by_rank_.end(), kNone), by_rank_.end());
}

std::uint32_t RankOrder::places_before(const BatchResults& results, std::uint32_t rank) const {
  const auto at =
      std::partition_point(by_rank_.begin(), by_rank_.end(), [&](std::uint32_t t) { return results.rank[t] < rank; });
  return static_cast<std::uint32_t>(at - by_rank_.begin());
}

}  // namespace kilokv::engine
