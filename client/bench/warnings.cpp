// Role: see warnings.hpp.
#include "client/bench/warnings.hpp"

#include <algorithm>

#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

std::string percent(double share) { return fixed(share * 100, 0) + "%"; }

Warning client_cpu(std::string text) { return {"client_cpu", "the load tester may be the limit: " + std::move(text)}; }

void warn_of_client(const CpuUse& cpu, std::vector<Warning>* warnings) {
  if (cpu.client >= kClientShareMax) {
    warnings->push_back(client_cpu("it used " + percent(cpu.client) + " of its cores"));
  } else if (cpu.busiest_thread >= kThreadShareMax) {
    warnings->push_back(client_cpu("one of its threads used " + percent(cpu.busiest_thread) +
                                   " of a core; more --connections use more threads"));
  } else if (cpu.place != ServerPlace::elsewhere && cpu.idle < kIdleShareMin &&
             cpu.client_machine >= kClientBesideMax) {
    warnings->push_back(client_cpu("it took " + percent(cpu.client_machine) +
                                   " of the machine, the server runs there too, and only " + percent(cpu.idle) +
                                   " was idle"));
  }
}

void warn_of_in_flight(const RunReport& report, std::vector<Warning>* warnings) {
  if (report.options.rate_per_s > 0) {
    const double full = full_share(report);
    if (full < kFullShareMax) return;
    warnings->push_back({"in_flight", "the number in flight is the limit: for " + percent(full) +
                                          " of the time, a request was due and all --in-flight were in flight"});
    return;
  }
  const double filled = filled_share(report);
  if (report.measured.counts.answered() == 0) return;
  if (filled < kFilledShareMin) {
    warnings->push_back({"not_filled", "the load tester did not keep --in-flight requests in flight: on average, " +
                                           percent(filled) + " of them were"});
  } else if (filled >= kFilledShareLimit && report.cpu.known && report.cpu.place == ServerPlace::here &&
             report.cpu.idle >= kIdleShareLimit) {
    warnings->push_back(
        {"in_flight", "the number in flight is the limit: all --in-flight requests were in flight, and " +
                          percent(report.cpu.idle) + " of the machine was idle"});
  }
}

}  // namespace

double filled_share(const RunReport& report) {
  const RunOptions& options = report.options;
  if (options.rate_per_s > 0 || report.measured_us <= 0) return 0;
  const double capacity = static_cast<double>(options.connections) * options.in_flight * options.batch_size;
  const double per_us =
      static_cast<double>(report.measured.counts.answered()) / static_cast<double>(report.measured_us);
  return per_us * report.measured.latency_us.mean() / capacity;
}

double full_share(const RunReport& report) {
  const RunOptions& options = report.options;
  if (options.rate_per_s <= 0) return 0;
  const auto whole_us = static_cast<double>(options.warmup_us + report.measured_us) * options.connections;
  return whole_us > 0 ? static_cast<double>(report.whole.full_us) / whole_us : 0;
}

std::vector<Warning> warnings_of(const RunReport& report) {
  std::vector<Warning> warnings;
  const CpuUse& cpu = report.cpu;
  if (cpu.known) warn_of_client(cpu, &warnings);
  warn_of_in_flight(report, &warnings);
  if (cpu.known && cpu.others + cpu.steal >= kForeignShareMax) {
    warnings.push_back({"machine_busy", "this machine is busy with other work: other processes used " +
                                            percent(cpu.others) + " of it, and " + percent(cpu.steal) +
                                            " was stolen by other machines on the same host"});
  }
  return warnings;
}

std::vector<std::string> merged_warnings(const std::vector<RunReport>& reports) {
  struct Merged {
    std::string code, text;
    std::size_t runs = 0;
  };
  std::vector<Merged> merged;
  for (const RunReport& report : reports) {
    for (Warning& warning : warnings_of(report)) {
      const auto known =
          std::find_if(merged.begin(), merged.end(), [&](const Merged& one) { return one.code == warning.code; });
      if (known != merged.end()) {
        ++known->runs;
      } else {
        merged.push_back({warning.code, warning.text, 1});
      }
    }
  }
  std::vector<std::string> lines;
  for (const Merged& one : merged) {
    std::string line = one.text;
    if (reports.size() > 1) {
      line += " (" + grouped(one.runs) + " of " + grouped(reports.size()) + " runs; the numbers are of the first one)";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace kilokv::bench
