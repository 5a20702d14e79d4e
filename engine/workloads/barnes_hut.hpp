// barnes-hut: builds the octree of an n-body simulation (Barnes Hut, KILO TM, section 5: the tree-building kernel of
// Burtscher et al. with 30,000 bodies; table 2: 264,106 transactions that read 4 words and write 1; each level of the
// way down and each insertion is one of them).
//
// `keys` bodies in a cube. A hash places them, and most are near its centre. A cell of the tree is a branch node
// (bhce............); its value is the number of its children, cells and bodies. A body (bhbo............) holds the
// number of its cell. The transactions of a body go down level by level: WAIT guard: the cell above exists; FAIL guard:
// this cell exists, then GET it, else PUT it and ADD 1 to the cell above. The last transaction puts the body into the
// cell that isolates it.
//
// A footprint must be known before the transaction runs. So the cells are those of the complete tree, which does not
// depend on the order of the bodies. Unlike in the paper, nothing in the tree is ever pushed further down. Each cell
// has at least two bodies; a cell on level 10 has as many as fall into it.
//
// When all bodies are in, the next tree begins, with its own cells and bodies, and the tree before the last one is
// deleted. One transaction deletes 16 bodies and their share of the cells. If a batch holds more than two trees and the
// strategy chooses the order, a deletion can come before its insertion. Some transactions of that tree then wait until
// they expire.
//
// Invariant of the last two trees: each cell and body is at its place, below a cell that exists and has counted it. The
// last tree but one is complete.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The tree of this many bodies. It depends only on their number. Cell 0 is the root.
struct Octree {
  static constexpr std::size_t kLevels = 10;

  // Requires: bodies >= 1.
  explicit Octree(std::uint64_t bodies);

  std::uint64_t bodies() const { return cell_of.size(); }
  std::uint64_t cells() const { return parent_of.size(); }
  // Sets `path` to the cells from the root to the cell that has the body.
  void find_path(std::uint64_t body, std::vector<std::uint32_t>* path) const;

  std::vector<std::uint32_t> parent_of;  // by cell; the root is its own parent
  std::vector<std::uint32_t> cell_of;    // by body
};

class BarnesHut {
 public:
  static constexpr std::uint64_t kKeysMax = 1 << 20;

  // Requires: 2 <= keys <= kKeysMax.
  BarnesHut(std::uint64_t keys, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      if (next_ - swept_ == 2 * octree_.bodies() + kSwept) {
        sweep(sink);
      } else if (level_ < path_.size()) {
        descend(sink, level_++);
      } else {
        insert(sink);
        begin_body(next_ + 1);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor&) const {}
  InvariantRule invariant() const;

 private:
  static constexpr std::uint64_t kSwept = 16;  // bodies that one transaction deletes

  KeyName cell(std::uint64_t tree, std::uint64_t number) const { return {"bhce", tree * octree_.cells() + number}; }
  KeyName body(std::uint64_t tree, std::uint64_t number) const { return {"bhbo", tree * octree_.bodies() + number}; }
  std::uint64_t tree() const { return next_ / octree_.bodies(); }
  // Each generator begins with a different body.
  std::uint64_t body_of(std::uint64_t sequence) const { return (sequence + first_) % octree_.bodies(); }
  void begin_body(std::uint64_t sequence);

  template <TransactionSink Sink>
  void descend(Sink* sink, std::size_t level) {
    const std::uint32_t here = sink->key(cell(tree(), path_[level]).view());
    const std::uint32_t above = level == 0 ? here : sink->key(cell(tree(), path_[level - 1]).view());
    if (level > 0) sink->guard(GuardKind::exists, OnFalse::wait, above, 0, kNone);
    sink->guard(GuardKind::exists, OnFalse::fail, here, 0, kNone);
    sink->op(OpKind::get, here, Operand::integer, 0);
    sink->begin_else();
    sink->op(OpKind::put, here, Operand::integer, 0);
    if (level > 0) sink->op(OpKind::add, above, Operand::integer, 1);
  }

  template <TransactionSink Sink>
  void insert(Sink* sink) {
    const std::uint32_t here = sink->key(cell(tree(), path_.back()).view());
    sink->guard(GuardKind::exists, OnFalse::wait, here, 0, kNone);
    sink->op(OpKind::put, sink->key(body(tree(), body_of(next_)).view()), Operand::integer, path_.back());
    sink->op(OpKind::add, here, Operand::integer, 1);
  }

  template <TransactionSink Sink>
  void sweep(Sink* sink) {
    const auto erase = [&](const KeyName& name) { sink->op(OpKind::del, sink->key(name.view()), Operand::integer, 0); };
    const std::uint64_t bodies = octree_.bodies(), cells = octree_.cells();
    for (std::uint64_t i = 0; i < kSwept; ++i, ++swept_) {
      const std::uint64_t old = swept_ / bodies, place = swept_ % bodies;
      erase(body(old, body_of(swept_)));
      for (std::uint64_t c = place * cells / bodies; c < (place + 1) * cells / bodies; ++c) erase(cell(old, c));
    }
  }

  Octree octree_;
  std::uint64_t first_;                 // body
  std::uint64_t next_ = 0, swept_ = 0;  // bodies, counted over all trees
  std::vector<std::uint32_t> path_;     // of the next body
  std::size_t level_ = 0;               // of the next body: the level to visit next
};

}  // namespace kilokv::engine
