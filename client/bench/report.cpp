// Role: see report.hpp.
#include "client/bench/report.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/bench/report_json.hpp"
#include "client/bench/warnings.hpp"
#include "client/command_line/arguments.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

using client::Outcome;
using Json = nlohmann::ordered_json;

double per_second(std::uint64_t count, std::int64_t microseconds) {
  return microseconds == 0 ? 0 : static_cast<double>(count) * 1e6 / static_cast<double>(microseconds);
}

std::string rate(std::uint64_t count, std::int64_t microseconds) {
  return grouped(static_cast<std::uint64_t>(per_second(count, microseconds)));
}

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

const char* order_name(engine::PairOrder order) {
  switch (order) {
    case engine::PairOrder::withdrawals_first: return "withdrawals-first";
    case engine::PairOrder::precedence: return "precedence";
    case engine::PairOrder::deposits_first: return "deposits-first";
  }
  return "?";
}

Json latency_json(const Histogram& latency_us) {
  return {{"p50", latency_us.quantile(0.5)},    {"p90", latency_us.quantile(0.9)}, {"p99", latency_us.quantile(0.99)},
          {"p999", latency_us.quantile(0.999)}, {"max", latency_us.max()},         {"mean", latency_us.mean()}};
}

Json outcomes_json(const Counts& counts) {
  return {{"committed", counts.of(Outcome::committed)},         {"guard_failed", counts.of(Outcome::guard_failed)},
          {"wait_expired", counts.of(Outcome::wait_expired)},   {"overflow", counts.of(Outcome::overflow)},
          {"type_mismatch", counts.of(Outcome::type_mismatch)}, {"cancelled", counts.of(Outcome::cancelled)}};
}

std::string title(const RunOptions& options) {
  std::string text = options.workload.name + ", " + grouped(options.workload.keys) + " keys " +
                     to_string(options.workload.distribution) + "; ";
  text += options.unary ? "one transaction a call"
                        : "batches of " + grouped(options.batch_size) + " (" + encoding_name(options) + ")";
  text += "; " + std::to_string(options.connections) + (options.connections == 1 ? " connection" : " connections") +
          " x " + std::to_string(options.in_flight) + " in flight; ";
  text += options.rate_per_s > 0 ? "open loop at " + grouped(static_cast<std::uint64_t>(options.rate_per_s)) + "/s"
                                 : "closed loop";
  return text + "; " + seconds(options.duration_us, 1) + " after " + seconds(options.warmup_us, 1) + " of warm-up";
}

Json config_json(const RunOptions& options) {
  Json config = {{"workload", options.workload.name},
                 {"keys", options.workload.keys},
                 {"distribution", to_string(options.workload.distribution)},
                 {"seed", options.workload.seed},
                 {"encoding", encoding_name(options)},
                 {"batch_size", options.batch_size},
                 {"connections", options.connections},
                 {"in_flight", options.in_flight},
                 {"rate_per_s", options.rate_per_s > 0 ? Json(options.rate_per_s) : Json(nullptr)},
                 {"duration_us", options.duration_us},
                 {"warmup_us", options.warmup_us},
                 {"give_up_after_us", options.give_up_after_us},
                 {"history", !options.history_path.empty()}};
  if (options.server_batch_max != 0) config["batch_max_transactions"] = options.server_batch_max;
  if (engine::Workload::kind(options.workload.name).has_pairs) {
    config["wait_share"] = options.workload.semantic.wait_share;
    config["wait_timeout_us"] = options.workload.semantic.wait_timeout_us;
    config["pair_order"] = order_name(options.workload.semantic.order);
  }
  if (uses(options.workload.name, WorkloadFlag::read_only_share)) {
    config["read_only_share"] = options.workload.semantic.read_only_share;
  }
  if (uses(options.workload.name, WorkloadFlag::value_size))
    config["value_size_bytes"] = options.workload.ycsb.payload_bytes;
  return config;
}

