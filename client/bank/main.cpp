// kilokv-bank: a bank ledger on KiloKV. Commands: commands.hpp; the demo: demo.hpp; the keys: ledger.hpp.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <system_error>

#include "client/bank/commands.hpp"
#include "client/bank/demo_report.hpp"
#include "client/command_line/arguments.hpp"
#include "client/command_line/server_flags.hpp"
#include "client/own_server/server_process.hpp"

namespace {

namespace bank = kilokv::bank;
namespace client = kilokv::client;
using bank::Cents;
using client::ExitCode;

struct Flags {
  const client::ServerFlags* server = nullptr;
  std::string account, counterpart;
  Cents amount = 0;
  std::int64_t wait_us = 0, timeout_us = 10'000'000;
  std::uint32_t lines = 20;
  std::optional<Cents> expected;
  bank::DemoOptions demo;
  std::string json_path;
};

void add_duration(CLI::App* command, const std::string& name, std::int64_t* value, std::int64_t min_us,
                  const std::string& text) {
  command->add_option(name, *value, text)->transform(client::duration(min_us))->type_name("DURATION");
}

// Replaces the text of an amount by its cents.
CLI::Validator amount() {
  const auto read = [](std::string& text) {
    const auto cents = bank::parse_amount(text);
    if (!cents) return "\"" + text + "\" " + bank::amount_problem(text);
    text = std::to_string(*cents);
    return std::string();
  };
  return {read, ""};
}

template <class T>  // Cents, or std::optional<Cents>
CLI::Option* add_amount(CLI::App* command, const std::string& name, T* value, const std::string& text) {
  return command->add_option(name, *value, text)->transform(amount())->type_name("AMOUNT");
}

CLI::Option* add_account(CLI::App* command, const std::string& name, std::string* value) {
  const auto check = [](const std::string& word) {
    return bank::valid_account(word) ? std::string()
                                     : word + " is not the name of an account: 1 to 64 of A-Z a-z 0-9 . _ -";
  };
  return command->add_option(name, *value)->required()->check(CLI::Validator(check, ""));
}

ExitCode wrong_usage(const std::string& what) {
  std::cerr << "kilokv-bank: " << what << "\n";
  return ExitCode::usage;
}

ExitCode wrong_flags(const client::Error& error) {
  wrong_usage(error.message);
  return client::exit_code_before_sending(error.code);
}

ExitCode with_client(Flags* flags, const std::function<ExitCode(client::Client*)>& command) {
  client::ClientOptions options;
  if (const client::Error error = flags->server->apply(&options)) return wrong_flags(error);
  options.request_timeout_us = static_cast<std::uint64_t>(flags->timeout_us);
  options.connect_timeout_us = options.request_timeout_us;
  auto connected = client::Client::connect(options);
  return connected ? command(connected->get()) : bank::report_error(connected.error());
}

ExitCode move_money(Flags* flags, bank::Kind kind) {
  if (flags->amount == 0 && kind != bank::Kind::opened) return wrong_usage("amount: it must be more than 0.00");
  if (kind == bank::Kind::transfer && flags->account == flags->counterpart) {
    return wrong_usage("to: it is the account that pays, " + flags->account + ": a transfer needs two accounts");
  }
  bank::Movement movement;
  movement.kind = kind;
  movement.account = flags->account;
  movement.counterpart = flags->counterpart;
  movement.amount = flags->amount;
  movement.wait_us = static_cast<std::uint64_t>(flags->wait_us);
  return with_client(flags, [&](client::Client* client) { return bank::move_money(client, movement); });
}

// Says which of the demo's flags cannot work, before the demo starts. Empty if all can.
std::string demo_problem(const Flags& flags) {
  const bank::DemoOptions& options = flags.demo;
  if (options.endpoint.empty() && access(options.server.c_str(), X_OK) != 0) {
    return "--server: cannot run " + options.server + ": " + std::generic_category().message(errno);
  }
  if (options.endpoint.empty() && !options.data_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.data_dir, error);
    if (error) return "--data-dir: cannot make " + options.data_dir + ": " + error.message();
    if (access(options.data_dir.c_str(), W_OK) != 0) {
      return "--data-dir: cannot write " + options.data_dir + ": " + std::generic_category().message(errno);
    }
  }
  const bool to_file = !flags.json_path.empty() && flags.json_path != "-";
  if (to_file && !std::ofstream(flags.json_path, std::ios::app)) {
    return "--json: cannot write " + flags.json_path + ": " + std::generic_category().message(errno);
  }
  return {};
}

