// What a measurement was made with: hardware, compiler, commit.
#pragma once

#include <string>

#include "engine/bench/json.hpp"

namespace kilokv::engine::bench {

struct Machine {
  std::string cpu;  // model name, or "unknown"
  unsigned cores = 0;
  std::string compiler;
  std::string build_type;
  std::string commit;  // of the sources, with -dirty if they were changed; or "unknown"
};

Machine this_machine();
// The version of the project, such as 0.1.0.
std::string version();
// Writes this machine as the object "machine" of a document.
void write_machine(JsonWriter* json);

}  // namespace kilokv::engine::bench
