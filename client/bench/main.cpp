// kilokv-bench: the load tester. Flags: options.cpp; what a run does: run.hpp; exit codes: below and
// docs/load-tester.md.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <system_error>

#include "client/bench/options.hpp"
#include "client/bench/report.hpp"
#include "client/bench/run.hpp"
#include "client/command_line/arguments.hpp"
#include "client/command_line/error_report.hpp"
#include "client/command_line/interrupt.hpp"

namespace {

using kilokv::bench::RunReport;
namespace bench = kilokv::bench;
namespace interrupt = kilokv::client::interrupt;
namespace client = kilokv::client;

using client::ExitCode;

constexpr interrupt::Lines kInterruptLines = {
    "\nkilokv-bench: ended before anything was measured; nothing was checked\n",
    "\nkilokv-bench: ending early: waits for the last answers and checks the state; a second signal ends it at once\n",
    "\nkilokv-bench: ended by a second signal: no report, and nothing was checked\n"};

ExitCode report_error(const client::Error& error) {
  return client::report_error("kilokv-bench", "--give-up-after", error);
}

// A run may take hours, so it is checked before the run whether its files can be written. Prints what is wrong.
bool can_write(const char* flag, const std::string& path) {
  if (path.empty() || path == "-") return true;
  if (std::ofstream(path, std::ios::app)) return true;
  std::cerr << "kilokv-bench: " << flag << ": cannot write " << path << ": " << std::generic_category().message(errno)
            << "\n";
  return false;
}

bool write_json(const std::string& json, const std::string& path) {
  if (path.empty()) return true;
  if (path == "-") {
    std::cout << json << std::endl;
    return std::cout.good();
  }
  std::ofstream file(path);
  file << json << "\n";
  file.flush();
  if (!file) std::cerr << "kilokv-bench: --json: cannot write " << path << "\n";
  return file.good();
}

// Returns the exit code.
int execute(const bench::Flags& flags, bool sweep) {
  const auto runs = flags.runs();
  if (!runs) {
    std::cerr << "kilokv-bench: " << runs.error().message << "\n";
    return static_cast<int>(client::exit_code_before_sending(runs.error().code));
  }
  if (!can_write("--json", flags.json_path()) || !can_write("--history", runs->front().history_path)) {
    return static_cast<int>(ExitCode::other);
  }
  const auto progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::vector<RunReport> reports;
  ExitCode code = ExitCode::ok;
  for (const bench::RunOptions& options : *runs) {
    auto report = bench::run(options, progress);
    if (!report) {  // the runs before it can still be reported
      if (interrupt::received() == 0) code = report_error(report.error());
      break;
    }
    if (!report->failure.empty()) {
      std::cerr << "kilokv-bench: " << report->failure << "\n";
      code = ExitCode::not_done;
    }
    reports.push_back(std::move(*report));
    if (interrupt::received() != 0) break;
  }
  const int signal = interrupt::received();
  // An error is more important than an interrupt, so its exit code counts.
  const int ended = code == ExitCode::ok && signal != 0 ? interrupt::exit_code(signal) : static_cast<int>(code);
  if (reports.empty()) return ended;
  if (flags.json_path() != "-") std::cout << (sweep ? bench::sweep_table(reports) : bench::to_text(reports.front()));
  const std::string json = sweep ? bench::json_text(reports) : bench::json_text(reports.front());
  if (!write_json(json, flags.json_path())) return static_cast<int>(ExitCode::other);
  return ended;
}

}  // namespace

int main(int argc, char** argv) {
  const auto app = client::make_app(
      "Puts load on a KiloKV server, measures it, and checks the state that the load left.", "kilokv-bench");
  client::add_version_flag(app.get());
  app->require_subcommand(1);
  app->footer(
      "Exit codes: 0 good; 1 the invariant does not hold, or transactions were refused or stayed unknown;\n"
      "2 wrong usage; 3 the server refused the input; 4 no server, no answer in time, or a full server;\n"
      "5 any other error; 130 Ctrl-C, or 143 SIGTERM, ended the run: the report covers the time until then,\n"
      "and the state is checked.\n"
      "Example: kilokv-bench run --workload bank --batch-size 1024 --in-flight 8 --json -");
  CLI::App* run = client::add_subcommand(app.get(), "run", "Make one run");
  CLI::App* sweep = client::add_subcommand(
      app.get(), "sweep", "Make a run for each combination of values, from lists such as --batch-size 1,16,128");
  const bench::Flags run_flags(run, false);
  const bench::Flags sweep_flags(sweep, true);
  client::add_help_command(app.get());
  if (const auto code = client::parse_arguments(app.get(), argc, argv)) return *code;
  interrupt::install(kInterruptLines);
  return *run ? execute(run_flags, false) : execute(sweep_flags, true);
}
