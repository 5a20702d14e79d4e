// `kilokv-engine-bench host-work`: measures what a batch on a device costs the host, as a ratio to `serial`.
#pragma once

#include <string>
#include <vector>

namespace kilokv::engine::bench {

// `arguments`: what comes after the word host-work. Returns the exit code; main.cpp lists them.
int host_work_main(const std::vector<std::string>& arguments);

}  // namespace kilokv::engine::bench
