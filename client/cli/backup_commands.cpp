#include "client/cli/backup_commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "client/command_line/arguments.hpp"
#include "kilokv/backup.hpp"
#include "server/offline/archive_check.hpp"
#include "server/offline/backup_writer.hpp"
#include "server/offline/check.hpp"
#include "server/offline/restore.hpp"

namespace kilokv::client {
namespace {

using server::offline::Summary;

CLI::App* add_command(CLI::App* app, const char* name, const char* description, const char* examples) {
  CLI::App* command = add_subcommand(app, name, description);
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

// An error of a command that works on files.
ExitCode report_status(const Status& status) {
  const bool is_wrong_input = status.code() == StatusCode::invalid_argument;
  std::cerr << "kilokv: " << (is_wrong_input ? "" : std::string(to_string(status.code())) + ": ") << status.message()
            << '\n';
  return is_wrong_input ? ExitCode::usage : ExitCode::other;
}

nlohmann::json json_of(const Summary& summary) {
  nlohmann::json line = {{"damages", summary.damages}, {"complete", summary.complete}};
  if (!summary.incarnation.empty()) line["incarnation"] = summary.incarnation;
  if (summary.damages > 0) return line;
  if (summary.is_archive) {
    line.update({{"files", summary.files}, {"first_log_batch", summary.first_log_batch}});
  }
  if (!summary.complete) {
    line.update({{"batch", summary.batch}, {"time_us", summary.time_us}, {"state_hash", summary.state_hash}});
    return line;
  }
  line.update({{"batch", summary.batch},
               {"checkpoint_batch", summary.checkpoint_batch},
               {"first_log_batch", summary.first_log_batch},
               {"next_version", summary.next_version},
               {"time_us", summary.time_us},
               {"state_hash", summary.state_hash},
               {"records", summary.records},
               {"tombstones", summary.tombstones},
               {"sessions", summary.sessions},
               {"users", summary.users}});
  return line;
}

std::string field_text(const std::string& name, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (name != "time_us" || value == 0) return value.dump();
  return value.dump() + " (" + utc_text(value.get<std::int64_t>(), 6) + ")";
}

// `done`: what is said of a summary without damages that was compared with the hash of the state.
void print(const CommonOptions& common, const Summary& summary, const std::string& done = "whole") {
  if (common.output == OutputFormat::json) {
    std::cout << json_of(summary).dump() << '\n';
    return;
  }
  if (summary.damages > 0) {
    std::cout << "damaged: " << summary.damages << (summary.damages == 1 ? " damage" : " damages")
              << "; what is left was not compared with the hash of the state\n";
    return;
  }
  std::cout << (summary.complete || summary.is_archive ? done : "not verified") << '\n';
  const nlohmann::json fields = json_of(summary);
  for (const char* name : {"batch", "checkpoint_batch", "first_log_batch", "next_version", "time_us", "state_hash",
                           "incarnation", "files", "records", "tombstones", "sessions", "users"}) {
    if (!fields.contains(name)) continue;
    std::cout << name << '\t' << field_text(name, fields[name]) << '\n';
  }
}

void tell_damage(const CommonOptions& common, const std::string& damage) {
  if (common.output == OutputFormat::json) {
    std::cout << nlohmann::json{{"damage", damage}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << std::endl;
  } else {
    std::cerr << "damage: " << damage << '\n';
  }
}

constexpr const char* kMemoryOfAServer = "as much memory as a server takes for the same data";

// A machine with too little memory ends here. `need`: what takes it.
template <class Work>
ExitCode with_memory(const std::string& need, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    std::cerr << "kilokv: the memory is full: this needs " << need << '\n';
    return ExitCode::other;
  }
}

ExitCode run_archive_check(const CommonOptions& common, const std::string& path) {
  const auto tell = [&](const std::string& damage) { tell_damage(common, damage); };
  const auto summaries = server::offline::check_archive(path, tell);
  if (!summaries.ok()) return report_status(summaries.status());
  bool is_whole = true;
  for (const Summary& summary : *summaries) {
    print(common, summary);
    is_whole = is_whole && summary.damages == 0;
  }
  return is_whole ? ExitCode::ok : ExitCode::not_done;
}

ExitCode run_check(const CommonOptions& common, const std::string& path) {
  std::error_code ignored;
  const bool is_database = std::filesystem::exists(path + "/CURRENT", ignored);  // an archive may be in it
  if (!is_database && server::offline::is_archive(path)) return run_archive_check(common, path);
  return with_memory(kMemoryOfAServer, [&] {
    const auto tell = [&](const std::string& damage) { tell_damage(common, damage); };
    std::error_code error;
    const bool is_directory = std::filesystem::is_directory(path, error);
    const Result<Summary> summary =
        is_directory ? server::offline::check_directory(path, tell) : server::offline::check_backup(path, tell);
    if (!summary.ok()) return report_status(summary.status());
    print(common, *summary);
    return summary->damages == 0 ? ExitCode::ok : ExitCode::not_done;
  });
}

struct BackupArguments {
  std::string path;
  std::uint64_t bytes_per_second = 0;
  std::uint64_t retry_us = 300'000'000;
  bool no_verify = false;
};

// How much of a backup is there, once a second on standard error.
class Progress {
 public:
  void tell(std::uint64_t bytes, std::uint64_t estimated_bytes) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::seconds(1);
    const std::uint64_t of = std::max(bytes, estimated_bytes);
    std::cerr << "kilokv: " << (bytes >> 20) << " MiB of about " << (of >> 20) << " MiB\n";
    has_told_ = true;
  }
  // All of it has come. A short backup is compared at once.
  void tell_comparing(std::uint64_t bytes) const {
    if (has_told_) std::cerr << "kilokv: " << (bytes >> 20) << " MiB are there; comparing the hash of the state\n";
  }

 private:
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  bool has_told_ = false;
};

// Waits between the tries of a backup, longer each time, and says why: once, until the reason is another one.
class Retries {
 public:
  explicit Retries(std::uint64_t retry_us) : retry_(std::min<std::uint64_t>(retry_us, kYearUs)) {}

