// kilokv session: asks what has become of the requests of a session whose program has gone.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "client/cli/commands.hpp"
#include "client/command_line/secrets.hpp"

namespace kilokv::client {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kIdDigits = 32, kShownDigits = 8;

ordered_json result_json(const Results& results, std::size_t index) {
  const ResultView result = results.at(index);
  ordered_json out = {{"index", index}, {"outcome", to_string(result.outcome)}};
  if (result.failed_in == FailedIn::guards) {
    out["failed_guard"] = result.failed_index;
  } else if (result.failed_in != FailedIn::none) {
    out["failed_operation"] = result.failed_index;
  }
  out["version"] = result.version ? ordered_json(*result.version) : ordered_json();
  out["batch"] = result.batch;
  out["rank"] = result.rank;
  out["admitted_batch"] = result.admitted_batch;
  out["batch_time_us"] = result.batch_time_us;
  if (result.reads_dropped) out["reads_dropped"] = true;
  ordered_json reads = ordered_json::array();
  for (std::size_t i = 0; i < results.read_count(index); ++i) {
    const ReadView read = results.read(index, i);
    reads.push_back(ordered_json::parse(read_json(read.key, read.value, read.version)));
  }
  out["reads"] = std::move(reads);
  return out;
}

void print_json(const KnownRequest& known) {
  ordered_json results = ordered_json::array();
  for (std::size_t i = 0; i < known.results.size(); ++i) {
    if (known.results.outcome(i) != Outcome::unknown) results.push_back(result_json(known.results, i));
  }
  const ordered_json line = {
      {"request", known.number},      {"state", to_string(known.state)}, {"transactions", known.transactions},
      {"decided", known.decided},     {"parked", known.parked},          {"queued", known.queued},
      {"results", std::move(results)}};
  std::cout << line.dump() << '\n';
}

void print_text(const KnownRequest& known) {
  std::printf("%-10llu %-15s %12u %8u %7u %7u\n", static_cast<unsigned long long>(known.number), to_string(known.state),
              known.transactions, known.decided, known.parked, known.queued);
  for (std::size_t i = 0; i < known.results.size(); ++i) {
    const ResultView result = known.results.at(i);
    if (result.outcome == Outcome::unknown) continue;
    std::string text = "  [" + std::to_string(i) + "] " + to_string(result.outcome);
    if (result.version) text += ", version " + std::to_string(*result.version);
    text += ", batch " + std::to_string(result.batch) + ", rank " + std::to_string(result.rank);
    std::printf("%s\n", text.c_str());
    for (std::size_t r = 0; r < known.results.read_count(i); ++r) {
      const ReadView read = known.results.read(i, r);
      std::printf("      %s\t%s\n", key_text(read.key).c_str(), value_text(read.value).c_str());
    }
  }
}

// A number that the server does not know has a line, too, if it was asked for.
KnownRequest known_request(AttachedSession* attached, std::uint64_t number) {
  for (KnownRequest& known : attached->requests) {
    if (known.number == number) return std::move(known);
  }
  KnownRequest unknown;
  unknown.number = number;
  unknown.state = attached->state_of(number);
  return unknown;
}

void print(const CommonOptions& common, const KnownRequest& known) {
  common.output == OutputFormat::json ? print_json(known) : print_text(known);
}

void print_head(const CommonOptions& common, const std::string& id, const AttachedSession& attached) {
  const std::uint64_t holder = attached.session->holder();
  if (common.output == OutputFormat::json) {
    const ordered_json line = {{"session", id.substr(0, kShownDigits)},
                               {"holder", holder},
                               {"acknowledged_through", attached.acknowledged_through},
                               {"frozen", attached.frozen},
                               {"incarnation", attached.incarnation}};
    std::cout << line.dump() << '\n';
    return;
  }
  std::printf("session %s, holder %llu, acknowledged through %llu\n", id.substr(0, kShownDigits).c_str(),
              static_cast<unsigned long long>(holder), static_cast<unsigned long long>(attached.acknowledged_through));
  if (attached.frozen) {
    std::printf(
        "the database was restored from a backup: this session runs nothing more, and what it ran after the\n"
        "moment of the restore is undone\n");
  }
  std::printf("%-10s %-15s %12s %8s %7s %7s\n", "REQUEST", "STATE", "TRANSACTIONS", "DECIDED", "PARKED", "QUEUED");
}

}  // namespace

ExitCode read_session_id(const std::string& file, std::string* id) {
  if (const Error error = read_secret(kSessionSource, file, id)) {
    std::cerr << "kilokv: " << error.message << '\n';
    return exit_code_before_sending(error.code);
  }
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  if (id->size() == kIdDigits && std::all_of(id->begin(), id->end(), is_digit)) return ExitCode::ok;
  if (id->empty()) {
    std::cerr
        << "kilokv: no session: name a file that has its id by " << kSessionSource.flag << " or the variable "
        << kSessionSource.file_variable << ", or put the id into the variable " << kSessionSource.variable
        << "\n  hint: `kilokv txn --session-file FILE` writes such a file, and keeps it while an answer is missing\n";
  } else {
    std::cerr << "kilokv: the id of a session has " << kIdDigits << " hexadecimal digits, and this text is no such id; "
              << "lists show only the first " << kShownDigits << '\n';
  }
  return ExitCode::usage;
}

ExitCode run_session_attach(const CommonOptions& common, const SessionArguments& arguments) {
  std::string id;
  if (const ExitCode code = read_session_id(arguments.file, &id); code != ExitCode::ok) return code;
  const auto client = connect(common);
  if (!client) return report(client.error());
  auto attached = (*client)->attach_session(id);
  if (!attached) return report(attached.error());
  attached->session->keep_open();
  print_head(common, id, *attached);
  if (arguments.request == 0) {
    for (const KnownRequest& known : attached->requests) print(common, known);
    return ExitCode::ok;
  }
  const KnownRequest known = known_request(&*attached, arguments.request);
  print(common, known);
  return known.state == KnownRequest::State::decided ? ExitCode::ok : ExitCode::not_done;
}

}  // namespace kilokv::client
