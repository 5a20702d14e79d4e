// The arguments of kilokv export and kilokv import, with their help.
#pragma once

#include <functional>

#include "client/cli/commands.hpp"
#include "client/command_line/cli11.hpp"

namespace kilokv::client {

// Adds both commands. The one that the command line chooses writes what it does to `action`. Requires: `common` and
// `action` outlive `app`.
void add_bulk(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action);

}  // namespace kilokv::client
