// The commands of kilokv that make, check and restore backups: their arguments, with help. A build without the server
// has none of them.
#pragma once

#include <functional>

#include "client/cli/commands.hpp"
#include "client/command_line/cli11.hpp"

namespace kilokv::client {

// Adds the commands. The one that is chosen sets `action`.
void add_backup_commands(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action);

}  // namespace kilokv::client
