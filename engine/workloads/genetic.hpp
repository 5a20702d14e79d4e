// local-ga: a genetic algorithm that fills a knapsack (the GA of GPU-LocalTM, "Hardware support for local memory
// transactions on GPU architectures", section 5.1.3: 8 objects, whose value is their weight; GA8 is `keys` of 8).
//
// A set of `keys` solutions (lgas............). A transaction takes two at random, replaces the worse one by the better
// one, and writes both, as in the paper. A guard can tell which one is better, because the value of a solution is its
// distance from the capacity times 256, plus 8 bits that say which objects are in. If the first is no worse (FAIL guard
// value(first) <= value(second)), it is copied; otherwise the else-operations copy the second. So every transaction
// writes, even when all solutions have become the best one.
//
// Invariant: each solution is one of the solutions at the start, and no worse than the one that it replaced. The best
// one of all is there.
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

class Genetic {
 public:
  static constexpr std::uint64_t kKeysMax = 256;

  // Requires: 2 <= solutions <= kKeysMax.
  Genetic(std::uint64_t solutions, std::uint64_t seed) : solutions_(solutions), random_(seed) {}

  // The solution at this place at the start.
  static std::int64_t initial(std::uint64_t place);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const std::uint64_t one = random_.below(solutions_);
      const std::uint64_t other = (one + 1 + random_.below(solutions_ - 1)) % solutions_;
      sink->begin(0, 0);
      const std::uint32_t first = sink->key(KeyName(kPrefix, one).view());
      const std::uint32_t second = sink->key(KeyName(kPrefix, other).view());
      sink->guard(GuardKind::less_equal, OnFalse::fail, first, 0, second);
      copy_to_both(sink, first, first, second);
      sink->begin_else();
      copy_to_both(sink, second, first, second);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr std::string_view kPrefix = "lgas";

  template <TransactionSink Sink>
  static void copy_to_both(Sink* sink, std::uint32_t better, std::uint32_t first, std::uint32_t second) {
    sink->op(OpKind::get, better, Operand::integer, 0);
    sink->op(OpKind::put, first, Operand::get, 0);
    sink->op(OpKind::put, second, Operand::get, 0);
  }

  std::uint64_t solutions_;
  Random random_;
};

}  // namespace kilokv::engine