ExitCode demo(Flags* flags) {
  bank::DemoOptions& options = flags->demo;
  if (flags->server->endpoint_given()) {
    client::ClientOptions client;
    if (const client::Error error = flags->server->apply(&client)) return wrong_flags(error);
    options.endpoint = client.endpoint;
    options.wait_for_server_us = client.wait_for_server_us;
    options.tls = client.tls;
    options.token = client.token;
  }
  if (options.server.empty()) options.server = kilokv::own_server::find_server();
  if (const std::string problem = demo_problem(*flags); !problem.empty()) return wrong_usage(problem);
  bank::ProgressPrinter printer(isatty(STDERR_FILENO) != 0, options.duration_us);
  const auto report = bank::run_demo(options, [&](const bank::DemoProgress& progress) { printer.print(progress); });
  printer.finish();
  if (!report) return bank::report_error(report.error());
  if (flags->json_path != "-") std::cout << bank::to_text(*report);
  const std::string json = bank::json_text(*report) + "\n";
  if (flags->json_path == "-") std::cout << json;
  if (!flags->json_path.empty() && flags->json_path != "-" &&
      !(std::ofstream(flags->json_path) << json << std::flush)) {
    std::cerr << "kilokv-bank: --json: cannot write " << flags->json_path << "\n";
    return ExitCode::other;
  }
  return report->proven() ? ExitCode::ok : ExitCode::not_done;
}

void add_movements(CLI::App* app, Flags* flags, std::function<ExitCode()>* chosen) {
  const auto movement = [&](const std::string& name, const std::string& text, bank::Kind kind) {
    CLI::App* command = client::add_subcommand(app, name, text);
    add_account(command, kind == bank::Kind::transfer ? "from" : "account", &flags->account);
    if (kind == bank::Kind::transfer) add_account(command, "to", &flags->counterpart);
    command->callback([=] { *chosen = [=] { return move_money(flags, kind); }; });
    return command;
  };
  CLI::App* open = movement("open", "Open an account", bank::Kind::opened);
  add_amount(open, "--balance", &flags->amount, "balance at the start; default 0.00");
  CLI::App* deposit = movement("deposit", "Pay money in", bank::Kind::deposit);
  CLI::App* withdraw = movement("withdraw", "Take money out", bank::Kind::withdrawal);
  CLI::App* transfer = movement("transfer", "Move money between two accounts", bank::Kind::transfer);
  for (CLI::App* command : {deposit, withdraw, transfer}) {
    add_amount(command, "amount", &flags->amount, "amount of money, such as 12.34")->required();
  }
  for (CLI::App* command : {withdraw, transfer}) {
    add_duration(command, "--wait", &flags->wait_us, 0,
                 "longest time to wait on the server for the money, such as 3s; default: refuse at once");
  }
}

