// Role: see demo_report.hpp.
#include "client/bank/demo_report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/measure/text.hpp"

namespace kilokv::bank {
namespace {

using bench::grouped;
using bench::seconds;
using bench::short_duration;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kSparseUs = 1'000'000;
constexpr std::int64_t kBarCells = 24;

std::string or_dash(std::uint64_t number) { return number == 0 ? "-" : grouped(number); }

std::uint64_t per_second(std::uint64_t count, std::int64_t microseconds) {
  if (microseconds == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(count) * 1e6 / static_cast<double>(microseconds));
}

std::string activity_table(const DemoReport& report) {
  bench::Table table({"what the clients did", "made", "refused", "expired", "p50", "p99"});
  ActivityCount all;
  for (std::size_t i = 0; i < kActivities; ++i) {
    const ActivityCount& count = report.books.counts[i];
    table.row({to_string(static_cast<Activity>(i)), or_dash(count.of(Ending::made)), or_dash(count.of(Ending::refused)),
               or_dash(count.of(Ending::expired)), short_duration(count.latency_us.quantile(0.5)),
               short_duration(count.latency_us.quantile(0.99))});
    for (std::size_t j = 0; j < kEndings; ++j) all.endings[j] += count.endings[j];
    all.latency_us.merge(count.latency_us);
  }
  table.rule();
  table.row({"all", or_dash(all.of(Ending::made)), or_dash(all.of(Ending::refused)), or_dash(all.of(Ending::expired)),
             short_duration(all.latency_us.quantile(0.5)), short_duration(all.latency_us.quantile(0.99))});
  return table.render("  ");
}

std::string kill_text(const DemoReport& report) {
  const KillReport& kill = report.kill;
  if (kill.times == 0) return "";
  const std::string often = kill.times == 1 ? "" : grouped(kill.times) + " times, the last time ";
  return "  The server was killed (SIGKILL) " + often + "at " + seconds(kill.at_us, 1) + " and listened again " +
         short_duration(kill.listening_after_us) + " later.\n  Cost: no answers for " +
         short_duration(kill.answers_after_us) + "; " + grouped(report.books.sent_again) +
         " calls were sent again under their numbers, and applied once.\n\n";
}

std::string checks_text(const DemoReport& report) {
  std::size_t width = 0;
  for (const Check& check : report.checks) width = std::max(width, check.name.size());
  std::string text = "  Audit: one scan at batch boundary " + grouped(report.audit.boundary) + ", " +
                     short_duration(report.audit_us) + "\n";
  for (const Check& check : report.checks) {
    text += std::string("  [") + (check.holds ? " ok " : "FAIL") + "] " + check.name +
            std::string(width - check.name.size() + 2, ' ') + check.detail + "\n";
  }
  return text;
}

Json to_json(const DemoReport& report) {
  Json activities = Json::object();
  for (std::size_t i = 0; i < kActivities; ++i) {
    const ActivityCount& count = report.books.counts[i];
    activities[to_string(static_cast<Activity>(i))] = {{"made", count.of(Ending::made)},
                                                       {"refused", count.of(Ending::refused)},
                                                       {"expired", count.of(Ending::expired)},
                                                       {"unknown", count.of(Ending::unknown)},
                                                       {"waited", count.waited},
                                                       {"p50_us", count.latency_us.quantile(0.5)},
                                                       {"p99_us", count.latency_us.quantile(0.99)}};
  }
  Json checks = Json::array();
  for (const Check& check : report.checks) {
    checks.push_back({{"name", check.name}, {"holds", check.holds}, {"detail", check.detail}});
  }
  return {
      {"proven", report.proven()},
      {"elapsed_seconds", static_cast<double>(report.elapsed_us) / 1e6},
      {"clients", report.options.clients},
      {"accounts", report.options.accounts},
      {"seed", report.options.seed},
      {"activities", activities},
      {"kill",
       {{"killed", report.kill.times > 0},
        {"times", report.kill.times},
        {"at_us", report.kill.at_us},
        {"listening_after_us", report.kill.listening_after_us},
        {"longest_silence_us", report.kill.answers_after_us},
        {"calls_sent_again", report.books.sent_again}}},
      {"audit",
       {{"boundary", report.audit.boundary}, {"entries", report.audit.entries}, {"total_cents", report.audit.total}}},
      {"checks", checks},
      {"server",
       {{"version", report.server.version}, {"strategy", report.server.strategy}, {"device", report.server.device}}}};
}

}  // namespace

std::string to_text(const DemoReport& report) {
  const Books& books = report.books;
  const std::uint64_t answers = books.total(Ending::made) + books.total(Ending::refused) + books.total(Ending::expired);
  const ActivityCount& early = books.of(Activity::early_withdrawal);
  std::string text = "\n  KiloKV bank: " + grouped(report.options.clients) + " clients, " +
                     grouped(report.options.accounts) + " customers, " + seconds(report.elapsed_us, 1) + " (server " +
                     report.server.version + ", " + report.server.strategy + " on " + report.server.device + ")\n\n" +
                     activity_table(report) + "\n";
  text += "  " + grouped(answers) + " transactions answered, " + grouped(per_second(answers, report.elapsed_us)) +
          " a second, each durable before its answer.\n";
  text += "  " + grouped(early.waited) + " of " + grouped(early.of(Ending::made)) +
          " early withdrawals waited on the server for the batch with their deposit.\n\n";
  text += kill_text(report) + checks_text(report);
  if (!report.data_dir.empty()) text += "\n  Data and log of the server: " + report.data_dir + "\n";
  text += report.proven() ? "\n  Proven: the books are right to the cent.\n\n"
                          : "\n  NOT PROVEN: the books are not right.\n\n";
  return text;
}

std::string json_text(const DemoReport& report) { return to_json(report).dump(2); }

std::string ProgressPrinter::line(const DemoProgress& progress) {
  const std::int64_t done =
      std::clamp<std::int64_t>(progress.elapsed_us * kBarCells / std::max<std::int64_t>(1, duration_us_), 0, kBarCells);
  const std::string bar =
      std::string(static_cast<std::size_t>(done), '#') + std::string(static_cast<std::size_t>(kBarCells - done), '.');
  const std::uint64_t rate = per_second(progress.answers - last_answers_, progress.elapsed_us - last_us_);
  return "[" + bar + "] " + seconds(progress.elapsed_us, 1) + "  " + grouped(progress.answers) + " answered, " +
         grouped(rate) + "/s";
}

void ProgressPrinter::print(const DemoProgress& progress) {
  if (!progress.event.empty()) {
    std::fprintf(stderr, "%s%6.1f s  %s\n", terminal_ ? "\r\x1b[K" : "", static_cast<double>(progress.elapsed_us) / 1e6,
                 progress.event.c_str());
    return;
  }
  if (!terminal_ && progress.elapsed_us < next_us_) return;
  std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", line(progress).c_str());
  next_us_ = progress.elapsed_us + kSparseUs;
  last_us_ = progress.elapsed_us;
  last_answers_ = progress.answers;
}

void ProgressPrinter::finish() {
  if (terminal_) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace kilokv::bank
