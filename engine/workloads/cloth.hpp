// cloth: distance constraints between neighbouring mass points (the Distance Solver kernel of Cloth Physics, KILO TM,
// section 5: all constraints of each T-shirt, about 4k, in parallel; table 2: 60,200 transactions that read 11 words
// and write 5).
//
// `keys` points in grids of 64 by 32. Each grid is a T-shirt with 4,000 constraints: one between each point and its
// right neighbour, and one to the point below. A point has three coordinates (clpo............). A constraint has two
// numbers on each axis: the distance that was last measured minus the wanted one (cler............), and the sum of the
// moves that it made (clim............; solvers keep such an impulse). A transaction is one constraint's turn on one
// axis. If its points are too far apart, both move a step towards each other; otherwise they move a step apart. Then
// the distance is measured again. The transaction gets all six coordinates, and writes two of them, the error and the
// impulse.
//
// Deviations. A transaction has no square root, so the distance is taken on each axis. A guard compares only values
// that are there before, so it uses the distance of the constraint's last turn, which neighbours may have changed
// since. No point is fixed. The cloth never comes to rest: it oscillates around its distances by a step.
//
// Invariant: each point is where the impulses of its constraints have moved it. Errors are whole steps.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The T-shirts: points and constraints by number. Constraint 2 * p leads from point p to the right, 2 * p + 1 leads
// down.
struct ClothGrid {
  static constexpr std::uint64_t kWidth = 64, kHeight = 32, kAxes = 3;
  static constexpr std::int64_t kStep = 16, kRest = 64 * kStep;

  static std::uint64_t first_of(std::uint64_t constraint) { return constraint / 2; }
  static std::uint64_t second_of(std::uint64_t constraint) {
    return constraint / 2 + (constraint % 2 == 0 ? 1 : kWidth);
  }
  // No constraint crosses the edge of a T-shirt.
  bool has(std::uint64_t constraint) const {
    const std::uint64_t point = first_of(constraint);
    const bool at_edge = constraint % 2 == 0 ? point % kWidth == kWidth - 1 : point / kWidth % kHeight == kHeight - 1;
    return !at_edge && second_of(constraint) < points;
  }
  // The distance that a constraint keeps on an axis: to the right on axis 0, down on axis 1.
  static std::int64_t rest(std::uint64_t constraint, std::uint64_t axis) { return constraint % 2 == axis ? kRest : 0; }
  // The position of a point at the start, slightly off its final one.
  std::int64_t start(std::uint64_t point, std::uint64_t axis) const;
  std::int64_t start_error(std::uint64_t constraint, std::uint64_t axis) const {
    return start(second_of(constraint), axis) - start(first_of(constraint), axis) - rest(constraint, axis);
  }
  std::uint64_t constraints() const { return 2 * points; }  // the upper bound of their numbers

  std::uint64_t points;
};

class Cloth {
 public:
  // Requires: keys >= 2.
  Cloth(std::uint64_t keys, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      turn(sink, next_ % grid_.constraints(), next_ / grid_.constraints());
      sink->end();
      find_next(next_ + 1);
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  KeyName coordinate(std::uint64_t point, std::uint64_t axis) const { return {"clpo", axis * grid_.points + point}; }
  KeyName error(std::uint64_t constraint, std::uint64_t axis) const {
    return {"cler", axis * grid_.constraints() + constraint};
  }
  KeyName impulse(std::uint64_t constraint, std::uint64_t axis) const {
    return {"clim", axis * grid_.constraints() + constraint};
  }
  void find_next(std::uint64_t from);

  template <TransactionSink Sink>
  void turn(Sink* sink, std::uint64_t constraint, std::uint64_t axis) {
    const std::uint32_t off = sink->key(error(constraint, axis).view());
    sink->guard(GuardKind::greater, OnFalse::fail, off, 0, kNone);
    move(sink, constraint, axis, 1);
    sink->begin_else();
    move(sink, constraint, axis, -1);
  }

  template <TransactionSink Sink>
  void move(Sink* sink, std::uint64_t constraint, std::uint64_t axis, std::int64_t steps) {
    const std::uint64_t from = ClothGrid::first_of(constraint), to = ClothGrid::second_of(constraint);
    const std::uint32_t off = sink->key(error(constraint, axis).view());
    const std::uint32_t first = sink->key(coordinate(from, axis).view());
    const std::uint32_t second = sink->key(coordinate(to, axis).view());
    sink->op(OpKind::add, first, Operand::integer, steps * ClothGrid::kStep);
    sink->op(OpKind::add, second, Operand::integer, -steps * ClothGrid::kStep);
    sink->op(OpKind::add, sink->key(impulse(constraint, axis).view()), Operand::integer, steps);
    sink->op(OpKind::get, first, Operand::integer, 0);
    sink->op(OpKind::get, second, Operand::integer, 0);
    for (std::uint64_t other = 1; other < ClothGrid::kAxes; ++other) {
      const std::uint64_t turned = (axis + other) % ClothGrid::kAxes;
      sink->op(OpKind::get, sink->key(coordinate(from, turned).view()), Operand::integer, 0);
      sink->op(OpKind::get, sink->key(coordinate(to, turned).view()), Operand::integer, 0);
    }
    sink->op(OpKind::put, off, Operand::get, 4);
    sink->op(OpKind::add, off, Operand::get_negated, 3);
    sink->op(OpKind::add, off, Operand::integer, -ClothGrid::rest(constraint, axis));
  }

  ClothGrid grid_;
  std::uint64_t next_ = 0;  // constraint, plus the number of constraints for each axis before
};

}  // namespace kilokv::engine
