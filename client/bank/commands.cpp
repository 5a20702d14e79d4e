// Role: see commands.hpp.
#include "client/bank/commands.hpp"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <random>
#include <vector>

#include "client/bank/audit.hpp"
#include "client/command_line/error_report.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bank {
namespace {

struct Line {
  std::uint64_t version;
  Cents amount;
  std::string id, kind, counterpart;
};

std::string utc(std::int64_t epoch_us) {
  const std::time_t time = epoch_us / 1'000'000;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&time, &parts) == nullptr) return "?";
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts)};
}

Cents read_amount(const client::Results& results, std::size_t read) {
  const client::ValueView value = results.read(0, read).value;
  return std::holds_alternative<std::int64_t>(value) ? std::get<std::int64_t>(value) : 0;
}

void print_done(const Movement& movement, const client::Results& results) {
  std::cout << movement.account << " " << format_amount(read_amount(results, 0)) << "\n";
  if (movement.kind == Kind::transfer) {
    std::cout << movement.counterpart << " " << format_amount(read_amount(results, 1)) << "\n";
  }
}

// Sets `entries` to the last `lines` entries, in the order of their commits. Returns how many entries there are.
client::Expected<std::size_t> last_entries(client::Client* client, const std::string& account, std::uint32_t lines,
                                           std::vector<Line>* entries) {
  const std::string from = std::string(kEntryPrefix) + account + "/";
  const std::string to = std::string(kEntryPrefix) + account + "0";  // the byte after '/'
  const auto later = [](const Line& a, const Line& b) { return a.version > b.version; };
  std::size_t count = 0;
  const auto visit = [&](const client::Pair& pair) {
    const auto entry = parse_entry_key(pair.key);
    const auto* amount = std::get_if<std::int64_t>(&pair.value);
    if (!entry || amount == nullptr) return;
    ++count;
    entries->push_back(
        {pair.version, *amount, std::string(entry->id), std::string(entry->kind), std::string(entry->counterpart)});
    std::push_heap(entries->begin(), entries->end(), later);
    if (entries->size() <= lines) return;
    std::pop_heap(entries->begin(), entries->end(), later);
    entries->pop_back();
  };
  const auto restart = [&] {
    entries->clear();
    count = 0;
  };
  const auto timeout_us = static_cast<std::int64_t>(client->options().request_timeout_us);
  const auto position = bench::scan_steadily(client, from, to, restart, visit, timeout_us);
  if (!position) return position.error();
  std::sort_heap(entries->begin(), entries->end(), later);
  std::reverse(entries->begin(), entries->end());
  return count;
}

}  // namespace

ExitCode report_error(const client::Error& error) { return client::report_error("kilokv-bank", "--timeout", error); }

ExitCode move_money(client::Client* client, Movement movement) {
  auto session = client->open_session();
  if (!session) return report_error(session.error());
  EntryIds ids(std::random_device{}());
  MovementWriter writer;
  client::Batch batch;
  movement.return_balance = true;
  writer.append(movement, ids.next(entry_clock_us()), &batch);
  client::CallOptions call;
  call.timeout_us = client->options().request_timeout_us + movement.wait_us;
  const auto answer = (*session)->execute(batch, call);
  if (!answer) return report_error(answer.error());
  const client::ResultView result = answer->results.at(0);
  if (refusal_of(movement, result) != Refusal::none) {
    std::cerr << "refused: " << explain(movement, result) << "\n";
    return ExitCode::not_done;
  }
  print_done(movement, answer->results);
  return ExitCode::ok;
}

ExitCode print_statement(client::Client* client, const std::string& account, std::uint32_t lines) {
  const auto balance = client->get({std::string(kAccountPrefix) + account});
  if (!balance) return report_error(balance.error());
  if (std::holds_alternative<std::monostate>(balance->read(0, 0).value)) {
    std::cerr << "refused: there is no account " << account << "\n";
    return ExitCode::not_done;
  }
  std::vector<Line> entries;
  const auto count = last_entries(client, account, lines, &entries);
  if (!count) return report_error(count.error());
  bench::Table table({"sent (UTC)", "version", "amount", "what", "with"});
  for (const Line& line : entries) {
    table.row({utc(entry_time_us(line.id)), std::to_string(line.version), format_amount(line.amount), line.kind,
               line.counterpart});
  }
  std::cout << table.render() << "balance " << format_amount(read_amount(*balance, 0)) << ", the last "
            << entries.size() << " of " << *count << " entries\n";
  return ExitCode::ok;
}

ExitCode print_audit(client::Client* client, std::optional<Cents> expected) {
  const auto report = audit(client, static_cast<std::int64_t>(client->options().request_timeout_us));
  if (!report) return report_error(report.error());
  bool good = report->problem_count == 0;
  std::cout << "boundary " << report->boundary << ": " << bench::grouped(report->balances.size()) << " accounts with "
            << bench::grouped(report->entries) << " entries; total " << format_amount(report->total) << "\n";
  if (report->load_tester_accounts != 0) {
    std::cout << "apart from them: " << bench::grouped(report->load_tester_accounts)
              << " accounts of the load tester with " << format_amount(report->load_tester_total) << "\n";
  }
  for (const std::string& problem : report->problems) std::cout << "WRONG: " << problem << "\n";
  if (report->problem_count > report->problems.size()) {
    std::cout << "WRONG: and " << report->problem_count - report->problems.size() << " more\n";
  }
  if (expected && *expected != report->total) {
    std::cout << "WRONG: expected a total of " << format_amount(*expected) << ", found " << format_amount(report->total)
              << "\n";
    good = false;
  }
  std::cout << (good ? "the books are right\n" : "the books are NOT right\n");
  return good ? ExitCode::ok : ExitCode::not_done;
}

}  // namespace kilokv::bank
