#include "engine/workloads/cuda_cuts.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

constexpr std::uint64_t kPhases = PixelGrid::kDirections + 2;

class FlowAudit : public StateAudit {
 public:
  explicit FlowAudit(const PixelGrid& grid)
      : grid_(grid), surplus_(grid.pixels, 0), opened_(grid.pixels * PixelGrid::kDirections, 0) {}

  // Flow that leaves over an edge makes the edge's capacity smaller; flow that comes makes it larger.
  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    if (index >= (key.starts_with("cced") ? opened_.size() : surplus_.size())) return;
    if (key.starts_with("ccex")) {
      surplus_[index] += integer - PixelGrid::excess(index);
    } else if (key.starts_with("ccsi")) {
      surplus_[index] += PixelGrid::sink(index) - integer;
    } else if (key.starts_with("cced")) {
      const std::uint64_t pixel = index / PixelGrid::kDirections, direction = index % PixelGrid::kDirections;
      opened_[index] = integer - PixelGrid::edge(pixel, direction);
      surplus_[pixel] -= opened_[index];
    } else if (integer % PixelGrid::kLift != 0) {
      problem_ = std::string(key) + " is no whole step";
    }
  }

  std::string violation() const override {
    for (std::uint64_t pixel = 0; pixel < grid_.pixels && problem_.empty(); ++pixel) {
      const std::string where = "pixel " + std::to_string(pixel);
      for (std::uint64_t direction = 0; direction < 2; ++direction) {
        if (!grid_.has(pixel, direction)) continue;
        const std::uint64_t back =
            PixelGrid::neighbour(pixel, direction) * PixelGrid::kDirections + PixelGrid::opposite(direction);
        const std::int64_t sum = opened_[pixel * PixelGrid::kDirections + direction] + opened_[back];
        if (sum != 0) return where + ": an edge and its opposite can take " + std::to_string(sum) + " more than before";
      }
      if (surplus_[pixel] == 0) continue;
      return where + " has " + std::to_string(surplus_[pixel]) + " more than came to it";
    }
    return problem_;
  }

 private:
  PixelGrid grid_;
  std::vector<std::int64_t> surplus_;  // by pixel
  std::vector<std::int64_t> opened_;   // by pixel and direction
  std::string problem_;
};

}  // namespace

bool PixelGrid::has(std::uint64_t pixel, std::uint64_t direction) const {
  switch (direction) {
    case 0: return pixel % kWidth != kWidth - 1 && pixel + 1 < pixels;
    case 1: return pixel + kWidth < pixels;
    case 2: return pixel % kWidth != 0;
    default: return pixel >= kWidth;
  }
}

CudaCuts::CudaCuts(std::uint64_t keys, std::uint64_t seed) : grid_{keys}, random_(seed) {
  find_next(random_.below(keys));
}

void CudaCuts::find_next(std::uint64_t from) {
  next_ = from % (kPhases * grid_.pixels);
  while (true) {
    const std::uint64_t phase = next_ / grid_.pixels;
    const bool pushes = phase > 0 && phase <= PixelGrid::kDirections;
    if (!pushes || grid_.has(next_ % grid_.pixels, phase - 1)) break;
    next_ = (next_ + 1) % (kPhases * grid_.pixels);
  }
}

void CudaCuts::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t pixel = 0; pixel < grid_.pixels; ++pixel) {
    for (std::uint64_t direction = 0; direction < PixelGrid::kDirections; ++direction) {
      if (!grid_.has(pixel, direction)) continue;
      visit({.key = edge(pixel, direction).view(), .integer = PixelGrid::edge(pixel, direction)});
    }
  }
  for (std::uint64_t i = 0; i < grid_.pixels; ++i) visit({.key = excess(i).view(), .integer = PixelGrid::excess(i)});
  for (std::uint64_t i = 0; i < grid_.pixels; ++i) visit({.key = height(i).view(), .integer = 0});
  for (std::uint64_t i = 0; i < grid_.pixels; ++i) visit({.key = to_sink(i).view(), .integer = PixelGrid::sink(i)});
}

InvariantRule CudaCuts::invariant() const {
  std::uint64_t edges = 0;
  for (std::uint64_t i = 0; i < PixelGrid::kDirections * grid_.pixels; ++i) {
    edges += grid_.has(i / PixelGrid::kDirections, i % PixelGrid::kDirections) ? 1 : 0;
  }
  return {.statement = "flow is conserved at each of " + std::to_string(grid_.pixels) + " pixels",
          .records = edges + 3 * grid_.pixels,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<FlowAudit>(grid_)};
}

}  // namespace kilokv::engine
