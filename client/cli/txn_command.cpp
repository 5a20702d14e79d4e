// kilokv txn: reads JSON objects, and prints history lines.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "client/cli/commands.hpp"
#include "client/cli/transaction_json.hpp"
#include "client/command_line/secrets.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

class TxnRun {
 public:
  // `session`: null to send without a session, detached.
  TxnRun(Client* client, Session* session, CallOptions options)
      : client_(client), session_(session), options_(std::move(options)) {
    if (session != nullptr) context_.session = session->id();
    context_.began_us = monotonic_us();
  }

  // With `one_request`, sends all transactions at the end. Otherwise sends each transaction as soon as it is read.
  ExitCode run(std::istream& input, bool one_request) {
    one_request_ = one_request;
    JsonStream stream(&input);
    while (const auto value = stream.next()) {
      const auto appended = append_transaction(value->text, &batch_, value->begin);
      if (!appended) return stop(appended.error().message);
      if (!*appended) continue;
      begins_.push_back(value->begin);
      if (!one_request && !send()) return code_;
    }
    if (input.bad()) {
      stop("cannot read the input");
      return ExitCode::other;
    }
    if (!batch_.empty()) send();
    return code_;
  }
  // Whether the outcome of a transaction that was sent is not known.
  bool lacks_answers() const { return lacks_answers_; }

 private:
  ExitCode stop(const std::string& why) const {
    std::cerr << "kilokv: " << why << (any_sent_ ? "; everything before it was sent\n" : "; nothing was sent\n");
    return ExitCode::usage;
  }

  // Sends the batch and prints its lines. False: the next transactions cannot succeed either.
  bool send() {
    any_sent_ = true;
    std::string lines;
    code_before_ = code_;
    Error error = session_ != nullptr ? send_in_session(&lines) : send_detached(&lines);
    if (error) tell(error, &lines);
    std::cout << lines << std::flush;
    batch_.clear();
    begins_.clear();
    return code_ < ExitCode::unavailable;
  }

  Error send_in_session(std::string* lines) {
    std::promise<Error> ended;
    const auto callback = [&](const Progress& progress) {
      if (!progress.done) return;
      append_lines(progress, lines);
      ended.set_value(progress.error);
    };
    session_->execute_async(batch_, callback, options_);
    Error error = ended.get_future().get();
    if (error && batch_.size() == 1 && is_too_large(error) && never_ran(error)) error = send_with_upload(lines);
    return error;
  }

  Error send_detached(std::string* lines) {
    const std::int64_t invoke_us = monotonic_us();
    CallOptions options = options_;
    options.detached = true;
    const auto results = client_->execute(batch_, options);
    Error error = results ? Error() : results.error();
    const Results none;
    const std::vector<std::uint32_t> indices;
    append_lines({.results = results ? *results : none,
                  .indices = indices,
                  .done = true,
                  .error = error,
                  .request = 0,
                  .attempts = 1,
                  .invoke_us = invoke_us,
                  .return_us = monotonic_us()},
                 lines);
    return error;
  }

  void tell(Error error, std::string* lines) {
    // If another program has attached, it may still need the file.
    lacks_answers_ = lacks_answers_ || !never_ran(error) || error.reason == "SESSION_FENCED";
    if (error.setting == "--guards-max") {
      error.message +=
          "; the version guards that a transaction begins with do not count if it is alone in its request and has no "
          "WAIT guard";
    }
    if (const auto begin = begin_of(error)) error.message.insert(0, to_string(*begin) + ": ");
    raise(report(error));
    if (!one_request_ || answered_any_ || !never_ran(error)) return;
    lines->clear();
    std::cerr << "  hint: the request was refused as a whole: none of its " << batch_.size() << " transactions ran\n";
  }

  // The place of the transaction that the error names, if it names one.
  std::optional<TextPosition> begin_of(const Error& error) const {
    if (!one_request_) return begins_.front();
    constexpr std::string_view kList = "transactions[";
    const std::string_view field = error.field;
    std::size_t index = 0;
    if (!field.starts_with(kList)) return std::nullopt;
    const auto [end, failed] = std::from_chars(field.data() + kList.size(), field.data() + field.size(), index);
    return failed == std::errc() && index < begins_.size() ? std::optional(begins_[index]) : std::nullopt;
  }

