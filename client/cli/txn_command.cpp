// kilokv txn: JSON lines in, history lines out.
#include <algorithm>
#include <fstream>
#include <future>
#include <iostream>

#include "client/cli/commands.hpp"
#include "client/cli/transaction_json.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

class TxnRun {
 public:
  explicit TxnRun(Session* session) : session_(session) {
    context_.session = session->id();
    context_.began_us = monotonic_us();
  }

  // Reads `input` line by line. With `one_request` all is sent at the end, else each line by itself.
  ExitCode run(std::istream& input, bool one_request) {
    std::string line;
    for (std::uint64_t number = 1; std::getline(input, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const auto appended = append_transaction(line, &batch_);
      if (!appended) {
        std::cerr << "kilokv: line " << number << ": " << appended.error().message
                  << (one_request ? "; nothing was sent\n" : "; what came before it was sent\n");
        return ExitCode::usage;
      }
      if (*appended && !one_request && !send("line " + std::to_string(number) + ": ")) return code_;
    }
    if (!batch_.empty()) send("");
    return code_;
  }

 private:
  // Sends the batch and prints its lines; `where` is for an error. False: there is no point in going on.
  bool send(const std::string& where) {
    std::promise<Error> ended;
    std::string lines;
    code_before_ = code_;
    session_->execute_async(batch_, [&](const Progress& progress) {
      if (!progress.done) return;
      append_lines(progress, &lines);
      ended.set_value(progress.error);
    });
    Error error = ended.get_future().get();
    if (error && batch_.size() == 1 && is_too_large(error)) error = send_with_upload(&lines);
    if (error.knob == "--guards-max") {
      error.message +=
          "; the version guards that a line begins with do not count if it is alone and nothing of it waits";
    }
    error.message.insert(0, where);
    if (error) raise(report(error));
    std::cout << lines << std::flush;
    batch_.clear();
    return code_ < ExitCode::unavailable;
  }

  static bool is_too_large(const Error& error) {
    return error.code == ErrorCode::invalid_argument &&
           (error.knob == "--guards-max" || error.knob == "--message-bytes-max");
  }

  // A transaction with more guards than fit in a request: execute() uploads what it can of them.
  Error send_with_upload(std::string* lines) {
    lines->clear();
    HistoryContext context = context_;
    context.invoke_us = monotonic_us();
    const auto answer = session_->execute(batch_);
    if (!answer) {
      context.error = answer.error().code;
      append_history(batch_, Results(), 0, context, lines);
      return answer.error();
    }
    append_history(batch_, *answer, context, lines);
    code_ = code_before_;
    if (answer->results.outcome(0) != Outcome::committed) raise(ExitCode::not_done);
    return {};
  }

  // What was answered before an error is told, too.
  void append_lines(const Progress& progress, std::string* lines) {
    HistoryContext context = context_;
    context.request = progress.request;
    context.attempts = progress.attempts;
    context.invoke_us = progress.invoke_us;
    context.error = progress.error.code;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const Outcome outcome = progress.results.outcome(i);
      context.return_us = outcome == Outcome::unknown ? std::nullopt : std::optional(progress.return_us);
      append_history(batch_, progress.results, i, context, lines);
      if (outcome != Outcome::committed) raise(ExitCode::not_done);
    }
  }

  void raise(ExitCode code) { code_ = std::max(code_, code); }

  Session* session_;
  HistoryContext context_;
  Batch batch_;
  ExitCode code_ = ExitCode::ok;
  ExitCode code_before_ = ExitCode::ok;  // the send at hand
};

}  // namespace

ExitCode run_txn(const CommonOptions& common, const TxnArguments& arguments) {
  std::ifstream file;
  if (arguments.file != "-") {
    file.open(arguments.file);
    if (!file) {
      std::cerr << "kilokv: cannot read " << arguments.file << ": check the path\n";
      return ExitCode::usage;
    }
  }
  auto client = connect(common);
  if (!client) return report(client.error());
  auto session = (*client)->open_session();
  if (!session) return report(session.error());
  return TxnRun(session->get()).run(arguments.file == "-" ? std::cin : file, arguments.batch);
}

}  // namespace kilokv::client
