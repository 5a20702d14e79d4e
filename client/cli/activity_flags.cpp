// The arguments of the commands that show what goes on (activity_commands.hpp), with their help.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "client/cli/activity_commands.hpp"
#include "client/cli/activity_text.hpp"
#include "client/command_line/arguments.hpp"

namespace kilokv::client {
namespace {

constexpr std::uint64_t kTopEveryUs = 2'000'000;
constexpr std::int64_t kLeastUs = 100'000;

using Run = ExitCode (*)(const CommonOptions&, const ActivityArguments&);

struct Command {
  const char* name;
  const char* description;
  const char* examples;
  std::uint32_t limit_max;
  const char* limit;  // what the limit bounds, and its default
  Run run;
};

}  // namespace

void add_watch(CLI::App* command, WatchArguments* watch) {
  const bool watches_anyway = watch->every_us > 0;  // without the flag
  CLI::Option* const every =
      command
          ->add_option("--watch", watch->every_us,
                       "show it again and again, each time after so long; on a terminal in the place of the one before")
          ->transform(duration(kLeastUs))
          ->option_text(watches_anyway ? "DURATION [2s]" : "DURATION, such as 2s");
  CLI::Option* const count = command
                                 ->add_option("--count", watch->count,
                                              std::string(watches_anyway ? "" : "with --watch: ") +
                                                  "how often it is shown; 0: until the program is ended")
                                 ->transform(whole_number())
                                 ->capture_default_str();
  if (!watches_anyway) count->needs(every);
}

void add_activity(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  static constexpr Command kCommands[] = {
      {"top", "Show the load of the server, its most used keys and slow transactions, again and again",
       "  kilokv top\n  kilokv top --watch 10s\n  kilokv --output json top --count 1", kHotKeysMax,
       "keys of each use; default 5", run_top},
      {"hot", "Show the keys that are used most: read, written, with failed guards, and waited for",
       "  kilokv hot\n  kilokv hot --by wait --limit 5\n  kilokv hot --watch 2s", kHotKeysMax,
       "keys of each use; default 20", run_hot},
      {"slow", "Show transactions that took longer than --slow-transaction of the server, and why, the latest first",
       "  kilokv slow\n  kilokv --output json slow --limit 1000", 1000, "transactions; default 100", run_slow},
      {"sessions", "Show the open sessions, those with the most bytes first", "  kilokv sessions --limit 20", 10000,
       "sessions; default 100", run_sessions},
      {"connections", "Show the open connections, those that have sent the most bytes first",
       "  kilokv connections --limit 20", 10000, "connections; default 100", run_connections}};
  for (const Command& added : kCommands) {
    const auto a = std::make_shared<ActivityArguments>();
    CLI::App* command = add_subcommand(app, added.name, added.description);
    command->footer(std::string("Examples:\n") + added.examples);
    command->add_option("--limit", a->limit, std::string("most ") + added.limit)
        ->transform(whole_number(1, added.limit_max))
        ->option_text("NUMBER");
    if (added.run == run_hot) {
      const std::map<std::string, KeyUse> uses = {{"read", KeyUse::read},
                                                  {"write", KeyUse::write},
                                                  {"failed_guard", KeyUse::failed_guard},
                                                  {"wait", KeyUse::wait}};
      command->add_option("--by", a->use, "show only this use of keys; default: all uses")
          ->transform(CLI::Transformer(uses))
          ->transform(one_of({"read", "write", "failed_guard", "wait"}))
          ->option_text("read|write|failed_guard|wait");
    }
    if (added.run == run_top) a->watch.every_us = kTopEveryUs;
    add_watch(command, &a->watch);
    command->callback([=, run = added.run] { *action = [=] { return run(*common, *a); }; });
  }
}

}  // namespace kilokv::client
