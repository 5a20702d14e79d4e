// `kilokv-engine-bench strategies`: lists the strategies and their settings.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// The tables of docs/configuration.md.
std::string strategies_markdown();

// `arguments`: what comes after the word strategies. Returns the exit code; main.cpp lists them.
int strategies_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
