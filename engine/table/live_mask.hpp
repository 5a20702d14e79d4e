// Which keys of a chunk of the ordered index are live, by their positions: a search for live keys skips the others.
//
// Thread safety: none.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace kilokv::engine {

class LiveMask {
 public:
  static constexpr std::size_t kPositions = 128;

  bool has(std::size_t position) const { return (words_[position / 64] >> (position % 64) & 1) != 0; }
  void set(std::size_t position, bool live) {
    const std::uint64_t bit = std::uint64_t{1} << (position % 64);
    words_[position / 64] = live ? words_[position / 64] | bit : words_[position / 64] & ~bit;
  }
  std::uint32_t count() const {
    return static_cast<std::uint32_t>(std::popcount(words_[0]) + std::popcount(words_[1]));
  }
  // The first live position from `position` on; kPositions: there is none.
  std::size_t next(std::size_t position) const {
    for (; position < kPositions; position = (position / 64 + 1) * 64) {
      const std::uint64_t rest = words_[position / 64] >> (position % 64);
      if (rest != 0) return position + static_cast<std::size_t>(std::countr_zero(rest));
    }
    return kPositions;
  }
  // The last live position before `position`; kPositions: there is none. Requires: position <= kPositions.
  std::size_t previous(std::size_t position) const {
    while (position > 0) {
      const std::size_t word = (position - 1) / 64;
      const std::uint64_t rest = words_[word] << (63 - (position - 1) % 64);
      if (rest != 0) return position - 1 - static_cast<std::size_t>(std::countl_zero(rest));
      position = word * 64;
    }
    return kPositions;
  }

  // A key that is not live comes to this position, and those from it on move up. Requires: the last position is not
  // live.
  void insert(std::size_t position) {
    const auto [below, above] = split(position);
    words_ = {below[0] | above[0] << 1, below[1] | above[1] << 1 | above[0] >> 63};
  }
  // The key at this position leaves. Requires: it is not live.
  void erase(std::size_t position) {
    const auto [below, above] = split(position);
    words_ = {below[0] | above[0] >> 1 | above[1] << 63, below[1] | above[1] >> 1};
  }
  // The positions from `keep` on leave. Returns them, from position 0 on.
  LiveMask cut(std::size_t keep) {
    LiveMask upper;
    for (std::size_t position = next(keep); position < kPositions; position = next(position + 1)) {
      upper.set(position - keep, true);
    }
    words_ = split(keep).first;
    return upper;
  }

 private:
  using Words = std::array<std::uint64_t, 2>;
  // The positions below `position`, and the others; each where it was.
  std::pair<Words, Words> split(std::size_t position) const {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    const auto lower = [](std::size_t bits) { return bits >= 64 ? kAll : (std::uint64_t{1} << bits) - 1; };
    const Words below = {words_[0] & lower(position), position <= 64 ? 0 : words_[1] & lower(position - 64)};
    return {below, {words_[0] & ~below[0], words_[1] & ~below[1]}};
  }

  Words words_{};
};

}  // namespace kilokv::engine
