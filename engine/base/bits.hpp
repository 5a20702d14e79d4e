// Bits of a word, in code that runs on devices, too: <bit> is for the host.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"

namespace kilokv::engine {

KILOKV_HOST_DEVICE constexpr std::uint32_t bits_in(std::uint32_t bits) {
  std::uint32_t count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}
// Requires: some bit is set.
KILOKV_HOST_DEVICE constexpr std::uint32_t lowest_bit(std::uint32_t bits) { return bits_in((bits & -bits) - 1); }

}  // namespace kilokv::engine
