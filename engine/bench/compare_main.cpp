#include "engine/bench/compare_main.hpp"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>

#include "engine/bench/compare_page.hpp"
#include "engine/bench/compare_report.hpp"
#include "engine/bench/output_file.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr int kExitFailed = 1, kExitUsage = 2;
constexpr const char* kUsage =
    "Usage: kilokv-engine-bench compare [FLAGS]\n"
    "Compares strategies on the figures of papers, or along sweeps. Every engine is verified. The report says which\n"
    "claims hold. Tables go to the standard output, or to the error output if a document or page goes to the\n"
    "standard output. Progress goes to the error output.\n\n";

int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "kilokv-engine-bench compare: %s\n", status.message().c_str());
  return exit_code;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string command_of(const std::vector<std::string>& arguments) {
  std::string command = "kilokv-engine-bench compare";
  for (const std::string& argument : arguments) command += " " + argument;
  return command;
}

// Replaces the file as a whole, so that a reader never finds a part of it.
Status replace_file(const std::string& path, const std::string& text) {
  const std::string whole = path + ".new";
  if (Status status = write_file(whole, text); !status.ok()) return status;
  if (std::rename(whole.c_str(), path.c_str()) == 0) return {};
  return {StatusCode::unavailable, ErrorReason::failed, "cannot write " + path};
}

Status write_page(const std::string& path, const std::string& document) {
  const auto page = compare_page(document);
  return page.ok() ? write_file(path, *page) : page.status();
}

Status page_from(const CompareOptions& options) {
  std::ifstream file(options.from, std::ios::binary);
  if (!file) return {StatusCode::not_found, ErrorReason::failed, "--from: cannot read " + options.from};
  return write_page(options.html, std::string(std::istreambuf_iterator<char>(file), {}));
}

// Computes ratios and claims of what was measured so far.
void conclude(const Stopwatch& watch, CompareReport* report) {
  report->ratios = ratios_of(report->options.figures, report->results);
  report->claims = claims_of(report->options.figures, report->results, report->ratios);
  report->seconds = watch.seconds();
}

// Writes the document to its file after each panel, so that a run that is ended early leaves the panels that it has
// measured.
Status measure(CompareReport* report) {
  const Stopwatch watch;
  const std::vector<ComparePanel> panels = compare_panels(report->options);
  for (const ComparePanel& panel : panels) {
    const std::size_t number = report->results.size() + 1;
    auto points = measure_panel(report->options, panel, [&](const ComparePanel& of, const ComparePoint& point) {
      std::fprintf(stderr, "[%zu/%zu] %s", number, panels.size(), point_line(of, point).c_str());
    });
    if (!points.ok()) return points.status();
    report->results.push_back({panel, std::move(*points)});
    conclude(watch, report);
    if (report->options.json.empty() || report->options.json == kStandardOutput) continue;
    if (Status status = replace_file(report->options.json, compare_json(*report)); !status.ok()) return status;
  }
  return {};
}

Status run_compare(CompareReport* report) {
  const CompareOptions& options = report->options;
  if (Status status = measure(report); !status.ok()) return status;
  const bool output_is_taken = options.json == kStandardOutput || options.html == kStandardOutput;
  std::fputs(compare_table(*report).c_str(), output_is_taken ? stderr : stdout);
  const std::string document = compare_json(*report);
  Status status;
  if (options.json == kStandardOutput) status = write_file(options.json, document);
  if (status.ok() && !options.html.empty()) status = write_page(options.html, document);
  return status;
}

Status check(CompareOptions* options) {
  if (Status status = complete(options); !status.ok()) return status;
  if (!options->html.empty()) {
    if (Status status = can_write_page(); !status.ok()) return status;
  }
  if (Status status = try_file("--json", options->json); !status.ok()) return status;
  return try_file("--html", options->html);
}

}  // namespace

int compare_main(const std::vector<std::string>& arguments) {
  CompareReport report;
  report.command = command_of(arguments);
  report.date = now_utc();
  const std::vector<Flag> flags = compare_flags(&report.options);
  Status status = parse_flags(flags, arguments, &report.options.given);
  if (status.ok() && report.options.help) {
    std::printf("%s%s", kUsage, describe_flags(flags).c_str());
    return 0;
  }
  if (status.ok()) status = check(&report.options);
  if (!status.ok()) return complain(status, kExitUsage);
  status = report.options.from.empty() ? run_compare(&report) : page_from(report.options);
  return status.ok() ? 0 : complain(status, kExitFailed);
}

}  // namespace kilokv::engine::bench
