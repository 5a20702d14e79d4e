// The status as JSON, for the page /status. It has the fields that `kilokv --output json status` prints, by the same
// names (docs/server-status.md). Thread safety: a pure function.
#pragma once

#include <string>

#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::server {

std::string status_json(const v1::StatusResponse& status);

}  // namespace kilokv::server
