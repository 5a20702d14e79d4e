#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

// The engine runs `serial` itself, on the records in place (stm/serial.hpp).
const Strategy& serial_strategy() {
  static const Strategy kStrategy{
      .name = "serial",
      .summary = "Runs the transactions one by one, by precedence and then by arrival. It is the specification.",
      .traits = {.auto_choice = AutoChoice::always}};
  return kStrategy;
}

}  // namespace kilokv::engine
