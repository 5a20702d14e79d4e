// csv_text() of report.hpp.
#include <array>

#include "client/bench/report.hpp"
#include "client/bench/warnings.hpp"
#include "client/command_line/arguments.hpp"
#include "client/measure/csv.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

using client::Outcome;

struct Column {
  const char* name;
  std::string (*cell)(const RunReport& report);
};

std::string text(std::uint64_t number) { return std::to_string(number); }
std::string outcome(const RunReport& report, Outcome outcome) { return text(report.measured.counts.of(outcome)); }
std::string quantile(const RunReport& report, double fraction) {
  return std::to_string(report.measured.latency_us.quantile(fraction));
}

std::string codes(const RunReport& report) {
  std::string codes;
  for (const Warning& warning : warnings_of(report)) codes += (codes.empty() ? "" : " ") + warning.code;
  return codes;
}

std::string holds(const RunReport& report) {
  if (!report.checked) return {};
  return report.state.violation.empty() ? "true" : "false";
}

using Report = const RunReport&;
constexpr std::array<Column, 33> kColumns = {{
    {"workload", [](Report r) { return r.options.workload.name; }},
    {"keys", [](Report r) { return text(r.options.workload.keys); }},
    {"distribution", [](Report r) { return to_string(r.options.workload.distribution); }},
    {"encoding", [](Report r) { return std::string(encoding_name(r.options)); }},
    {"batch_size", [](Report r) { return text(r.options.batch_size); }},
    {"batch_max_transactions",
     [](Report r) { return r.options.server_batch_max != 0 ? text(r.options.server_batch_max) : std::string(); }},
    {"connections", [](Report r) { return text(r.options.connections); }},
    {"in_flight", [](Report r) { return text(r.options.in_flight); }},
    {"rate_per_s", [](Report r) { return r.options.rate_per_s > 0 ? fixed(r.options.rate_per_s, 3) : std::string(); }},
    {"repeat", [](Report r) { return text(r.repeat); }},
    {"measured_seconds", [](Report r) { return fixed(static_cast<double>(r.measured_us) / 1e6, 6); }},
    {"committed_per_s", [](Report r) { return fixed(committed_per_s(r), 1); }},
    {"committed", [](Report r) { return outcome(r, Outcome::committed); }},
    {"guard_failed", [](Report r) { return outcome(r, Outcome::guard_failed); }},
    {"wait_expired", [](Report r) { return outcome(r, Outcome::wait_expired); }},
    {"overflow", [](Report r) { return outcome(r, Outcome::overflow); }},
    {"type_mismatch", [](Report r) { return outcome(r, Outcome::type_mismatch); }},
    {"cancelled", [](Report r) { return outcome(r, Outcome::cancelled); }},
    {"errors", [](Report r) { return text(r.whole.errors); }},
    {"unknown", [](Report r) { return text(r.whole.unknown); }},
    {"due", [](Report r) { return r.options.rate_per_s > 0 ? text(r.whole.due) : std::string(); }},
    {"not_sent", [](Report r) { return text(r.whole.not_sent); }},
    {"p50_us", [](Report r) { return quantile(r, 0.5); }},
    {"p90_us", [](Report r) { return quantile(r, 0.9); }},
    {"p99_us", [](Report r) { return quantile(r, 0.99); }},
    {"p999_us", [](Report r) { return quantile(r, 0.999); }},
    {"max_us", [](Report r) { return std::to_string(r.measured.latency_us.max()); }},
    {"mean_us", [](Report r) { return fixed(r.measured.latency_us.mean(), 1); }},
    {"holds", holds},
    {"warnings", codes},
    {"server_version", [](Report r) { return r.server.version; }},
    {"server_strategy", [](Report r) { return r.server.strategy; }},
    {"commit", [](Report) { return std::string(client::kCommit); }},
}};

}  // namespace

std::string csv_text(const std::vector<RunReport>& reports) {
  std::vector<std::string> names;
  names.reserve(kColumns.size());
  for (const Column& column : kColumns) names.emplace_back(column.name);
  std::string csv;
  append_csv_row(names, &csv);
  for (const RunReport& report : reports) {
    std::vector<std::string> cells;
    cells.reserve(kColumns.size());
    for (const Column& column : kColumns) cells.push_back(column.cell(report));
    append_csv_row(cells, &csv);
  }
  return csv;
}

}  // namespace kilokv::bench
