// kilokv-bench: the load tester. Flags: options.cpp; what a run does: run.hpp; exit codes: below and
// docs/load-tester.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "client/bench/compare.hpp"
#include "client/bench/html_report.hpp"
#include "client/bench/options.hpp"
#include "client/bench/report.hpp"
#include "client/bench/run.hpp"
#include "client/bench/tune_report.hpp"
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

constexpr interrupt::Lines kTuneInterruptLines = {"\nkilokv-bench: ended before anything was measured\n",
                                                  "\nkilokv-bench: ending early: waits for the last answers; a second "
                                                  "signal ends it at once, and leaves the folder of "
                                                  "its server\n",
                                                  "\nkilokv-bench: ended by a second signal: no report\n"};

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

// Writes what the flag names: `text` ends with a newline.
bool write(const char* flag, const std::string& text, const std::string& path) {
  if (path.empty()) return true;
  if (path == "-") {
    std::cout << text << std::flush;
    return std::cout.good();
  }
  std::ofstream file(path);
  file << text;
  file.flush();
  if (!file) std::cerr << "kilokv-bench: " << flag << ": cannot write " << path << "\n";
  return file.good();
}

// The reports of run, sweep and tune go to the files that the flags name. People read the text, unless standard output
// has another use.
struct Reports {
  std::string text, json, csv, html;
};

struct Output {
  const char* flag;
  const std::string& path;
  std::string Reports::*report;
};

std::vector<Output> outputs_of(const bench::Flags& flags) {
  return {{"--json", flags.json_path(), &Reports::json},
          {"--csv", flags.csv_path(), &Reports::csv},
          {"--html", flags.html_path(), &Reports::html}};
}

bool is_standard_output(const Output& output) { return output.path == "-"; }

bool write_reports(const bench::Flags& flags, const Reports& reports) {
  const std::vector<Output> outputs = outputs_of(flags);
  if (std::none_of(outputs.begin(), outputs.end(), is_standard_output)) std::cout << reports.text << std::flush;
  bool has_all = true;
  for (const Output& output : outputs) has_all = write(output.flag, reports.*output.report, output.path) && has_all;
  return has_all;
}

bool can_write_reports(const bench::Flags& flags) {
  const std::vector<Output> outputs = outputs_of(flags);
  const auto first = std::find_if(outputs.begin(), outputs.end(), is_standard_output);
  const auto second = first == outputs.end() ? first : std::find_if(first + 1, outputs.end(), is_standard_output);
  if (second != outputs.end()) {
    std::cerr << "kilokv-bench: " << first->flag << " and " << second->flag
              << " cannot both be -: name a file for one of them\n";
    return false;
  }
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const Output& output) { return can_write(output.flag, output.path); });
}

// The date and the time of this moment, such as 2026-11-29 14:05:10 UTC.
std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

void tell(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

int wrong_flags(const client::Error& error) {
  std::cerr << "kilokv-bench: " << error.message << "\n";
  return static_cast<int>(client::exit_code_before_sending(error.code));
}

// An error is more important than an interrupt, so its exit code counts.
int ended_as(ExitCode code) {
  const int signal = interrupt::received();
  return code == ExitCode::ok && signal != 0 ? interrupt::exit_code(signal) : static_cast<int>(code);
}

// The functions below return the exit code.
int execute(const bench::Flags& flags, const bench::PageFacts& facts) {
  const auto runs = flags.runs();
  if (!runs) return wrong_flags(runs.error());
  if (!can_write_reports(flags) || !can_write("--history", runs->front().history_path)) {
    return static_cast<int>(ExitCode::other);
  }
  std::vector<RunReport> reports;
  ExitCode code = ExitCode::ok;
  for (const bench::RunOptions& options : *runs) {
    auto report = bench::run(options, tell);
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
  const int ended = ended_as(code);
  if (reports.empty()) return ended;
  const bool sweep = facts.is_sweep;
  const Reports texts = {sweep ? bench::sweep_table(reports) : bench::to_text(reports.front()),
                         (sweep ? bench::json_text(reports) : bench::json_text(reports.front())) + "\n",
                         bench::csv_text(reports),
                         flags.html_path().empty() ? std::string() : bench::html_text(reports, facts)};
  return write_reports(flags, texts) ? ended : static_cast<int>(ExitCode::other);
}

int tune(const bench::Flags& flags) {
  const auto options = flags.tune();
  if (!options) return wrong_flags(options.error());
  if (!can_write_reports(flags)) return static_cast<int>(ExitCode::other);
  tell(bench::plan_text(*options));
  const auto report = bench::tune(*options, tell);
  if (!report) return static_cast<int>(report_error(report.error()));
  if (!report->failure.empty()) std::cerr << "kilokv-bench: " << report->failure << "\n";
  const bool is_done = report->failure.empty() && (bench::advise(*report).complete || report->interrupted_by != 0);
  const int ended = ended_as(is_done ? ExitCode::ok : ExitCode::not_done);
  const Reports texts = {bench::to_text(*report), bench::json_text(*report) + "\n", bench::csv_text(report->runs), {}};
  return write_reports(flags, texts) ? ended : static_cast<int>(ExitCode::other);
}

struct CompareFlags {
  std::string a, b, json_path;
  double threshold = bench::kCompareThreshold;
};

void add_compare(CLI::App* command, CompareFlags* flags) {
  command->add_option("A", flags->a, "report before: JSON of run, sweep or tune")->required();
  command->add_option("B", flags->b, "report after")->required();
  command
      ->add_option("--threshold", flags->threshold,
                   "smallest share by which two numbers differ, such as 0.15; with three repeats or more, their spread "
                   "counts if it is larger")
      ->transform(client::real_number(0, 100))
      ->capture_default_str();
  command->add_option("--json", flags->json_path,
                      "write the comparison as JSON to this file; -: standard output, instead of the table");
  command->footer(
      "Exit codes: 0 nothing in B is worse; 1 something in B is worse than in A by more than the threshold;\n"
      "2 wrong usage, a file that is no report, or no configuration in common; 5 a file cannot be read or written.\n"
      "Example: kilokv-bench compare before.json after.json");
}

bool read_file(const std::string& path, bench::ReportFile* report) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file && text << file.rdbuf()) {
    *report = {path, text.str()};
    return true;
  }
  std::cerr << "kilokv-bench: cannot read " << path << ": " << std::generic_category().message(errno) << "\n";
  return false;
}

