// `kilokv-engine-bench strategies`: which strategies there are, and what settings they have.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// The tables of docs/configuration.md.
std::string strategies_markdown();

// `arguments`: after the word strategies. Returns the exit code, as main has them.
int strategies_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
