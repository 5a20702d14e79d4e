#include "engine/workloads/cloth.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

// Undoes every impulse. Then each point must be where it began.
class ClothAudit : public StateAudit {
 public:
  explicit ClothAudit(const ClothGrid& grid) : grid_(grid), moved_(ClothGrid::kAxes * grid.points, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    if (key.starts_with("cler")) {
      if (integer % ClothGrid::kStep != 0) problem_ = std::string(key) + " is no whole step";
    } else if (key.starts_with("clpo")) {
      if (index < moved_.size()) moved_[index] += integer - grid_.start(index % grid_.points, index / grid_.points);
    } else if (const std::uint64_t constraint = index % grid_.constraints();
               index / grid_.constraints() < ClothGrid::kAxes && grid_.has(constraint)) {
      const std::uint64_t axis = index / grid_.constraints() * grid_.points;
      moved_[axis + ClothGrid::first_of(constraint)] -= integer * ClothGrid::kStep;
      moved_[axis + ClothGrid::second_of(constraint)] += integer * ClothGrid::kStep;
    }
  }

  std::string violation() const override {
    for (std::size_t i = 0; i < moved_.size() && problem_.empty(); ++i) {
      if (moved_[i] == 0) continue;
      return "point " + std::to_string(i % grid_.points) + " is " + std::to_string(moved_[i]) +
             " beyond where its constraints moved it on axis " + std::to_string(i / grid_.points);
    }
    return problem_;
  }

 private:
  ClothGrid grid_;
  std::vector<std::int64_t> moved_;  // by axis and point
  std::string problem_;
};

}  // namespace

std::int64_t ClothGrid::start(std::uint64_t point, std::uint64_t axis) const {
  std::uint64_t mixer = point * kAxes + axis;
  const std::int64_t off = static_cast<std::int64_t>(splitmix64(&mixer) % 33) - 16;
  const std::uint64_t steps = axis == 0 ? point % kWidth : axis == 1 ? point / kWidth % kHeight : 0;
  return static_cast<std::int64_t>(steps) * kRest + off * kStep;
}

Cloth::Cloth(std::uint64_t keys, std::uint64_t seed) : grid_{keys} {
  find_next(Random(seed).below(grid_.constraints()));
}

// There is always a next one: keys >= 2, so constraint 0 exists.
void Cloth::find_next(std::uint64_t from) {
  const std::uint64_t all = ClothGrid::kAxes * grid_.constraints();
  next_ = from % all;
  while (!grid_.has(next_ % grid_.constraints())) next_ = (next_ + 1) % all;
}

void Cloth::for_each_initial(const InitialVisitor& visit) const {
  const auto for_each_constraint = [&](const auto& record) {
    for (std::uint64_t axis = 0; axis < ClothGrid::kAxes; ++axis) {
      for (std::uint64_t i = 0; i < grid_.constraints(); ++i) {
        if (grid_.has(i)) record(i, axis);
      }
    }
  };
  for_each_constraint([&](std::uint64_t i, std::uint64_t axis) {
    visit({.key = error(i, axis).view(), .integer = grid_.start_error(i, axis)});
  });
  for_each_constraint(
      [&](std::uint64_t i, std::uint64_t axis) { visit({.key = impulse(i, axis).view(), .integer = 0}); });
  for (std::uint64_t axis = 0; axis < ClothGrid::kAxes; ++axis) {
    for (std::uint64_t i = 0; i < grid_.points; ++i) {
      visit({.key = coordinate(i, axis).view(), .integer = grid_.start(i, axis)});
    }
  }
}

InvariantRule Cloth::invariant() const {
  std::uint64_t constraints = 0;
  for (std::uint64_t i = 0; i < grid_.constraints(); ++i) constraints += grid_.has(i) ? 1 : 0;
  return {.statement = std::to_string(grid_.points) + " points, each where its constraints have moved it",
          .records = ClothGrid::kAxes * (grid_.points + 2 * constraints),
          .integers = true,
          .audit = std::make_unique<ClothAudit>(grid_)};
}

}  // namespace kilokv::engine
