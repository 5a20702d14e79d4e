#include "engine/stm/papers/prstm.hpp"

#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {

const Strategy& prstm_strategy() {
  static const Strategy kStrategy = locking_strategy<Prstm<HostPlatform>, Prstm<EmulatedPlatform>>(
      "prstm",
      "Finds an order of its own (PR-STM). Priority decides conflicts. A transaction whose WAIT guard is false is "
      "postponed.",
      AutoChoice::any);
  return kStrategy;
}

}  // namespace kilokv::engine
