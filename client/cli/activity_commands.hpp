// The commands that show what goes on in the server at present: top, hot, slow, sessions and connections.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "client/cli/commands.hpp"
#include "kilokv/activity.hpp"

namespace CLI {
class App;
}

namespace kilokv::client {

struct ActivityArguments {
  std::uint32_t limit = 0;    // entries; 0: as many as the server chooses
  std::optional<KeyUse> use;  // hot: only this one
  WatchArguments watch;
};

ExitCode run_top(const CommonOptions& common, const ActivityArguments& arguments);
ExitCode run_hot(const CommonOptions& common, const ActivityArguments& arguments);
ExitCode run_slow(const CommonOptions& common, const ActivityArguments& arguments);
ExitCode run_sessions(const CommonOptions& common, const ActivityArguments& arguments);
ExitCode run_connections(const CommonOptions& common, const ActivityArguments& arguments);

// Adds the commands to the program.
void add_activity(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action);
// The flags --watch and --count.
void add_watch(CLI::App* command, WatchArguments* watch);

}  // namespace kilokv::client
