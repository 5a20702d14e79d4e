// kilokv-bench: the load tester. Flags: options.cpp; what a run does: run.hpp; exit codes: below and
// docs/load-tester.md.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "client/bench/options.hpp"
#include "client/bench/report.hpp"
#include "client/bench/run.hpp"

namespace {

using kilokv::bench::RunReport;
namespace bench = kilokv::bench;
namespace client = kilokv::client;

enum ExitCode { kGood = 0, kBadRun = 1, kUsage = 2, kNoServer = 4, kOther = 5 };

int report_error(const client::Error& error) {
  std::cerr << "kilokv-bench: " << client::to_string(error.code) << ": " << error.message << "\n";
  switch (error.code) {
    case client::ErrorCode::invalid_argument: return kUsage;
    case client::ErrorCode::unavailable:
    case client::ErrorCode::deadline_exceeded: return kNoServer;
    default: return kOther;
  }
}

bool write_json(const nlohmann::ordered_json& json, const std::string& path) {
  if (path.empty()) return true;
  if (path == "-") {
    std::cout << json.dump(2) << std::endl;
    return std::cout.good();
  }
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.flush();
  if (!file) std::cerr << "kilokv-bench: cannot write " << path << "\n";
  return file.good();
}

int execute(const bench::Flags& flags, bool sweep) {
  const auto runs = flags.runs();
  if (!runs) return report_error(runs.error());
  const auto progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::vector<RunReport> reports;
  auto json = nlohmann::ordered_json::array();
  int code = kGood;
  for (const bench::RunOptions& options : *runs) {
    auto report = bench::run(options, progress);
    if (!report) {  // the runs before it are still worth a report
      code = report_error(report.error());
      break;
    }
    if (!report->failure.empty()) {
      std::cerr << "kilokv-bench: " << report->failure << "\n";
      code = kBadRun;
    }
    json.push_back(bench::to_json(*report));
    reports.push_back(std::move(*report));
  }
  if (reports.empty()) return code;
  if (flags.json_path() != "-") std::cout << (sweep ? bench::sweep_table(reports) : bench::to_text(reports.front()));
  if (!write_json(sweep ? json : json.front(), flags.json_path())) return kOther;
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Puts load on a KiloKV server, measures it, and checks that the server kept its books.");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 good; 1 the invariant does not hold, or transactions were refused or stayed unknown;\n"
      "2 usage; 4 no server; 5 anything else.\n"
      "Example: kilokv-bench run --workload bank --batch-size 1024 --in-flight 8 --json -");
  CLI::App* run = app.add_subcommand("run", "One run");
  CLI::App* sweep = app.add_subcommand("sweep", "A run for each combination of lists such as --batch-size 1,16,128");
  const bench::Flags run_flags(run, false);
  const bench::Flags sweep_flags(sweep, true);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kGood : kUsage;
  }
  return *run ? execute(run_flags, false) : execute(sweep_flags, true);
}
