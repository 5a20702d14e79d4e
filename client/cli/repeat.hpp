// Shows something again and again, until the program is ended: --watch. Thread safety: none.
#pragma once

#include <functional>

#include "client/cli/commands.hpp"

namespace kilokv::client {

// Calls `show` at the begin, and then at each interval, until it does not return ok, or as often as `watch` says. On a
// terminal, each text takes the place of the one before. Elsewhere, an empty line is between them. JSON has neither.
// A call that takes longer than the interval makes the next one late.
ExitCode show_repeatedly(const CommonOptions& common, const WatchArguments& watch,
                         const std::function<ExitCode()>& show);

}  // namespace kilokv::client
