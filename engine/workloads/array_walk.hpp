// array-walk: loads random elements of a long array, and stores few (the transactional array walk of Tarlovskyy,
// "Accelerating Validation in Software Transactional Memory", 2020, sections 5 and 6.2: random element accesses with no
// computation in between; the GPU validates read sets of 250k elements and more faster).
//
// `keys` elements (arwk............); element i has the value i at the start. A transaction gets `operations` elements
// that the distribution draws, at least two. The first two differ. The transaction swaps these two with two PUTs of
// what it read. read_only_share of the transactions only get. A transaction has at most 1,024 operations, so its read
// set is far smaller than the paper's 250k elements. So many elements take many transactions here.
//
// Invariant: the values are those of the start, each exactly once.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class ArrayWalk {
 public:
  static constexpr std::uint32_t kOperationsMax = 1022;  // and two PUTs

  // Requires: keys >= 2, operations <= kOperationsMax.
  ArrayWalk(std::uint64_t keys, const DistributionOptions& distribution, std::uint32_t operations,
            double read_only_share, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      const std::uint64_t one = elements_.draw(&random_);
      const std::uint32_t first = get(sink, one), second = get(sink, draw_other(one));
      for (std::uint32_t walked = 2; walked < operations_; ++walked) get(sink, elements_.draw(&random_));
      if (read_only_share_ == 0 || !random_.chance(read_only_share_)) {
        sink->op(OpKind::put, first, Operand::get, 1);
        sink->op(OpKind::put, second, Operand::get, 0);
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr std::string_view kPrefix = "arwk";

  template <TransactionSink Sink>
  static std::uint32_t get(Sink* sink, std::uint64_t element) {
    const std::uint32_t key = sink->key(KeyName(kPrefix, element).view());
    sink->op(OpKind::get, key, Operand::integer, 0);
    return key;
  }
  std::uint64_t draw_other(std::uint64_t than) {
    const std::uint64_t element = elements_.draw(&random_);
    return element != than ? element : (than + 1) % keys_;
  }

  std::uint64_t keys_;
  std::uint32_t operations_;
  double read_only_share_;
  KeyDistribution elements_;
  Random random_;
};

}  // namespace kilokv::engine
