// Role: see demo.hpp.
#include "client/bank/demo.hpp"

#include <algorithm>
#include <cstdio>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "client/bank/ledger.hpp"
#include "client/bank/teller.hpp"
#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/measure/text.hpp"
#include "client/own_server/server_process.hpp"
#include "client/own_server/temporary_folder.hpp"

namespace kilokv::bank {
namespace {

constexpr Cents kOpeningBalance = 500'00;
constexpr std::size_t kOpeningsMax = 1'000;  // accounts opened by one request
constexpr std::int64_t kTickUs = 100'000;

class Demo {
 public:
  Demo(const DemoOptions& options, const std::function<void(const DemoProgress&)>& progress)
      : options_(options),
        progress_(progress),
        tag_(std::random_device{}()),
        branch_(branch_name(), options.accounts, options.clients) {}

  client::Expected<DemoReport> run();

 private:
  std::string branch_name() const;
  client::Error start_server();
  client::Error connect();
  client::Error open_accounts();
  client::Error open_sessions();
  client::Error trade();
  client::Error kill_and_restart();
  client::Error restart(std::int64_t killed_us);
  client::Error audit_books();
  void check_books();
  void clean_up();
  void tell(std::string event = {});
  void add_check(std::string name, bool holds, std::string detail);

  const DemoOptions options_;
  const std::function<void(const DemoProgress&)>& progress_;
  const std::uint32_t tag_;  // makes the names and ids of this demo unique
  const Branch branch_;
  DemoReport report_;
  std::int64_t began_us_ = 0;
  std::string folder_;
  std::unique_ptr<own_server::TemporaryFolder> temporary_;
  std::unique_ptr<own_server::ServerProcess> server_;
  std::unique_ptr<client::Client> client_;
  Clipboard clipboard_;
  std::vector<std::unique_ptr<Teller>> tellers_;
};

std::string Demo::branch_name() const {
  char name[32];
  std::snprintf(name, sizeof(name), "demo-%08x", tag_);
  return name;
}

client::Expected<DemoReport> Demo::run() {
  report_.options = options_;
  for (const auto step : {&Demo::start_server, &Demo::connect, &Demo::open_accounts, &Demo::open_sessions, &Demo::trade,
                          &Demo::audit_books}) {
    if (client::Error error = (this->*step)()) {
      if (!folder_.empty()) error.message += " (see " + folder_ + "/kilokvd.log)";
      return error;
    }
  }
  check_books();
  clean_up();
  return std::move(report_);
}

client::Error Demo::start_server() {
  if (!options_.endpoint.empty()) return {};
  folder_ = options_.data_dir;
  if (folder_.empty()) {
    auto temporary = own_server::TemporaryFolder::make("kilokv-bank");
    if (!temporary) return temporary.error();
    temporary_ = std::move(*temporary);
    temporary_->keep();  // until the end is good: a report of an error names its files
    folder_ = temporary_->path();
  }
  std::vector<std::string> flags;
  if (!options_.console.empty()) flags = {"--http-listen", options_.console, "--console-kill", "on"};
  auto server = own_server::ServerProcess::start(options_.server, folder_, std::move(flags));
  if (!server) return server.error();
  server_ = std::move(*server);
  tell("started a server for the demo at " + server_->endpoint());
  if (!options_.console.empty()) tell("look at it, and kill it, at http://" + options_.console + "/console/");
  return {};
}

client::Error Demo::connect() {
  client::ClientOptions options;
  options.endpoint = server_ ? server_->endpoint() : options_.endpoint;
  options.wait_for_server_us = options_.wait_for_server_us;
  options.tls = options_.tls;
  options.token = options_.token;
  options.request_timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us);
  options.backoff_us_max = 100'000;
  auto client = client::Client::connect(options);
  if (!client) return client.error();
  client_ = std::move(*client);
  auto status = client_->status();
  if (!status) return status.error();
  report_.server = std::move(*status);
  return {};
}

client::Error Demo::open_accounts() {
  auto session = client_->open_session();
  if (!session) return session.error();
  EntryIds ids(tag_);
  MovementWriter writer;
  client::Batch batch;
  for (std::size_t i = 0; i < branch_.accounts.size(); ++i) {
    Movement movement;
    movement.kind = Kind::opened;
    movement.account = branch_.accounts[i];
    movement.amount = i < branch_.customers ? kOpeningBalance : 0;
    report_.opened += movement.amount;
    writer.append(movement, ids.next(entry_clock_us()), &batch);
    if (batch.size() < kOpeningsMax && i + 1 < branch_.accounts.size()) continue;
    const auto answer = (*session)->execute(batch);
    if (!answer) return answer.error();
    for (std::size_t j = 0; j < batch.size(); ++j) {
      if (answer->results.outcome(j) == client::Outcome::committed) continue;
      return bench::make_error(client::ErrorCode::internal,
                               "an account could not be opened: " + explain(movement, answer->results.at(j)));
    }
    batch.clear();
  }
  tell("opened " + bench::grouped(branch_.accounts.size()) + " accounts with " + format_amount(report_.opened) +
       " in all");
  return {};
}

client::Error Demo::open_sessions() {
  for (std::uint32_t i = 0; i < options_.clients; ++i) {
    auto session = client_->open_session();
    if (!session) return session.error();
    TellerOptions teller;
    teller.place = i;
    teller.tag = tag_ + 1 + i;
    teller.request_transactions = options_.request_transactions;
    teller.seed = options_.seed;
    teller.give_up_after_us = options_.give_up_after_us;
    tellers_.push_back(std::make_unique<Teller>(teller, &branch_, &clipboard_, std::move(*session)));
  }
  return {};
}

client::Error Demo::trade() {
  began_us_ = bench::steady_now_us();
  std::vector<std::future<void>> running;
  for (const auto& teller : tellers_) {
    running.push_back(std::async(std::launch::async, [&teller] { teller->run(); }));
  }
  client::Error error;
  bool to_kill = server_ && options_.kill;
  while (!error && bench::steady_now_us() < began_us_ + options_.duration_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(kTickUs));
    tell();
    if (!options_.console.empty() && server_->has_ended()) {
      tell("somebody killed the server");
      error = restart(bench::steady_now_us());
      continue;
    }
    if (!to_kill || bench::steady_now_us() < began_us_ + options_.duration_us / 2) continue;
    to_kill = false;
    error = kill_and_restart();
  }
  clipboard_.closing = true;
  report_.elapsed_us = bench::steady_now_us() - began_us_;
  tell("closing: waiting for the last answers");
  for (auto& teller : running) teller.wait();
  report_.books = Books(branch_.accounts.size());
  for (const auto& teller : tellers_) report_.books.merge(teller->take_books());
  report_.kill.answers_after_us = clipboard_.longest_silence_us();
  return error;
}

