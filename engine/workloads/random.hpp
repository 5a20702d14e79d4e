// The random source of generators and tests: xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64 as its
// authors advise. The same seed gives the same numbers on every machine. Not for secrets. Thread safety: one thread for
// each object.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace kilokv::engine {

// One step of splitmix64: advances `state` and returns a well-mixed number. It also mixes seeds.
constexpr std::uint64_t splitmix64(std::uint64_t* state) {
  *state += 0x9E3779B97F4A7C15u;
  std::uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = splitmix64(&seed);
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), by multiply and shift; the bias is below bound / 2^32. Requires: 1 <= bound <= 2^32.
  std::uint64_t below(std::uint64_t bound) { return ((next() >> 32) * bound) >> 32; }
  // Uniform in [low, high]. Requires: high - low < 2^32.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  // Uniform in [0, 1), 53 bits.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with this probability.
  bool chance(double probability) { return unit() < probability; }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace kilokv::engine
