// Functions on the bits of a word. They also run on devices. Those of <bit> are for the host only.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"

namespace kilokv::engine {

// The number of bits that are set.
KILOKV_HOST_DEVICE constexpr std::uint32_t bits_in(std::uint32_t bits) {
  std::uint32_t count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}
// The index of the lowest bit that is set. Requires: at least one bit is set.
KILOKV_HOST_DEVICE constexpr std::uint32_t lowest_bit(std::uint32_t bits) { return bits_in((bits & -bits) - 1); }

}  // namespace kilokv::engine
