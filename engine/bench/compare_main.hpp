// The subcommand: kilokv-engine-bench compare.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// Returns the exit code, as main.cpp says. A claim of the paper that does not hold is a result, not a failure.
int compare_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