  static bool is_too_large(const Error& error) {
    return error.code == ErrorCode::invalid_argument &&
           (error.setting == "--guards-max" || error.setting == "--message-bytes-max");
  }

  // For a transaction with more guards than fit into a request: execute() uploads as many of them as it can.
  Error send_with_upload(std::string* lines) {
    lines->clear();
    HistoryContext context = context_;
    context.invoke_us = monotonic_us();
    const auto answer = session_->execute(batch_, options_);
    if (!answer) {
      context.ended_with(answer.error());
      append_history(batch_, Results(), 0, context, lines);
      return answer.error();
    }
    append_history(batch_, *answer, context, lines);
    code_ = code_before_;
    if (answer->results.outcome(0) != Outcome::committed) raise(ExitCode::not_done);
    return {};
  }

  // Also writes the lines of transactions that were answered before an error.
  void append_lines(const Progress& progress, std::string* lines) {
    answered_any_ = false;
    HistoryContext context = context_;
    context.request = progress.request;
    context.attempts = progress.attempts;
    context.invoke_us = progress.invoke_us;
    context.ended_with(progress.error);
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const Outcome outcome = progress.results.outcome(i);
      context.return_us = outcome == Outcome::unknown ? std::nullopt : std::optional(progress.return_us);
      append_history(batch_, progress.results, i, context, lines);
      if (outcome != Outcome::committed) raise(ExitCode::not_done);
      answered_any_ = answered_any_ || outcome != Outcome::unknown;
    }
  }

  void raise(ExitCode code) { code_ = std::max(code_, code); }

  Client* client_;
  Session* session_;
  const CallOptions options_;  // of all requests
  HistoryContext context_;
  Batch batch_;
  std::vector<TextPosition> begins_;  // of the transactions in batch_
  bool one_request_ = false;
  bool any_sent_ = false;
  bool lacks_answers_ = false;
  bool answered_any_ = false;  // whether any transaction of the last send was answered
  ExitCode code_ = ExitCode::ok;
  ExitCode code_before_ = ExitCode::ok;  // before the current send
};

// While the file is there, an answer may be missing. A program that reads the file can ask for this answer.
ExitCode run_in_session(Client* client, const TxnArguments& arguments, CallOptions options, std::istream& input) {
  auto session = client->open_session();
  if (!session) return report(session.error());
  const std::string& file = arguments.session_file;
  if (!file.empty() && !write_secret(file, (*session)->id() + '\n')) {
    std::cerr << "kilokv: cannot write " << file << ": " << std::generic_category().message(errno)
              << "; nothing was sent\n";
    return ExitCode::other;
  }
  TxnRun run(client, session->get(), std::move(options));
  const ExitCode code = run.run(input, arguments.batch);
  if (file.empty()) return code;
  if (!run.lacks_answers()) {
    static_cast<void>(std::remove(file.c_str()));  // a file that stays names a session that has ended
    return code;
  }
  (*session)->keep_open();
  std::cerr << "  hint: kilokv session attach --session-file " << file << " tells what became of it\n";
  return code;
}

}  // namespace

ExitCode run_txn(const CommonOptions& common, const TxnArguments& arguments) {
  std::ifstream file;
  if (arguments.file != "-") {
    file.open(arguments.file);
    if (!file) {
      std::cerr << "kilokv: cannot read " << arguments.file << ": check the path\n";
      return ExitCode::other;
    }
  }
  auto client = connect(common);
  if (!client) return report(client.error());
  std::istream& input = arguments.file == "-" ? std::cin : file;
  if (arguments.detached) return TxnRun(client->get(), nullptr, common.call()).run(input, arguments.batch);
  return run_in_session(client->get(), arguments, common.call(), input);
}

}  // namespace kilokv::client
