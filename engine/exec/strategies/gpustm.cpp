#include "engine/stm/papers/gpustm.hpp"

#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {

const Strategy& gpustm_strategy() {
  static const Strategy kStrategy = locking_strategy<Gpustm<HostPlatform>, Gpustm<EmulatedPlatform>>(
      "gpustm",
      "Finds an order of its own (GPU-STM, for comparison). A transaction whose WAIT guard is false is tried again "
      "at once, up to 100 times.",
      AutoChoice::never);
  return kStrategy;
}

}  // namespace kilokv::engine
