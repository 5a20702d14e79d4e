#include "engine/stm/papers/gpustm.hpp"

#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {

const Strategy& gpustm_strategy() {
  static const Strategy kStrategy = locking_strategy<Gpustm<HostPlatform>, Gpustm<EmulatedPlatform>>(
      "gpustm",
      "Finds an order of its own (GPU-STM, for comparison): a transaction that waits for another one is tried up to "
      "100 times.",
      AutoChoice::never);
  return kStrategy;
}

}  // namespace kilokv::engine
