// A run's report as a JSON value, for the reports that hold those of runs. Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "client/bench/run.hpp"

namespace kilokv::bench {

nlohmann::ordered_json to_json(const RunReport& report);

}  // namespace kilokv::bench
