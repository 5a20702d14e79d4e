// Core files of this process. Thread safety: main() only, before other threads run.
#pragma once

#include "engine/base/status.hpp"

namespace kilokv::server {

// Without `allowed`, a crash leaves no memory of the process: the size of a core file is limited to nothing. A program
// of the system that gets cores by a pipe knows no such limit, so a core has no memory in it either. With `allowed`, a
// core may be as large as the system lets it be. Errors: INTERNAL if the system refuses that.
Status set_core_dumps(bool allowed);

}  // namespace kilokv::server
