// The subcommand `kilokv-engine-bench compare`.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// Returns the exit code; main.cpp lists them. A claim of a paper that does not hold is a result, not a failure.
int compare_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
