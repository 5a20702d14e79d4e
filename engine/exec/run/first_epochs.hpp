// The epochs after which an executor starts to count. They are 0, except in tests of what happens when epochs run out.
#pragma once

#include <cstdint>

namespace kilokv::engine {

struct FirstEpochs {
  std::uint32_t reservations = 0;
  std::uint32_t table = 0;  // of a device's table, each time that it is built
};

}  // namespace kilokv::engine
