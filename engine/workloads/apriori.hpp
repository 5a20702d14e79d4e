// apriori: counts the supports of candidate item sets (Data Mining, KILO TM, section 5: Apriori of RMS-TM, whose
// transactions protect the insertion of candidates and the counting of their support; table 2: they read 16 words and
// write 6 on average, 174 and 109 at most).
//
// `keys` items. A transaction is one record of the data set: a basket of 2 to 15 distinct items that the distribution
// draws. Each item after the second comes with probability 0.6, so a basket has 6 pairs on average and 105 at most. The
// transaction gets the support of its items from the pass before (apit............), as apriori_gen() does. It adds 1
// to the support of each pair (appr............, the first item's number times `keys` plus the second's). An absent key
// counts as 0, so ADD also inserts a candidate. The paper reads and writes the counts. Here ADDs commute, and a
// strategy may use that.
//
// The number of baskets of each length (apln............) serves only the invariant.
// Invariant: the supports of all pairs sum to the number of pairs of all baskets. The supports of the items do not
// change.
//
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class Apriori {
 public:
  static constexpr std::uint64_t kKeysMax = 1 << 19;  // so that two items make the number of a key
  static constexpr std::size_t kLengthMax = 15;

  // Requires: 2 <= keys <= kKeysMax.
  Apriori(std::uint64_t keys, const DistributionOptions& distribution, std::uint64_t seed)
      : keys_(keys), items_(keys, distribution), random_(seed) {}

  static std::int64_t item_support(std::uint64_t item) {
    return static_cast<std::int64_t>(splitmix64(&item) % 1'000'000);
  }

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      fill_basket();
      sink->begin(0, 0);
      for (std::size_t item = 0; item < length_; ++item) {
        sink->op(OpKind::get, sink->key(KeyName("apit", basket_[item]).view()), Operand::integer, 0);
      }
      for (std::size_t first = 0; first < length_; ++first) {
        for (std::size_t second = first + 1; second < length_; ++second) {
          count(sink, {"appr", basket_[first] * keys_ + basket_[second]});
        }
      }
      count(sink, {"apln", length_});
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  template <TransactionSink Sink>
  static void count(Sink* sink, const KeyName& name) {
    sink->op(OpKind::add, sink->key(name.view()), Operand::integer, 1);
  }
  void fill_basket();

  std::uint64_t keys_;
  KeyDistribution items_;
  Random random_;
  std::array<std::uint64_t, kLengthMax> basket_{};  // ascending
  std::size_t length_ = 0;
};

}  // namespace kilokv::engine