void add_reports(CLI::App* app, Flags* flags, std::function<ExitCode()>* chosen) {
  CLI::App* statement =
      client::add_subcommand(app, "statement", "Print the last entries of an account, and its balance");
  add_account(statement, "account", &flags->account);
  statement->add_option("--lines", flags->lines, "most entries that are printed")
      ->capture_default_str()
      ->transform(client::whole_number(1, 1'000'000));
  statement->callback([=] {
    *chosen = [=] {
      return with_client(flags,
                         [=](client::Client* c) { return bank::print_statement(c, flags->account, flags->lines); });
    };
  });
  CLI::App* audit =
      client::add_subcommand(app, "audit", "Check all books at one moment: balances, statements, transfers");
  add_amount(audit, "--expect", &flags->expected,
             "fail unless the accounts of the bank hold this sum; accounts of the load tester do not count");
  audit->callback([=] {
    *chosen = [=] {
      return with_client(flags, [=](client::Client* c) { return bank::print_audit(c, flags->expected); });
    };
  });
}

void add_demo(CLI::App* app, Flags* flags, std::function<ExitCode()>* chosen) {
  CLI::App* command = client::add_subcommand(
      app, "demo", "Run many clients, kill the server in the middle, and prove by an audit that not a cent was lost");
  bank::DemoOptions& options = flags->demo;
  command->footer(
      "The demo starts its own server, and kills it. With --endpoint HOST:PORT it uses a running server instead, and\n"
      "does not kill it. The demo ignores the environment variable KILOKV_ENDPOINT.");
  command->add_option("--server", options.server,
                      "path of the kilokvd to start; default: kilokvd in the folder of this program, else on PATH");
  command->add_option("--data-dir", options.data_dir,
                      "data folder of the server that the demo starts; default: a temporary folder");
  add_duration(command, "--duration", &options.duration_us, 1, "time for which the clients work; default 10s");
  command->add_option("--clients", options.clients, "number of clients, each with its own session")
      ->capture_default_str()
      ->transform(client::whole_number(1, 1024));
  command->add_option("--accounts", options.accounts, "number of customers, each with one account")
      ->capture_default_str()
      ->transform(client::whole_number(2, 1'000'000));
  command->add_option("--batch-size", options.request_transactions, "number of transactions in each request")
      ->capture_default_str()
      ->transform(client::whole_number(4, 1024));
  command->add_option("--seed", options.seed, "seed of the random choices that clients make")
      ->transform(client::whole_number())
      ->capture_default_str();
  command
      ->add_option("--console", options.console,
                   "address of the console of the demo's own server: a page in the browser, with a button that kills "
                   "the server; the demo then starts it again")
      ->option_text("HOST:PORT, such as 127.0.0.1:7071");
  command->add_flag("--kill,!--no-kill", options.kill,
                    "kill and restart the server after half of the duration (the default)");
  command->add_option("--json", flags->json_path,
                      "write the report as JSON to this file; -: standard output, instead of the table");
  command->callback([=] { *chosen = [=] { return demo(flags); }; });
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  std::function<ExitCode()> chosen;
  const auto app = client::make_app("A bank ledger on KiloKV. Amounts are exact to the cent: 12.34.", "kilokv-bank");
  client::add_version_flag(app.get());
  app->require_subcommand(1);
  app->fallthrough();
  const client::ServerFlags server(app.get(), "--wait-for-server");  // --wait is for money
  flags.server = &server;
  add_duration(app.get(), "--timeout", &flags.timeout_us, 1, "longest time for a call, retries included; default 10s");
  app->footer(
      "Exit codes: 0 done; 1 refused, or the books are wrong; 2 wrong usage; 3 the server refused the input;\n"
      "4 no server, no answer in time, or a full server; 5 any other error.\n"
      "Example: kilokv-bank open alice --balance 100.00 && kilokv-bank withdraw alice 12.34 --wait 3s");
  add_movements(app.get(), &flags, &chosen);
  add_reports(app.get(), &flags, &chosen);
  add_demo(app.get(), &flags, &chosen);
  client::add_help_command(app.get());
  if (const auto code = client::parse_arguments(app.get(), argc, argv)) return *code;
  const int code = static_cast<int>(chosen());
  if (std::cout.flush()) return code;
  std::cerr << "kilokv-bank: cannot write to standard output: the output is lost\n";
  return static_cast<int>(ExitCode::other);
}