  void note_progress() {
    last_progress_ = Clock::now();
    delay_ = kDelayMin;
    told_.clear();
  }
  bool is_late() const { return Clock::now() - last_progress_ > retry_; }
  void wait(const Error& error, bool has_begun) {
    const auto left = std::max<Clock::duration>(last_progress_ + retry_ - Clock::now(), Clock::duration::zero());
    const std::string reason =
        std::string(to_string(error.code)) + (error.reason.empty() ? error.message : error.reason);
    if (reason != told_) tell(error, has_begun, left);
    told_ = reason;
    std::this_thread::sleep_for(std::min<Clock::duration>(delay_, left));
    delay_ = std::min(2 * delay_, kDelayMax);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kYearUs = std::uint64_t{365} * 86400 * 1'000'000;
  static constexpr std::chrono::milliseconds kDelayMin{500}, kDelayMax{5000};

  static void tell(const Error& error, bool has_begun, Clock::duration left) {
    const auto left_us = std::chrono::microseconds(std::chrono::ceil<std::chrono::seconds>(left)).count();
    std::cerr << "kilokv: the backup "
              << (has_begun ? "was interrupted, and goes on" : "has not begun, and tries again") << ": "
              << error.message << "; without progress it is given up in " << format_duration(left_us)
              << " (--retry-for)\n";
  }

  const std::chrono::microseconds retry_;
  Clock::time_point last_progress_ = Clock::now();
  std::chrono::milliseconds delay_ = kDelayMin;
  std::string told_;  // the last reason; empty: none since something has come
};

// One try of the stream. Empty: the stream has ended. `failed` says what is wrong with the file, or with what came.
Error read_stream(const CommonOptions& common, const BackupArguments& arguments, server::offline::BackupWriter* writer,
                  Progress* progress, bool* has_connected, Status* failed) {
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  const auto stream = BackupStream::connect(options);
  if (!stream) return stream.error();
  *has_connected = true;
  BackupOptions wanted;
  wanted.bytes_per_second = arguments.bytes_per_second;
  if (const auto resume = writer->resume()) {
    wanted.backup = resume->backup;
    wanted.frame = resume->frame;
    wanted.crc = resume->crc;
    wanted.kind = resume->kind;
    wanted.key = resume->key;
  }
  Error error = (*stream)->read(wanted, [&](const BackupPiece& piece) {
    *failed = writer->take(piece.data);
    progress->tell(writer->bytes(), piece.estimated_bytes);
    return failed->ok();  // to the end of the call, so that the server knows that all of it has come
  });
  writer->interrupted();
  if (error || !failed->ok() || writer->is_complete()) return error;
  error.code = ErrorCode::unavailable;
  error.message = "the server has ended the stream before the end of the backup";
  return error;
}

bool is_worth_a_retry(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded ||
         error.code == ErrorCode::cancelled ||
         (error.code == ErrorCode::resource_exhausted && error.retry_after_us > 0);
}

// Streams until the backup is complete. After a lost connection it goes on. If the server does not keep the snapshot
// any more, it starts over. After some times, it does so only if it came a tenth further than ever before: the cause
// may be one that stays, such as a limit of the server. A server that was never reached is not tried again, as in other
// commands.
std::optional<ExitCode> stream_all(const CommonOptions& common, const BackupArguments& arguments,
                                   server::offline::BackupWriter* writer) {
  Progress progress;
  Retries retries(arguments.retry_us);
  constexpr int kStartsOverMin = 3;
  std::uint64_t bytes = writer->bytes(), most_bytes = 0;
  int starts_over = 0;
  bool has_connected = false;
  while (!writer->is_complete()) {
    Status failed;
    const Error error = read_stream(common, arguments, writer, &progress, &has_connected, &failed);
    if (!failed.ok()) return report_status(failed);
    if (writer->is_complete()) break;
    if (writer->bytes() != bytes) {
      bytes = writer->bytes();
      retries.note_progress();
    }
    if (error.code == ErrorCode::aborted && (starts_over < kStartsOverMin || bytes > most_bytes + most_bytes / 10)) {
      std::cerr << "kilokv: the backup starts over: " << error.message << '\n';
      if (const Status status = writer->start_over(); !status.ok()) return report_status(status);
      ++starts_over;
      most_bytes = std::max(most_bytes, std::exchange(bytes, 0));
      continue;
    }
    if (!has_connected || !is_worth_a_retry(error) || retries.is_late()) return report(error);
    retries.wait(error, bytes != 0);
  }
  if (!arguments.no_verify) progress.tell_comparing(writer->bytes());
  return std::nullopt;
}

ExitCode run_backup(const CommonOptions& common, const BackupArguments& arguments) {
  return with_memory("memory for the sessions, and for the keys that were written since the last checkpoint", [&] {
    const auto writer = server::offline::BackupWriter::open(arguments.path, !arguments.no_verify);
    if (!writer.ok()) return report_status(writer.status());
    if (const std::string& why = (*writer)->forgotten(); !why.empty()) {
      std::cerr << "kilokv: " << why << "; the backup starts over\n";
    }
    if (const auto code = stream_all(common, arguments, writer->get())) {
      (*writer)->remove_if_empty();
      return *code;
    }
    const Result<Summary> summary = (*writer)->finish();
    if (!summary.ok()) return report_status(summary.status());
    print(common, *summary);
    return ExitCode::ok;
  });
}

ExitCode run_restore(const CommonOptions& common, const server::offline::RestoreOptions& options) {
  server::offline::RestoreOptions warning = options;
  warning.warn = [](const std::string& what) { std::cerr << "kilokv: " << what << '\n'; };
  return with_memory(kMemoryOfAServer, [&] {
    const Result<Summary> summary = server::offline::restore(warning);
    if (!summary.ok()) return report_status(summary.status());
    print(common, *summary, "restored to " + options.directory);
    return ExitCode::ok;
  });
}

// Microseconds since the Unix epoch, or a time of UTC such as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00.5Z.
std::optional<std::int64_t> parse_time_us(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() <= 18) {
    return std::stoll(text);
  }
  std::tm time = {};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  std::int64_t fraction_us = 0;
  if (*rest == '.') {
    std::int64_t unit = 100000;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) fraction_us += (*rest - '0') * unit;
  }
  if (std::string(rest) != "Z") return std::nullopt;
  const int day = time.tm_mday;
  const std::time_t seconds = ::timegm(&time);
  if (time.tm_mday != day) return std::nullopt;  // the month has no such day
  return std::int64_t{seconds} * 1000000 + fraction_us;
}

CLI::Validator time_of_utc() {
  const auto check = [](std::string& text) {
    const auto time = parse_time_us(text);
    if (!time) {
      return "\"" + text + "\" is no time: write microseconds since the Unix epoch, or UTC as 2026-01-31T12:00:00Z";
    }
    text = std::to_string(*time);
    return std::string();
  };
  return {check, ""};
}

void add_check(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  const auto path = std::make_shared<std::string>();
  CLI::App* check = add_command(app, "check",
                                "Check a backup, an archive, or all data of a data directory that no server uses, and "
                                "change nothing; exit code 1 if it is damaged",
                                "  kilokv check kilokv-data\n  kilokv check archive\n"
                                "  kilokv --output json check monday.backup");
  check->add_option("path", *path, "the data directory, the file of a backup, or the directory of --archive-dir")
      ->required();
  check->callback([=] { *action = [=] { return run_check(*common, *path); }; });
}

void add_backup(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  const auto a = std::make_shared<BackupArguments>();
  CLI::App* backup =
      add_command(app, "backup", "Make a backup of a server that runs, and verify it; it goes on if it was interrupted",
                  "  kilokv backup monday.backup\n  kilokv backup monday.backup --rate 32MiB");
  backup->add_option("file", a->path, "the new file; FILE.partial until it is complete")->required();
  backup->add_option("--rate", a->bytes_per_second, "most bytes per second; default: what the server allows")
      ->transform(size_in_bytes(std::uint64_t{64} << 10, std::uint64_t{1} << 40))
      ->option_text("SIZE, such as 4MiB");
  backup
      ->add_option(
          "--retry-for", a->retry_us,
          "time without progress after which an interrupted backup is given up; a server that is never reached "
          "is not tried again; default 5m")
      ->transform(duration(0))
      ->option_text("DURATION");
  backup->add_flag("--no-verify", a->no_verify,
                   "do not read the file once more at the end, to compare the hash of the state");
  backup->callback([=] { *action = [=] { return run_backup(*common, *a); }; });
}

void add_restore(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  const auto a = std::make_shared<server::offline::RestoreOptions>();
  CLI::App* restore =
      add_command(app, "restore", "Make a new data directory from a backup, as a new incarnation of the database",
                  "  kilokv restore monday.backup kilokv-data\n"
                  "  kilokv restore monday.backup kilokv-data --archive archive --to-batch 4711");
  restore->add_option("file", a->backup, "the file of the backup")->required();
  restore->add_option("directory", a->directory, "the new data directory")->required();
  restore->add_option("--archive", a->archive, "the directory of kilokvd's --archive-dir; default: only the backup")
      ->option_text("DIR");
  CLI::Option* batch = restore->add_option("--to-batch", a->batch, "restore to after this batch; default: to the end")
                           ->transform(whole_number(0))
                           ->option_text("N");
  restore
      ->add_option(
          "--to-time", a->time_us,
          "restore to after the last batch up to this time: UTC as 2026-01-31T12:00:00Z, or microseconds since "
          "the Unix epoch")
      ->transform(time_of_utc())
      ->excludes(batch)
      ->option_text("TIME");
  restore->callback([=] { *action = [=] { return run_restore(*common, *a); }; });
}

}  // namespace

void add_backup_commands(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  add_backup(app, common, action);
  add_check(app, common, action);
  add_restore(app, common, action);
}

}  // namespace kilokv::client
