// Draws keys: uniform, or Zipf with any exponent.
//
// Zipf uses rejection-inversion (Hormann and Derflinger, "Rejection-inversion to generate variates from monotone
// discrete distributions", 1996). It is exact, takes O(1) expected time for a draw (about 1.1 rounds), and O(1) to set
// up. The method of Gray et al. (1994) that YCSB uses needs a sum over all keys first, and does not reach theta = 1.
//
// Scrambled: a bijection spreads the popular ranks over the key space (multiplication by a stride that is coprime with
// the number of keys), so that no two ranks get one key. Not scrambled: key 0 is the most popular.
//
// Thread safety: immutable; each thread passes its own Random.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine {

struct DistributionOptions {
  double theta = 0;  // the exponent; 0: uniform
  bool scrambled = true;
};

// Reads "uniform", "zipf:0.99" or "zipf-ordered:0.99" (not scrambled). Errors: INVALID_ARGUMENT for any other text.
Result<DistributionOptions> parse_distribution(std::string_view text);
std::string to_string(const DistributionOptions& options);

class KeyDistribution {
 public:
  // Requires: 1 <= keys <= 2^32, theta >= 0.
  KeyDistribution(std::uint64_t keys, const DistributionOptions& options);

  // Index of a key, in [0, keys).
  std::uint64_t draw(Random* random) const {
    if (theta_ == 0) return random->below(keys_);
    return place(draw_rank(random));
  }

 private:
  std::uint64_t draw_rank(Random* random) const;
  std::uint64_t place(std::uint64_t rank) const { return rank * stride_ % keys_; }
  double integral(double x) const;          // of x^-theta
  double integral_inverse(double y) const;  // of integral()

  std::uint64_t keys_;
  double theta_;
  std::uint64_t stride_ = 1;
  double integral_first_ = 0, integral_last_ = 0, shortcut_ = 0;
};

}  // namespace kilokv::engine