Json cpu_json(const CpuUse& cpu) {
  if (!cpu.known) return nullptr;
  const bool is_hidden = cpu.place == ServerPlace::hidden;
  return {{"cores", cpu.cores},
          {"client_share", cpu.client},
          {"client_thread_share", cpu.busiest_thread},
          {"client_machine_share", cpu.client_machine},
          {"server_machine_share", cpu.place == ServerPlace::here ? Json(cpu.server) : Json(nullptr)},
          {"others_share", is_hidden ? Json(nullptr) : Json(cpu.others)},
          {"steal_share", cpu.steal},
          {"idle_share", cpu.idle}};
}

Json server_batches_json(const ServerBatches& server) {
  if (server.batches == 0) return nullptr;
  return {{"batches", server.batches}, {"transactions", server.transactions}, {"mean_size", server.mean_size()}};
}

Json warnings_json(const RunReport& report) {
  Json json = Json::array();
  for (const Warning& warning : warnings_of(report)) json.push_back({{"code", warning.code}, {"text", warning.text}});
  return json;
}

Json refusals_json(const RunReport& report) {
  if (report.options.unary) return nullptr;  // a call without a session does not tell
  const client::Refusals& refusals = report.whole.refusals;
  return {{"count", refusals.count},
          {"early", refusals.early},
          {"asked_seconds", static_cast<double>(refusals.asked_us) / 1e6},
          {"waited_seconds", static_cast<double>(refusals.waited_us) / 1e6}};
}

}  // namespace

const char* encoding_name(const RunOptions& options) {
  if (options.unary) return "unary";
  return options.encoding == client::Encoding::columns ? "columns" : "rows";
}

double committed_per_s(const RunReport& report) {
  return per_second(report.measured.counts.of(Outcome::committed), report.measured_us);
}

Json to_json(const RunReport& report) {
  const Counts& measured = report.measured.counts;
  Json json = outcomes_json(measured);
  json["committed_per_s"] = committed_per_s(report);
  json["errors"] = report.whole.errors;
  json["unknown"] = report.whole.unknown;
  json["due"] = report.options.rate_per_s > 0 ? Json(report.whole.due) : Json(nullptr);
  json["sent"] = report.whole.sent;
  json["not_sent"] = report.whole.not_sent;
  json["requests_sent_again"] = report.whole.retries;
  const bool is_open = report.options.rate_per_s > 0;
  json["in_flight_full_share"] = is_open && !report.options.unary ? Json(full_share(report)) : Json(nullptr);
  json["in_flight_filled_share"] = is_open ? Json(nullptr) : Json(filled_share(report));
  json["refusals"] = refusals_json(report);
  json["measured_seconds"] = static_cast<double>(report.measured_us) / 1e6;
  json["latency_us"] = latency_json(report.measured.latency_us);
  json["longest_gap_us"] = report.measured.longest_gap_us;
  json["whole_run"] = outcomes_json(report.whole);
  json["whole_run"]["requests"] = report.whole.requests;
  json["load"] = {{"written", report.load.written},
                  {"there_already", report.load.there_already},
                  {"seconds", static_cast<double>(report.load.elapsed_us) / 1e6}};
  json["verified"] = {{"invariant", report.state.statement},
                      {"holds", report.checked ? Json(report.state.violation.empty()) : Json(nullptr)},
                      {"violation", report.state.violation},
                      {"records", report.state.records},
                      {"total", report.state.total},
                      {"boundary", report.state.boundary}};
  json["cpu"] = cpu_json(report.cpu);
  json["server_batches"] = server_batches_json(report.batches);
  json["warnings"] = warnings_json(report);
  json["failure"] = report.failure.empty() ? Json(nullptr) : Json(report.failure);
  json["interrupted_by"] = report.interrupted_by != 0 ? Json(report.interrupted_by) : Json(nullptr);
  json["config"] = config_json(report.options);
  json["server"] = {
      {"version", report.server.version}, {"strategy", report.server.strategy}, {"device", report.server.device}};
  json["hardware"] = {{"cpu", cpu_model()}, {"cores", std::thread::hardware_concurrency()}};
  json["commit"] = client::kCommit;
  return json;
}

