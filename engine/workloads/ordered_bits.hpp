// A set of numbers below a bound. It can find the next member above a number, and the next one below. The set is a
// bitmap with a bit for each number. Above the bitmap there are levels of smaller bitmaps. Each of their bits says
// whether one 64-bit word of the level below is not 0. The memory is fixed: a bit for each number, and 1/63 more. There
// is a level for each factor of 64 in the bound, and an operation visits a level at most twice.
// Thread safety: one thread for each object.
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

  std::vector<std::vector<std::uint64_t>> levels_;  // bit b of level i + 1: word b of level i is not 0
};

}  // namespace kilokv::engine
