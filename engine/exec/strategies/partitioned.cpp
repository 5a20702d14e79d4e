#include "engine/exec/run/partitioned_host.hpp"
#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

// The engine runs it itself (exec/run/partitioned_host.hpp).
const Strategy& partitioned_strategy() {
  static const Strategy kStrategy{.name = "partitioned",
                                  .summary =
                                      "Runs a batch on several threads, each of which decides about a part of the "
                                      "records. The results are those of serial, bit for bit.",
                                  .traits = {.auto_choice = AutoChoice::always},
                                  .settings = {},
                                  .counters = partitioned_counters()};
  return kStrategy;
}

}  // namespace kilokv::engine
