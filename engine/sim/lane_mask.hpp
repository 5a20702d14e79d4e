// Sets of the simulator's lanes, one bit for each lane. Thread safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace kilokv::engine {

using LaneMask = std::uint64_t;

constexpr LaneMask lane_bit(std::uint32_t lane) { return LaneMask{1} << lane; }
constexpr LaneMask lane_bits(std::uint32_t begin, std::uint32_t count) {
  return (count == 64 ? ~LaneMask{0} : lane_bit(count) - 1) << begin;
}
constexpr std::uint32_t first_lane(LaneMask lanes) { return static_cast<std::uint32_t>(std::countr_zero(lanes)); }
constexpr std::uint32_t lane_count(LaneMask lanes) { return static_cast<std::uint32_t>(std::popcount(lanes)); }

}  // namespace kilokv::engine
