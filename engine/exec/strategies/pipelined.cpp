#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

// The engine runs it itself. One thread runs the transactions as `serial` does. Another one finds keys ahead for it,
// and then keeps the books of what has run.
const Strategy& pipelined_strategy() {
  static const Strategy kStrategy{.name = "pipelined",
                                  .summary =
                                      "Runs the transactions as serial does, on one thread. Other threads find keys "
                                      "ahead, and make the log.",
                                  .traits = {.auto_choice = AutoChoice::always}};
  return kStrategy;
}

}  // namespace kilokv::engine