client::Error Demo::kill_and_restart() {
  const std::int64_t killed_us = bench::steady_now_us();
  server_->kill();
  tell("killed the server (SIGKILL) while " + std::to_string(options_.clients) + " clients were using it");
  return restart(killed_us);
}

client::Error Demo::restart(std::int64_t killed_us) {
  if (client::Error error = server_->start_again()) return error;
  ++report_.kill.times;
  report_.kill.at_us = killed_us - began_us_;
  report_.kill.listening_after_us = bench::steady_now_us() - killed_us;
  tell("started the server again on the same data");
  return {};
}

client::Error Demo::audit_books() {
  tell("auditing");
  const std::int64_t start_us = bench::steady_now_us();
  auto audited = audit(client_.get(), options_.give_up_after_us);
  if (!audited) return audited.error();
  report_.audit_us = bench::steady_now_us() - start_us;
  report_.audit = std::move(*audited);
  return {};
}

void Demo::check_books() {
  const Books& books = report_.books;
  const AuditReport& audit = report_.audit;
  Cents held = 0;
  std::uint64_t differing = 0, negative = 0;
  for (std::size_t i = 0; i < branch_.accounts.size(); ++i) {
    const auto balance = audit.balances.find(branch_.accounts[i]);
    const Cents told = (i < branch_.customers ? kOpeningBalance : 0) + books.change[i];
    const bool same = balance != audit.balances.end() && balance->second == told;
    differing += same ? 0 : 1;
    if (balance == audit.balances.end()) continue;
    held += balance->second;
    negative += balance->second < 0 ? 1 : 0;
  }
  const Cents owed = report_.opened + books.paid_in - books.paid_out;
  add_check("Not a cent was lost", held == owed,
            format_amount(held) + " held; opened " + format_amount(report_.opened) + " + paid in " +
                format_amount(books.paid_in) + " - paid out " + format_amount(books.paid_out) + " = " +
                format_amount(owed));
  add_check("Every account holds what its clients were told", differing == 0,
            bench::grouped(branch_.accounts.size()) + " accounts, " + bench::grouped(differing) + " differ");
  add_check("Every balance is the sum of its statement", audit.problem_count == 0,
            bench::grouped(audit.entries) + " entries" + (audit.problems.empty() ? "" : "; " + audit.problems.front()));
  add_check("No balance is below zero", negative == 0, bench::grouped(negative) + " are");
  add_check("No answer stayed unknown", books.total(Ending::unknown) == 0,
            bench::grouped(books.total(Ending::unknown)) + " did");
  std::string surprise = books.first_surprise;
  for (const Activity activity :
       {Activity::transfer, Activity::pay_hot, Activity::salary, Activity::early_withdrawal}) {
    const bool none_made = books.of(activity).of(Ending::made) == 0;  // then the other numbers prove nothing
    if (surprise.empty() && none_made) surprise = std::string(to_string(activity)) + ": none was made";
  }
  add_check("Everything ended as it must", surprise.empty(),
            surprise.empty() ? "waits were paid, overdrafts refused, deadlines kept" : surprise);
}

void Demo::add_check(std::string name, bool holds, std::string detail) {
  report_.checks.push_back({std::move(name), std::move(detail), holds});
}

void Demo::clean_up() {
  tellers_.clear();
  client_.reset();
  if (!server_) return;
  server_->stop();
  if (!options_.data_dir.empty() || !report_.proven()) {
    report_.data_dir = folder_;
    return;
  }
  temporary_->keep(false);
}

void Demo::tell(std::string event) {
  const std::int64_t elapsed_us = began_us_ == 0 ? 0 : bench::steady_now_us() - began_us_;
  progress_({elapsed_us, clipboard_.answers(), std::move(event)});
}

}  // namespace

bool DemoReport::proven() const {
  return !checks.empty() && std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.holds; });
}

client::Expected<DemoReport> run_demo(const DemoOptions& options,
                                      const std::function<void(const DemoProgress&)>& progress) {
  return Demo(options, progress).run();
}

}  // namespace kilokv::bank
