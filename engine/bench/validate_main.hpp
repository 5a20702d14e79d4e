// `kilokv-engine-bench validate`: what checks a large read set fastest.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// `arguments`: behind the word validate. Returns the exit code, as main has them.
int validate_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
