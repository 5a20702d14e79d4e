#include "engine/stm/papers/lock.hpp"

#include "engine/exec/papers/ticketed_strategy.hpp"

namespace kilokv::engine {

const Strategy& lock_strategy() {
  static const Strategy kStrategy = locking_strategy<Locking<HostPlatform>, Locking<EmulatedPlatform>>(
      "lock", "Finds an order of its own. Every transaction first locks all records that it may touch.",
      AutoChoice::never);
  return kStrategy;
}

}  // namespace kilokv::engine
