// The epochs behind which an executor starts to count; not 0 only in tests of what happens when epochs run out.
#pragma once

#include <cstdint>

namespace kilokv::engine {

struct FirstEpochs {
  std::uint32_t reservations = 0;
  std::uint32_t table = 0;  // of a device, each time that it is built
};

}  // namespace kilokv::engine