int compare(const CompareFlags& flags) {
  bench::ReportFile a, b;
  if (!read_file(flags.a, &a) || !read_file(flags.b, &b)) return static_cast<int>(ExitCode::other);
  const auto comparison = bench::compare(a, b, flags.threshold);
  if (!comparison) return wrong_flags(comparison.error());
  if (flags.json_path != "-") std::cout << comparison->text << std::flush;
  if (!write("--json", comparison->json + "\n", flags.json_path)) return static_cast<int>(ExitCode::other);
  return static_cast<int>(comparison->is_worse ? ExitCode::not_done : ExitCode::ok);
}

}  // namespace

int main(int argc, char** argv) {
  const auto app = client::make_app(
      "Puts load on a KiloKV server, measures it, and checks the state that the load left.", "kilokv-bench");
  client::add_version_flag(app.get());
  app->require_subcommand(1);
  app->footer(
      "Exit codes: 0 good; 1 the invariant does not hold, or transactions were refused or stayed unknown; tune\n"
      "recommends nothing; compare finds something worse; 2 wrong usage; 3 the server refused the input;\n"
      "4 no server, no answer in time, or a full server; 5 any other error; 130 Ctrl-C, or 143 SIGTERM, ended the\n"
      "run: the report covers the time until then, and the state is checked.\n"
      "Example: kilokv-bench run --workload bank --batch-size 1024 --in-flight 8 --json -");
  CLI::App* run = client::add_subcommand(app.get(), "run", "Make one run");
  CLI::App* sweep = client::add_subcommand(
      app.get(), "sweep", "Make a run for each combination of values, from lists such as --batch-size 1,16,128");
  CLI::App* tune_command = client::add_subcommand(
      app.get(), "tune",
      "Find the smallest batch size that is nearly the fastest, on a server of its own or a given one");
  CLI::App* compare_command =
      client::add_subcommand(app.get(), "compare", "Compare two JSON reports of run, sweep or tune");
  const bench::Flags run_flags(run, bench::Purpose::run);
  const bench::Flags sweep_flags(sweep, bench::Purpose::sweep);
  const bench::Flags tune_flags(tune_command, bench::Purpose::tune);
  CompareFlags compare_flags;
  add_compare(compare_command, &compare_flags);
  client::add_help_command(app.get());
  if (const auto code = client::parse_arguments(app.get(), argc, argv)) return *code;
  if (*compare_command) return compare(compare_flags);
  interrupt::install(*tune_command ? kTuneInterruptLines : kInterruptLines);
  if (*tune_command) return tune(tune_flags);
  std::vector<std::string> words(argv + 1, argv + argc);
  words.insert(words.begin(), "kilokv-bench");
  const bench::PageFacts facts{static_cast<bool>(*sweep), bench::shell_line(words), date_and_time()};
  return execute(*run ? run_flags : sweep_flags, facts);
}
