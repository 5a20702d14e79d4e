// kilokv-engine-bench: measures the engine alone, without a server. It prints the throughput of workloads, the
// referee's verdict (--verify), or the ratio to a hand-written loop (--baseline). `compare` compares the strategies.
// `validate` compares the ways to check a large read set. `host-work` measures what a batch on a device costs the host.
// `strategies` lists the strategies and their settings.
//
// Exit codes: 0: done, and everything that was checked holds. 1: a check failed, or the run could not be done. 2: wrong
// usage.

#include <cstdio>
#include <string>
#include <vector>

#include "engine/bench/compare_main.hpp"
#include "engine/bench/hand_written.hpp"
#include "engine/bench/host_work_main.hpp"
#include "engine/bench/machine.hpp"
#include "engine/bench/options.hpp"
#include "engine/bench/report.hpp"
#include "engine/bench/runner.hpp"
#include "engine/bench/strategies_main.hpp"
#include "engine/bench/validate_main.hpp"

namespace {

using namespace kilokv;
using namespace kilokv::engine;
using namespace kilokv::engine::bench;

constexpr int kExitFailed = 1, kExitUsage = 2;

int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "kilokv-engine-bench: %s\n", status.message().c_str());
  return exit_code;
}

void print(const BenchOptions& options, const std::string& table, const std::string& json) {
  std::fputs(table.c_str(), options.json ? stderr : stdout);
  if (options.json) std::fputs(json.c_str(), stdout);
}

int run_baseline(const BenchOptions& options) {
  const auto report = measure_baseline(options);
  if (!report.ok()) return complain(report.status(), kExitFailed);
  print(options, baseline_table(options, *report), baseline_json(options, *report));
  return 0;
}

int run_workloads(const BenchOptions& options) {
  std::vector<WorkloadReport> reports;
  const std::vector<WorkloadOptions> workloads = selected_workloads(options);
  for (const WorkloadOptions& workload : workloads) {
    // Shows where a run hangs to the person who ends it.
    std::fprintf(stderr, "[%zu/%zu] %s\n", reports.size() + 1, workloads.size(), workload.name.c_str());
    auto run = WorkloadRun::create(options, workload);
    if (!run.ok()) return complain(run.status(), kExitFailed);
    Status status = (*run)->run();
    if (status.ok()) status = (*run)->check_invariant();
    if (!status.ok()) {
      std::fprintf(stderr, "workload %s, seed %llu\n", workload.name.c_str(),
                   static_cast<unsigned long long>(workload.seed));
      return complain(status, kExitFailed);
    }
    reports.push_back((*run)->report());
  }
  print(options, workload_table(options, reports), workload_json(options, reports));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "compare") return compare_main({argv + 2, argv + argc});
  if (argc > 1 && std::string(argv[1]) == "validate") return validate_main({argv + 2, argv + argc});
  if (argc > 1 && std::string(argv[1]) == "host-work") return host_work_main({argv + 2, argv + argc});
  if (argc > 1 && std::string(argv[1]) == "strategies") return strategies_main({argv + 2, argv + argc});
  BenchOptions options;
  const std::vector<Flag> flags = bench_flags(&options);
  Status status = parse_flags(flags, std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok() && options.help) {
    std::printf(
        "Usage: kilokv-engine-bench [FLAGS]\n       kilokv-engine-bench compare [FLAGS]\n"
        "       kilokv-engine-bench validate [FLAGS]\n       kilokv-engine-bench host-work [FLAGS]\n"
        "       kilokv-engine-bench strategies [FLAGS]\nRuns workloads on the engine alone, in this process, without a "
        "server.\n\n%s\n%s"
        "\nWorkloads, what --keys counts, and the presets small and paper:\n\n%s",
        describe_flags(flags).c_str(), describe_strategies().c_str(), Workload::describe_sizes(false).c_str());
    return 0;
  }
  if (status.ok() && options.version) {
    std::printf("kilokv-engine-bench %s (commit %s)\n", version().c_str(), this_machine().commit.c_str());
    return 0;
  }
  if (status.ok()) status = check_options(options);
  if (!status.ok()) return complain(status, kExitUsage);
  if (!options.baseline) return run_workloads(options);
  options.keys = selected_workloads(options).front().keys;
  return run_baseline(options);
}
