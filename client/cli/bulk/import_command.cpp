// kilokv import: reads pairs from a file or from standard input, and writes them into the database.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "client/cli/bulk/bulk_commands.hpp"
#include "client/cli/bulk/file_output.hpp"
#include "client/cli/utf8.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

constexpr interrupt::Lines kInterruptLines = {
    "\nkilokv: ended before the import began\n",
    "\nkilokv: ending early: waits for the answers to what was sent; a second signal ends it at once\n",
    "\nkilokv: ended by a second signal: it is not known how much was imported\n"};

// Standard input, or a file that is closed at the end.
class Input {
 public:
  explicit Input(const std::string& file)
      : descriptor_(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Input() {
    if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

nlohmann::ordered_json summary_of(const ImportReport& report) {
  const SenderTotals& totals = report.totals;
  return {{"lines", report.lines},
          {"bytes", report.bytes},
          {"written", totals.written},
          {"integers", totals.integers},
          {"byte_values", totals.written - totals.integers},
          {"kept", totals.kept},
          {"bad_lines", report.bad_lines},
          {"continued_at_line", report.continued_at ? nlohmann::json(*report.continued_at) : nlohmann::json()},
          {"seconds", static_cast<double>(report.elapsed_us) / 1e6},
          {"records_per_s", rate_of(totals.written + totals.kept, report.elapsed_us)}};
}

void print_summary(const CommonOptions& common, const ImportArguments& arguments, const ImportReport& report) {
  if (common.output == OutputFormat::json) {
    std::cout << summary_of(report).dump() << '\n';
    return;
  }
  const SenderTotals& totals = report.totals;
  std::cout << "imported " << bench::grouped(totals.written) << " records (" << bench::grouped(totals.integers)
            << " as integers, " << bench::grouped(totals.written - totals.integers) << " as bytes) in "
            << bench::seconds(report.elapsed_us) << ", " << rate_text(totals.written + totals.kept, report.elapsed_us);
  if (report.continued_at) std::cout << "; continued at line " << *report.continued_at;
  if (arguments.options.existing == Existing::keep) {
    std::cout << "; " << bench::grouped(totals.kept) << " existing keys were kept";
  }
  if (report.bad_lines != 0) {
    std::cout << "; " << bench::grouped(report.bad_lines) << " bad lines are in " << arguments.options.bad_lines_file;
  }
  std::cout << '\n';
}

// Says how far an import has come that ended early.
void tell_how_far(const ImportArguments& arguments, const ImportReport& report) {
  if (!report.has_begun) return;
  const SenderTotals& totals = report.totals;
  const bool has_imported = totals.written + totals.kept != 0 || report.continued_at;
  if (!has_imported && totals.unknown == 0) std::cerr << "  imported: nothing\n";
  if (has_imported) {
    std::cerr << "  imported: all lines before line " << totals.line;
    if (totals.line_max > totals.line) std::cerr << ", and lines after it, up to line " << totals.line_max - 1;
    std::cerr << '\n';
  }
  const bool has_position = !arguments.options.position_key.empty();
  if (has_position) {
    std::cerr << "  hint: run the same command again: it goes on after what was imported\n";
  } else if (totals.unknown != 0) {
    std::cerr << "  unknown: whether " << bench::grouped(totals.unknown)
              << " records of later lines were imported; with --position-key, an import can continue exactly\n";
  }
}

void tell_hint(const ImportReport& report) {
  if (!report.is_file_problem && !report.hint.empty()) std::cerr << "  hint: " << report.hint << '\n';
}

ExitCode report_end(const CommonOptions& common, const ImportArguments& arguments, const ImportReport& done) {
  if (!done.input_problem.empty()) {
    std::cerr << "kilokv: " << printable(done.input_problem) << '\n';
    tell_hint(done);
    tell_how_far(arguments, done);
    return done.is_file_problem ? ExitCode::other : ExitCode::usage;
  }
  if (done.error) {
    const ExitCode code = report(done.error);
    for (const char* setting : {"--operations-max", "--guards-max", "--message-bytes-max"}) {
      if (done.error.setting == setting) std::cerr << "  hint: a smaller --batch-size makes smaller transactions\n";
    }
    tell_how_far(arguments, done);
    return code;
  }
  if (done.stopped_at) {
    std::cerr << "kilokv: line " << done.stopped_at->line << ": " << printable(done.stopped_at->problem) << '\n';
    if (done.stopped_at->line == 1) tell_hint(done);
    std::cerr << "  hint: the import stops here; --bad-lines FILE sets bad lines aside, and goes on\n";
    tell_how_far(arguments, done);
    return ExitCode::usage;
  }
  if (done.was_interrupted) {
    tell_how_far(arguments, done);
    return static_cast<ExitCode>(interrupt::exit_code(interrupt::received()));
  }
  print_summary(common, arguments, done);
  return done.bad_lines == 0 ? ExitCode::ok : ExitCode::not_done;
}

// What is wrong with the arguments. Empty: nothing.
std::string problem_of(const ImportArguments& arguments, BulkFormat format) {
  const CsvColumns& columns = arguments.options.columns;
  const CsvColumns usual;
  const bool has_csv_flags = columns.key != usual.key || columns.value != usual.value ||
                             columns.values_as_bytes != usual.values_as_bytes || columns.separator != usual.separator;
  if (format != BulkFormat::csv && has_csv_flags) {
    return "--key-column, --value-column, --bytes and --separator are for CSV, and the input is JSON lines; "
           "--format csv reads CSV";
  }
  if (arguments.options.integers_only && columns.values_as_bytes) {
    return "--integers and --bytes exclude each other: give one of them";
  }
  if (columns.key == columns.value) {
    return "--key-column and --value-column name the same column: " + key_text(columns.key);
  }
  return {};
}

}  // namespace

ExitCode run_import(const CommonOptions& common, const ImportArguments& arguments) {
  ImportOptions options = arguments.options;
  options.format = arguments.format.value_or(format_of(arguments.file).value_or(BulkFormat::json_lines));
  options.call = common.call();
  options.shows_progress = shows_progress(arguments.progress);
  if (const std::string problem = problem_of(arguments, options.format); !problem.empty()) {
    std::cerr << "kilokv: " << problem << '\n';
    return ExitCode::usage;
  }
  const Input input(arguments.file);
  if (input.descriptor() < 0) {
    std::cerr << "kilokv: " << file_problem("read", arguments.file)
              << "\n  hint: check the path; without a file name, or with -, standard input is read\n";
    return ExitCode::other;
  }
  auto client = connect(common);
  if (!client) return report(client.error());
  interrupt::ignore_broken_pipes();
  interrupt::install(kInterruptLines);
  interrupt::hold();
  return report_end(common, arguments, Importer(client->get(), options, input.descriptor()).run());
}

}  // namespace kilokv::client
