// A set of numbers below a bound, with neighbours in both directions. It is a bitmap, with bitmaps above it that tell
// which words are not empty. The memory is fixed (a bit for each number, and 1/63 more). An operation takes a step for
// each factor of 64 in the bound. Thread safety: one thread for each object.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kilokv::engine {

class OrderedBits {
 public:
  // Requires: bound >= 1.
  explicit OrderedBits(std::uint64_t bound) {
    do {
      bound = (bound + 63) / 64;
      levels_.emplace_back(bound, 0);
    } while (bound > 1);
  }

  bool contains(std::uint64_t number) const { return (levels_[0][number / 64] >> (number % 64) & 1) != 0; }

  void insert(std::uint64_t number) {
    for (auto& level : levels_) {
      level[number / 64] |= bit(number);
      number /= 64;
    }
  }

  void erase(std::uint64_t number) {
    for (auto& level : levels_) {
      level[number / 64] &= ~bit(number);
      if (level[number / 64] != 0) return;
      number /= 64;
    }
  }

  // The least member above `number`. Requires: there is one.
  std::uint64_t after(std::uint64_t number) const {
    std::size_t level = 0;
    std::uint64_t above = 0;
    for (;; ++level, number /= 64) {
      above = levels_[level][number / 64] & ~(bit(number) | (bit(number) - 1));
      if (above != 0) break;
    }
    number = number / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(above));
    while (level-- > 0) number = number * 64 + static_cast<std::uint64_t>(std::countr_zero(levels_[level][number]));
    return number;
  }

  // The greatest member below `number`. Requires: there is one.
  std::uint64_t before(std::uint64_t number) const {
    std::size_t level = 0;
    std::uint64_t below = 0;
    for (;; ++level, number /= 64) {
      below = levels_[level][number / 64] & (bit(number) - 1);
      if (below != 0) break;
    }
    number = number / 64 * 64 + static_cast<std::uint64_t>(std::bit_width(below) - 1);
    while (level-- > 0) number = number * 64 + static_cast<std::uint64_t>(std::bit_width(levels_[level][number]) - 1);
    return number;
  }

 private:
  static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

  std::vector<std::vector<std::uint64_t>> levels_;  // a bit of level i + 1: that word of level i is not 0
};

}  // namespace kilokv::engine
