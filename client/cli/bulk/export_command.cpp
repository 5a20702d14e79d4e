// kilokv export: writes the pairs of a range, all as of one moment, to a file or to standard output.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/cli/bulk/bulk_commands.hpp"
#include "client/cli/bulk/file_output.hpp"
#include "client/cli/bulk/pair_text.hpp"
#include "client/cli/bulk/progress.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

constexpr interrupt::Lines kInterruptLines = {"\nkilokv: ended before the export began\n",
                                              "\nkilokv: ending early: the export is not complete\n",
                                              "\nkilokv: ended by a second signal\n"};

BulkFormat chosen_format(const ExportArguments& arguments) {
  return arguments.format.value_or(format_of(arguments.file).value_or(BulkFormat::json_lines));
}

class Export {
 public:
  Export(const CommonOptions& common, const ExportArguments& arguments)
      : common_(common),
        arguments_(arguments),
        format_(chosen_format(arguments)),
        progress_(shows_progress(arguments.progress)) {}

  ExitCode run() {
    const auto client = connect(common_);
    if (!client) return report(client.error());
    interrupt::ignore_broken_pipes();
    interrupt::install(kInterruptLines);
    interrupt::hold();  // before there is a file that a signal would leave
    if (!to_stdout() && fails(file_.open(arguments_.file))) return ExitCode::other;
    if (format_ == BulkFormat::csv) text_ = csv_header(arguments_.separator);
    const auto position = (*client)->scan(from(), to(), [this](const Pair& pair) { return take(pair); });
    if (interrupt::received() != 0) return static_cast<ExitCode>(interrupt::exit_code(interrupt::received()));
    if (!problem_.empty()) return ExitCode::other;
    if (!position) return report_lost(position.error());
    if (!write() || (!to_stdout() && fails(file_.finish()))) return ExitCode::other;
    if (expiries_left_out_ > 0) {
      std::cerr << "kilokv: " << bench::grouped(expiries_left_out_)
                << " pairs expire, and the CSV does not say when; --format jsonl does\n";
    }
    summarize(*position);
    return ExitCode::ok;
  }

 private:
  bool to_stdout() const { return arguments_.file == "-"; }
  std::string from() const { return arguments_.prefix.value_or(arguments_.from); }
  std::string to() const { return arguments_.prefix ? prefix_end(*arguments_.prefix) : arguments_.to; }

  bool fails(const FileProblem& problem) {
    if (problem.empty()) return false;
    problem_ = problem;
    std::cerr << "kilokv: " << problem << '\n';
    return true;
  }

  bool take(const Pair& pair) {
    if (format_ == BulkFormat::csv) {
      append_csv_pair(pair.key, view_of(pair), &text_, arguments_.separator);
      if (pair.expires_at_us != 0) ++expiries_left_out_;
    } else {
      append_json_pair(pair.key, view_of(pair), pair.expires_at_us, &text_);
    }
    ++pairs_;
    return interrupt::received() == 0 && (text_.size() < kWriteBytes || write());
  }

  bool write() {
    const FileProblem problem = to_stdout() ? write_all(STDOUT_FILENO, text_, "standard output") : file_.write(text_);
    if (fails(problem)) return false;
    bytes_ += text_.size();
    text_.clear();
    progress_.tick([this] {
      return bench::grouped(pairs_) + " pairs, " + rate_text(pairs_, progress_.elapsed_us()) + ", " +
             bench::grouped(bytes_) + " bytes";
    });
    return true;
  }

  ExitCode report_lost(const Error& error) const {
    const ExitCode code = report(error);
    if (error.code != ErrorCode::aborted) return code;
    std::cerr << "  hint: the server no longer keeps the moment of this export, so it cannot be completed; "
              << (to_stdout() ? "what was written is only a part" : "no file was written")
              << "\n  hint: export a smaller range, or run kilokvd with a longer --snapshot-age-max or a larger "
                 "--snapshot-bytes-max\n";
    return ExitCode::not_done;
  }

  void summarize(const ScanPosition& position) const {
    const std::int64_t elapsed_us = progress_.elapsed_us();
    if (common_.output == OutputFormat::json) {
      const nlohmann::ordered_json summary = {{"pairs", pairs_},
                                              {"bytes", bytes_},
                                              {"boundary", position.boundary},
                                              {"boundary_version", position.boundary_version},
                                              {"batch_time_us", position.batch_time_us},
                                              {"seconds", static_cast<double>(elapsed_us) / 1e6},
                                              {"pairs_per_s", rate_of(pairs_, elapsed_us)}};
      (to_stdout() ? std::cerr : std::cout) << summary.dump() << '\n';
      return;
    }
    if (arguments_.progress.never) return;
    std::cerr << "exported " << bench::grouped(pairs_) << " pairs, " << bench::grouped(bytes_) << " bytes, in "
              << bench::seconds(elapsed_us) << ", " << rate_text(pairs_, elapsed_us) << "; boundary "
              << position.boundary << '\n';
  }

  const CommonOptions& common_;
  const ExportArguments& arguments_;
  const BulkFormat format_;
  ProgressLine progress_;
  FileOutput file_;
  std::string text_;  // that is not written yet
  std::uint64_t pairs_ = 0, bytes_ = 0;
  std::uint64_t expiries_left_out_ = 0;  // CSV has no place for them
  FileProblem problem_;
};

}  // namespace

std::optional<BulkFormat> format_of(const std::string& file) {
  if (file.ends_with(".csv")) return BulkFormat::csv;
  for (const char* ending : {".json", ".jsonl", ".ndjson"}) {
    if (file.ends_with(ending)) return BulkFormat::json_lines;
  }
  return std::nullopt;
}

ExitCode run_export(const CommonOptions& common, const ExportArguments& arguments) {
  if (!arguments.to.empty() && arguments.to < arguments.from) {
    std::cerr << "kilokv: --to " << key_text(arguments.to) << " is before --from " << key_text(arguments.from)
              << ": an export goes from the first key up to the last one\n";
    return ExitCode::usage;
  }
  if (arguments.separator != ',' && chosen_format(arguments) != BulkFormat::csv) {
    std::cerr << "kilokv: --separator is for CSV, and the output is JSON lines; --format csv writes CSV\n";
    return ExitCode::usage;
  }
  return Export(common, arguments).run();
}

}  // namespace kilokv::client