std::string json_text(const RunReport& report) { return to_json(report).dump(2); }
std::string json_text(const std::vector<RunReport>& reports) {
  Json json = Json::array();
  for (const RunReport& report : reports) json.push_back(to_json(report));
  return json.dump(2);
}
std::string config_text(const RunOptions& options) { return config_json(options).dump(); }

std::string warning_lines(const std::vector<RunReport>& reports, const std::string& indent) {
  std::string text;
  for (const std::string& warning : merged_warnings(reports)) {
    text.append(indent).append("warning  ").append(warning).append("\n");
  }
  return text;
}

std::string to_text(const RunReport& report) {
  const Counts& counts = report.measured.counts;
  Table table({"outcome", "transactions", "per second"});
  for (std::size_t i = 1; i < kOutcomes; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (counts.of(outcome) == 0 && outcome != Outcome::committed) continue;
    table.row({client::to_string(outcome), grouped(counts.of(outcome)), rate(counts.of(outcome), report.measured_us)});
  }
  const Histogram& latency = report.measured.latency_us;
  std::string text = title(report.options) + "\n\n" + table.render("  ") + "\n  latency  ";
  for (const auto& [name, fraction] : {std::pair("p50 ", 0.5), {"p90 ", 0.9}, {"p99 ", 0.99}, {"p99.9 ", 0.999}}) {
    text += name + short_duration(latency.quantile(fraction)) + "  ";
  }
  text += "max " + short_duration(latency.max()) + "\n";
  text += "  errors " + grouped(report.whole.errors) + "  unknown " + grouped(report.whole.unknown) +
          "  requests sent again " + grouped(report.whole.retries);
  if (report.whole.not_sent != 0) text += "  due but not sent " + grouped(report.whole.not_sent);
  if (report.interrupted_by != 0) {
    text += "\n  ended    by signal " + std::to_string(report.interrupted_by) + ", " + seconds(report.measured_us, 1) +
            " of " + seconds(report.options.duration_us, 1) + " measured";
  }
  const std::string warnings = warning_lines({report}, "  ");
  if (!report.checked) return text + "\n  check    did not run\n" + warnings;
  text += "\n  check    " + report.state.statement + ": " +
          (report.state.violation.empty() ? "holds" : "VIOLATED: " + report.state.violation) + " (" +
          grouped(report.state.records) + " records at boundary " + grouped(report.state.boundary) + ")\n";
  return text + warnings;
}

std::string sweep_table(const std::vector<RunReport>& reports) {
  Table table({"workload", "keys", "distribution", "as", "batch", "conns", "in flight", "rate/s", "committed/s",
               "not committed/s", "p50", "p99", "p99.9", "check"});
  for (const RunReport& report : reports) {
    const RunOptions& options = report.options;
    const Counts& counts = report.measured.counts;
    const std::uint64_t committed = counts.of(Outcome::committed);
    const Histogram& latency = report.measured.latency_us;
    table.row({options.workload.name, grouped(options.workload.keys), to_string(options.workload.distribution),
               encoding_name(options), grouped(options.batch_size), std::to_string(options.connections),
               std::to_string(options.in_flight),
               options.rate_per_s > 0 ? grouped(static_cast<std::uint64_t>(options.rate_per_s)) : "closed",
               rate(committed, report.measured_us), rate(counts.answered() - committed, report.measured_us),
               short_duration(latency.quantile(0.5)), short_duration(latency.quantile(0.99)),
               short_duration(latency.quantile(0.999)),
               std::string(report.failure.empty() ? "holds" : "FAILED") +
                   (report.interrupted_by != 0 ? ", ended early" : "")});
  }
  return table.render() + warning_lines(reports, "");
}

}  // namespace kilokv::bench
