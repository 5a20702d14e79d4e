#include "engine/bench/compare_report.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/machine.hpp"
#include "engine/bench/report.hpp"

namespace kilokv::engine::bench {

namespace {

void write_options(JsonWriter* json, const CompareReport& report) {
  const CompareOptions& options = report.options;
  json->string("figures", options.figures);
  json->string("preset", options.preset);
  json->string("device", options.device);
  json->integer("seed", options.seed);
  json->integer("batch_transactions", options.batch_transactions);
  json->integer("repeats", options.repeats);
  json->number("seconds_each", options.duration_seconds);
  json->integer("verify_batches", options.verify_batches);
  json->begin_array("strategies");
  for (const std::string& strategy : options.strategies) json->string({}, strategy);
  json->end_array();
  json->string("throughput",
               "transactions a second that ended in an outcome of their own, without expired ones; the time is that of "
               "execution only; median, min and max over the repeats");
  json->string("verified",
               "before each point, on its engine: verify_batches batches by the referee, with every record "
               "that they name; after it: the invariant");
}

void write_setting(JsonWriter* json, const CompareSetting& setting) {
  json->integer("threads", setting.threads);
  json->integer("records_per_lock", setting.records_per_lock);
  json->number("semantic_share", setting.semantic_share);
  json->number("read_only_share", setting.read_only_share);
  json->number("update_share", setting.update_share);
  json->integer("operations", setting.operations);
  json->number("theta", setting.theta);
  json->integer("concurrency_limit", setting.concurrency_limit);
}

void write_counts(JsonWriter* json, const WorkloadReport& report) {
  const Counts& counts = report.counts;
  const ExecutionTotals& of = report.execution;
  json->integer("transactions", counts.transactions);
  json->integer("batches", counts.batches);
  json->integer("passes", counts.passes);
  json->integer("writes", counts.writes);
  json->integer("committed", counts.committed);
  json->integer("guard_failed", counts.guard_failed);
  json->integer("expired", counts.wait_expired + counts.postponed);
  json->number("aborts_per_commit", report.aborts_per_commit());
  json->integer("postponed", of.postponed);
  write_counters(json, of);
  json->integer("serial_batches", of.serial_batches);
  json->integer("device_batches", of.device_batches);
}

void write_point(JsonWriter* json, const ComparePanel& panel, const ComparePoint& point) {
  json->begin_object();
  json->number("x", point.value);
  json->string("at", panel.value_name(point.value));
  json->string("workload", point.setting.workload);
  json->string("graph", std::string(1, point.graph.letter));
  json->string("order", to_string(point.graph.kind));
  json->string("strategy", point.strategy);
  write_setting(json, point.setting);
  json->integer("keys", point.report.workload.keys);
  json->string("ran_on", point.report.device.name);
  json->number("median", median_of(point.per_second));
  json->number("min", least_of(point.per_second));
  json->number("max", most_of(point.per_second));
  json->begin_array("repeats");
  for (const double one : point.per_second) json->number({}, one);
  json->end_array();
  json->number("seconds", point.report.seconds);
  write_counts(json, point.report);
  write_times(json, point.timed);
  json->integer("warm_up_transactions", point.warmed_up);
  json->integer("verified_transactions", point.verified);
  json->string("invariant", point.report.invariant);
  json->end_object();
}

void write_panels(JsonWriter* json, const std::vector<PanelResult>& results) {
  json->begin_array("panels");
  for (const PanelResult& result : results) {
    json->begin_object();
    json->string("figure", result.panel.figure);
    json->string("workload", result.panel.workload_name());
    json->string("axis", to_string(result.panel.axis));
    json->number("read_only_share", result.panel.read_only_share);
    json->number("update_share", result.panel.update_share);
    json->integer("operations", result.panel.operations);
    json->begin_array("points");
    for (const ComparePoint& point : result.points) write_point(json, result.panel, point);
    json->end_array();
    json->end_object();
  }
  json->end_array();
}

// Says which graph of which figure it is about. Ratios and claims begin alike.
void write_place(JsonWriter* json, const ComparePanel& panel, char letter, const std::string& strategy) {
  json->string("figure", panel.figure);
  json->string("graph", std::string(1, letter));
  json->string("workload", panel.workload_name());
  json->string("order", to_string(panel.graph(letter).kind));
  json->number("read_only_share", panel.read_only_share);
  json->number("update_share", panel.update_share);
  json->integer("operations", panel.operations);
  json->string("axis", to_string(panel.axis));
  json->string("strategy", strategy);
}

void write_ratios(JsonWriter* json, const CompareReport& report) {
  json->begin_array("ratios");
  for (const CompareRatio& ratio : report.ratios) {
    json->begin_object();
    json->string("kind", ratio.kind);
    write_place(json, report.results[ratio.panel].panel, ratio.graph, ratio.strategy);
    json->number("x", ratio.value);
    json->number("semantic_share", ratio.semantic_share);
    json->exact("ratio", ratio.ratio);  // the worst of a claim is one of these numbers
    json->end_object();
  }
  json->end_array();
}

void write_claims(JsonWriter* json, const CompareReport& report) {
  json->begin_array("claims");
  for (const CompareClaim& claim : report.claims) {
    json->begin_object();
    json->string("claim", claim.claim);
    write_place(json, report.results[claim.panel].panel, claim.graph, claim.strategy);
    json->number("limit", claim.limit);
    json->boolean("at_least", claim.at_least);
    json->exact("worst", claim.worst);  // it decides whether the claim holds, so it is not rounded
    json->number("worst_at", claim.worst_at);
    json->string("worst_at_name", report.results[claim.panel].panel.value_name(claim.worst_at));
    json->number("median", claim.median);
    json->number("mean", claim.mean);
    json->boolean("on_average", claim.on_average);
    json->boolean("holds", claim.holds());
    json->end_object();
  }
  json->end_array();
}

}  // namespace

std::string compare_json(const CompareReport& report) {
  JsonWriter json;
  json.begin_object();
  json.string("format", kCompareFormat);
  json.string("date", report.date);
  json.string("command", report.command);
  json.number("seconds", report.seconds);
  write_machine(&json);
  write_options(&json, report);
  write_panels(&json, report.results);
  write_ratios(&json, report);
  write_claims(&json, report);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace kilokv::engine::bench
