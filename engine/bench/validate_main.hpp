// `kilokv-engine-bench validate`: measures which way to check a large read set is the fastest.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// `arguments`: what comes after the word validate. Returns the exit code; main.cpp lists them.
int validate_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
