// cuda-cuts: pushes excess flow over the grid of an image, to find a minimum cut (the Push kernels of CudaCuts, KILO
// TM, section 5: an image of 200 by 150 pixels; table 2: 114,677 transactions that rarely conflict).
//
// `keys` pixels in rows of 200. A pixel has an excess (ccex............), a height (cche............), the residual
// capacity of its edge to the sink (ccsi............), and that of its edge in each direction (cced............: right,
// down, left, up). The paper groups the consecutive atomic operations of a push into one transaction. Here this
// transaction has FAIL guards: the excess and the edge are at least the amount, and the neighbour is lower. It has ADDs
// to both excesses and to both directions of the edge. The amount is drawn from 1 to 16, because it must be known
// before.
//
// A sweep pushes from every pixel to the sink, then in each direction. Then it lifts each pixel that still has an
// excess. The paper's Relabel kernel reads all edges. Here a pixel is lifted whatever its neighbours are; this moves
// the flow around, but does not promise that the flow is the greatest. There is more excess than the sink can take, so
// the flow never comes to rest.
//
// Invariant (flow conservation): the excess of each pixel is its first excess minus the flow that left over its edges.
// The sum of the capacities of an edge and its opposite does not change. Heights are whole steps.
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

// The image. It depends only on its size.
struct PixelGrid {
  static constexpr std::uint64_t kWidth = 200, kDirections = 4;
  static constexpr std::int64_t kAmountMax = 16, kLift = 4;

  static std::uint64_t opposite(std::uint64_t direction) { return (direction + 2) % kDirections; }
  bool has(std::uint64_t pixel, std::uint64_t direction) const;
  // Requires: has(pixel, direction).
  static std::uint64_t neighbour(std::uint64_t pixel, std::uint64_t direction) {
    constexpr std::array<std::uint64_t, kDirections> kSteps{1, kWidth, ~std::uint64_t{0}, ~kWidth + 1};
    return pixel + kSteps[direction];
  }
  static std::int64_t excess(std::uint64_t pixel) { return amount(8 * pixel, 256); }
  static std::int64_t sink(std::uint64_t pixel) { return amount(8 * pixel + 1, 128); }
  static std::int64_t edge(std::uint64_t pixel, std::uint64_t direction) {
    return amount(8 * pixel + 2 + direction, 64);
  }

  std::uint64_t pixels;

 private:
  static std::int64_t amount(std::uint64_t number, std::uint64_t bound) {
    return static_cast<std::int64_t>(splitmix64(&number) % bound);
  }
};

class CudaCuts {
 public:
  // Requires: keys >= 2.
  CudaCuts(std::uint64_t keys, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::uint64_t pixel = next_ % grid_.pixels, phase = next_ / grid_.pixels;
      sink->begin(0, 0);
      if (phase == 0) {
        drain(sink, pixel);
      } else if (phase <= PixelGrid::kDirections) {
        push(sink, pixel, phase - 1);
      } else {
        lift(sink, pixel);
      }
      sink->end();
      find_next(next_ + 1);
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static KeyName excess(std::uint64_t pixel) { return {"ccex", pixel}; }
  static KeyName height(std::uint64_t pixel) { return {"cche", pixel}; }
  static KeyName to_sink(std::uint64_t pixel) { return {"ccsi", pixel}; }
  static KeyName edge(std::uint64_t pixel, std::uint64_t direction) {
    return {"cced", pixel * PixelGrid::kDirections + direction};
  }
  void find_next(std::uint64_t from);

  // Moves the amount from one record to another, or to none, with a FAIL guard if the record may not fall below 0.
  template <TransactionSink Sink>
  static void take(Sink* sink, std::uint32_t from, std::int64_t amount) {
    sink->guard(GuardKind::greater_equal, OnFalse::fail, from, amount, kNone);
  }

  template <TransactionSink Sink>
  void drain(Sink* sink, std::uint64_t pixel) {
    const std::int64_t amount = random_.between(1, PixelGrid::kAmountMax);
    const std::uint32_t from = sink->key(excess(pixel).view()), edge_to = sink->key(to_sink(pixel).view());
    take(sink, from, amount);
    take(sink, edge_to, amount);
    sink->op(OpKind::add, from, Operand::integer, -amount);
    sink->op(OpKind::add, edge_to, Operand::integer, -amount);
  }

  template <TransactionSink Sink>
  void push(Sink* sink, std::uint64_t pixel, std::uint64_t direction) {
    const std::uint64_t other = PixelGrid::neighbour(pixel, direction);
    const std::int64_t amount = random_.between(1, PixelGrid::kAmountMax);
    const std::uint32_t from = sink->key(excess(pixel).view()), to = sink->key(excess(other).view());
    const std::uint32_t there = sink->key(edge(pixel, direction).view());
    const std::uint32_t back = sink->key(edge(other, PixelGrid::opposite(direction)).view());
    const std::uint32_t high = sink->key(height(pixel).view()), low = sink->key(height(other).view());
    take(sink, from, amount);
    take(sink, there, amount);
    sink->guard(GuardKind::greater, OnFalse::fail, high, 0, low);
    sink->op(OpKind::add, from, Operand::integer, -amount);
    sink->op(OpKind::add, to, Operand::integer, amount);
    sink->op(OpKind::add, there, Operand::integer, -amount);
    sink->op(OpKind::add, back, Operand::integer, amount);
  }

  template <TransactionSink Sink>
  void lift(Sink* sink, std::uint64_t pixel) {
    take(sink, sink->key(excess(pixel).view()), 1);
    sink->op(OpKind::add, sink->key(height(pixel).view()), Operand::integer, PixelGrid::kLift);
  }

  PixelGrid grid_;
  Random random_;
  std::uint64_t next_ = 0;  // pixel, plus the number of pixels for each phase of a sweep before
};

}  // namespace kilokv::engine
