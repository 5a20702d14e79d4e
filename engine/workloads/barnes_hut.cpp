#include "engine/workloads/barnes_hut.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kilokv::engine {

namespace {

// The octants of the body on all levels, three bits for each level, the root's first.
std::uint64_t octants_of(std::uint64_t body) {
  std::uint64_t octants = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::uint64_t mixer = body * 3 + axis;
    const std::uint64_t bits = splitmix64(&mixer);
    // The product of two uniform numbers, to one side of the centre.
    const std::uint64_t distance = ((bits >> 32) * (bits & 0xFFFFFFFEu)) >> (65 - Octree::kLevels);
    const std::uint64_t centre = std::uint64_t{1} << (Octree::kLevels - 1);
    const std::uint64_t at = (bits & 1) == 0 ? centre + distance : centre - 1 - distance;
    for (std::size_t level = 0; level < Octree::kLevels; ++level) {
      octants |= (at >> level & 1) << (3 * level + axis);
    }
  }
  return octants;
}

// How many levels below the root the two bodies share a cell.
std::size_t shared_levels(std::uint64_t octants, std::uint64_t other) {
  const auto differing = static_cast<std::size_t>(std::bit_width(octants ^ other));
  return Octree::kLevels - (differing + 2) / 3;
}

class TreeAudit : public StateAudit {
 public:
  explicit TreeAudit(Octree octree) : octree_(std::move(octree)) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    if (key.starts_with("bhce")) {
      trees_[index / octree_.cells()].cells[static_cast<std::uint32_t>(index % octree_.cells())] = integer;
    } else {
      trees_[index / octree_.bodies()].bodies[static_cast<std::uint32_t>(index % octree_.bodies())] = integer;
    }
  }

  std::string violation() const override {
    if (trees_.empty()) return {};
    const std::uint64_t last = trees_.rbegin()->first;
    for (std::uint64_t number = std::max<std::uint64_t>(last, 1) - 1; number <= last; ++number) {
      const auto tree = trees_.find(number);
      const std::string problem = tree == trees_.end() ? "it is missing" : problem_of(tree->second, number == last);
      if (!problem.empty()) return "tree " + std::to_string(number) + ": " + problem;
    }
    return {};
  }

 private:
  struct Tree {
    std::map<std::uint32_t, std::int64_t> cells, bodies;
  };

  std::string problem_of(const Tree& tree, bool is_last) const {
    const bool whole = tree.cells.size() == octree_.cells() && tree.bodies.size() == octree_.bodies();
    if (!whole && !is_last) return "it is not complete";
    std::map<std::uint32_t, std::int64_t> children;
    for (const auto& [cell, count] : tree.cells) children[octree_.parent_of[cell]] += cell == 0 ? 0 : 1;
    for (const auto& [body, cell] : tree.bodies) {
      if (cell != octree_.cell_of[body]) return "body " + std::to_string(body) + " is in another cell than its own";
      ++children[octree_.cell_of[body]];
    }
    for (const auto& [cell, count] : children) {
      const auto found = tree.cells.find(cell);
      if (found == tree.cells.end()) return "cell " + std::to_string(cell) + " is missing, but it has children";
    }
    for (const auto& [cell, count] : tree.cells) {
      const auto found = children.find(cell);
      const std::int64_t expected = found == children.end() ? 0 : found->second;
      if (count == expected) continue;
      return "children of cell " + std::to_string(cell) + ": expected " + std::to_string(expected) + ", got " +
             std::to_string(count);
    }
    return {};
  }

  Octree octree_;
  std::map<std::uint64_t, Tree> trees_;
};

}  // namespace

// Sorted by their octants, bodies that share a cell are next to each other. So a cell is new if a body shares fewer
// levels with the body before it.
Octree::Octree(std::uint64_t bodies) : parent_of{0}, cell_of(bodies) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;  // octants, body
  for (std::uint64_t body = 0; body < bodies; ++body) {
    sorted.emplace_back(octants_of(body), static_cast<std::uint32_t>(body));
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> path{0};
  std::size_t shared = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::size_t next = i + 1 < sorted.size() ? shared_levels(sorted[i].first, sorted[i + 1].first) : 0;
    path.resize(shared + 1);
    while (path.size() <= next) {
      parent_of.push_back(path.back());
      path.push_back(static_cast<std::uint32_t>(parent_of.size() - 1));
    }
    cell_of[sorted[i].second] = path.back();
    shared = next;
  }
}

void Octree::find_path(std::uint64_t body, std::vector<std::uint32_t>* path) const {
  path->clear();
  for (std::uint32_t cell = cell_of[body]; cell != 0; cell = parent_of[cell]) path->push_back(cell);
  path->push_back(0);
  std::reverse(path->begin(), path->end());
}

BarnesHut::BarnesHut(std::uint64_t keys, std::uint64_t seed) : octree_(keys), first_(Random(seed).below(keys)) {
  path_.reserve(Octree::kLevels + 1);
  begin_body(0);
}

void BarnesHut::begin_body(std::uint64_t sequence) {
  next_ = sequence;
  level_ = 0;
  octree_.find_path(body_of(sequence), &path_);
}

InvariantRule BarnesHut::invariant() const {
  return {.statement = "each cell and body of the last two trees is below a cell that has counted it",
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<TreeAudit>(octree_)};
}

}  // namespace kilokv::engine
