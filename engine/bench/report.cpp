#include "engine/bench/report.hpp"

#include <algorithm>

#include "engine/bench/format.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/machine.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr std::size_t kThreadsShownMax = 1024;
std::string threads_text(const BenchOptions& options) {
  return options.threads == 0 ? "a thread for each core" : std::to_string(options.threads) + " thread(s)";
}

std::string header(const BenchOptions& options) {
  const Machine machine = this_machine();
  return format("strategy %s, device %s, %s, batches of %llu, seed %llu\n%s, %u core(s), %s, %s, commit %s\n\n",
                options.strategy.c_str(), options.device.c_str(), threads_text(options).c_str(),
                wide(options.batch_transactions), wide(options.seed), machine.cpu.c_str(), machine.cores,
                machine.compiler.c_str(), machine.build_type.c_str(), machine.commit.c_str());
}

// "12.5% 12.4% ...": the share of each thread.
std::string shares(const std::vector<std::uint64_t>& counts) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  std::string text;
  for (const std::uint64_t count : counts) {
    text += format("%s%.1f%%", text.empty() ? "" : " ",
                   sum == 0 ? 0 : 100.0 * static_cast<double>(count) / static_cast<double>(sum));
  }
  return text;
}

std::string execution_line(const WorkloadReport& report) {
  const ExecutionTotals& of = report.execution;
  std::string text = format(
      "%s: batches: %llu serial, %llu pipelined, %llu partitioned, %llu ordered, %llu in any order (%llu on the "
      "device)",
      report.workload.name.c_str(), wide(of.serial_batches), wide(of.pipelined_batches), wide(of.partitioned_batches),
      wide(of.ordered_batches), wide(of.ticketed_batches), wide(of.device_batches));
  for (const Counter& counter : of.counters) {
    if (counter.value != 0 && !is_time(counter.name)) text += format("; %s %llu", counter.name, wide(counter.value));
  }
  if (of.counter("conflicts") != 0) text += format(" (%.4f conflicts for each commit)", report.aborts_per_commit());
  if (const auto times = of.times(); !times.empty()) {
    text += "; of its threads' time";
    for (const auto& [name, share] : times) text += format(" %.1f%% %s", 100 * share, name.c_str());
  }
  if (of.device_batches > 0) {
    const auto batches = static_cast<double>(of.device_batches);
    text += format("; a batch on the device: %.0f bytes there in %.1f us, kernels %.1f us, %.0f bytes back in %.1f us",
                   static_cast<double>(of.sent_bytes) / batches, of.sent_seconds * 1e6 / batches,
                   of.kernel_seconds * 1e6 / batches, static_cast<double>(of.returned_bytes) / batches,
                   of.returned_seconds * 1e6 / batches);
  }
  if (of.ordered_batches + of.ticketed_batches > 0) {
    text += format("; %llu postponed; ", wide(of.postponed));
    // A device has too many groups for one line.
    const char* const who = of.device_batches > 0 ? "group of threads" : "thread";
    text += of.decided_by.size() <= 32 ? format("decided by %s: ", who) + shares(of.decided_by)
                                       : format("decided by %zu, each a %s", of.decided_by.size(), who);
  }
  if (!report.stats.strategy_choice.empty()) text += "; auto at the end: " + report.stats.strategy_choice;
  return text + "\n";
}

// With --batch-times: a line for each stage of a batch.
std::string stage_lines(const WorkloadReport& report) {
  const StageTimes& stages = report.execution.stages;
  if (stages.sum().all == 0) return {};
  std::string text = format("\n%s: nanoseconds for each transaction\n%-10s %10s %12s %10s\n",
                            report.workload.name.c_str(), "stage", "wall", "all threads", "one alone");
  const double each = 1e9 / static_cast<double>(report.counts.transactions);
  const auto line = [&](const char* name, const StageTime& time) {
    return format("%-10s %10.1f %12.1f %10.1f\n", name, time.wall * each, time.all * each, time.alone * each);
  };
  for_each_stage([&](BatchStage stage) { text += line(to_string(stage), stages.of(stage)); });
  return text + line("sum", stages.sum()) + format("serial share %.3f\n", stages.serial_share());
}

// The settings as they apply. Their names have an underscore for each dash.
void write_settings(JsonWriter* json, const SettingTexts& texts) {
  const auto settings = effective_settings(texts);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    auto [name, text] = settings[i];
    std::replace(name.begin(), name.end(), '-', '_');
    switch (strategy_settings()[i].setting.kind) {
      case SettingKind::number:
      case SettingKind::power_of_two: json->integer(name, setting_number(text)); break;
      case SettingKind::on_off: json->boolean(name, text == "on"); break;
      case SettingKind::form: json->string(name, text); break;
    }
  }
}

// Writes the first fields of every document. The caller closes the object.
void open_document(JsonWriter* json, const BenchOptions& options) {
  json->begin_object();
  json->string("format", "kilokv-engine-bench-1");
  json->string("device", options.device);
  json->string("strategy", options.strategy);
  json->integer("threads", options.threads);
  write_settings(json, options.settings);
  json->integer("batch_transactions", options.batch_transactions);
  json->integer("seed", options.seed);
  write_machine(json);
}

void write_execution(JsonWriter* json, const WorkloadReport& report) {
  const ExecutionTotals& of = report.execution;
  json->begin_object("execution");
  json->string("device", report.device.name);
  json->string("device_model", report.device.model);
  json->string("device_reason", report.device.reason);
  json->string("strategy_choice", report.stats.strategy_choice);
  json->integer("serial_batches", of.serial_batches);
  json->integer("pipelined_batches", of.pipelined_batches);
  json->integer("partitioned_batches", of.partitioned_batches);
  json->integer("ordered_batches", of.ordered_batches);
  json->integer("ticketed_batches", of.ticketed_batches);
  json->integer("device_batches", of.device_batches);
  write_counters(json, of);
  write_times(json, of);
  if (of.stages.sum().all != 0) write_stages(json, "stages", of.stages, report.counts.transactions);
  json->integer("sent_bytes", of.sent_bytes);
  json->integer("returned_bytes", of.returned_bytes);
  json->number("sent_seconds", of.sent_seconds);
  json->number("kernel_seconds", of.kernel_seconds);
  json->number("returned_seconds", of.returned_seconds);
  json->number("aborts_per_commit", report.aborts_per_commit());
  json->integer("postponed", of.postponed);
  json->integer("deciding_threads", of.decided_by.size());
  json->begin_array("decided_by_thread");  // on a device: by group; empty if they are too many
  if (of.decided_by.size() <= kThreadsShownMax) {
    for (const std::uint64_t count : of.decided_by) json->integer({}, count);
  }
  json->end_array();
  json->end_object();
}

double per_record(const EngineStats& stats) {
  const std::size_t records = stats.records + stats.tombstones;
  return records == 0 ? 0 : static_cast<double>(stats.memory_bytes) / static_cast<double>(records);
}

const char* name_of(PairOrder order) {
  switch (order) {
    case PairOrder::withdrawals_first: return "withdrawals-first";
    case PairOrder::precedence: return "precedence";
    case PairOrder::deposits_first: return "deposits-first";
  }
  return "unknown";
}

void write_axes(JsonWriter* json, const WorkloadOptions& workload) {
  json->string("workload", workload.name);
  json->integer("keys", workload.keys);
  json->string("distribution", to_string(workload.distribution));
  if (Workload::kind(workload.name).has_pairs) {
    json->number("wait_share", workload.semantic.wait_share);
    json->integer("wait_lag", workload.semantic.wait_lag);
    json->string("wait_order", name_of(workload.semantic.order));
  }
  const bool walks = workload.name == "array-walk";
  if (Workload::kind(workload.name).has_pairs || workload.name == "skiplist" || walks) {
    json->number("read_only_share", workload.semantic.read_only_share);
  }
  const bool has_rows = workload.name.starts_with("ycsb");
  if (has_rows) json->integer("payload_bytes", workload.ycsb.payload_bytes);
  if (has_rows || walks) json->integer("operations", workload.ycsb.operations);
  if (workload.name == "ycsb-a" || workload.name == "stmbench7")
    json->number("update_share", workload.ycsb.update_share);
  if (workload.name == "tpcc") {
    json->integer("warehouses", TpccScale(workload.keys, workload.tpcc.warehouses).warehouses);
    json->number("payment_share", workload.tpcc.payment_share);
  }
}

void write_counts(JsonWriter* json, const Counts& counts) {
  json->integer("batches", counts.batches);
  json->integer("transactions", counts.transactions);
  json->integer("passes", counts.passes);
  json->integer("writes", counts.writes);
  json->integer("range_pairs", counts.range_pairs);
  json->integer("committed", counts.committed);
  json->integer("guard_failed", counts.guard_failed);
  json->integer("wait_expired", counts.wait_expired);
  json->integer("overflow", counts.overflow);
  json->integer("type_mismatch", counts.type_mismatch);
  json->integer("postponed", counts.postponed);
}

}  // namespace

void write_counters(JsonWriter* json, const ExecutionTotals& of) {
  for (const std::string& name : strategy_counters()) json->integer(name, of.counter(name));
}

void write_times(JsonWriter* json, const ExecutionTotals& of) {
  const auto times = of.times();
  if (times.empty()) return;
  json->begin_object("times");
  for (const auto& [name, share] : times) json->number(name, 100 * share);
  json->number("serialized_attempts", 100 * of.serialized_share());
  json->end_object();
}

void write_stages(JsonWriter* json, std::string_view name, const StageTimes& stages, std::uint64_t transactions) {
  const double each = 1e9 / static_cast<double>(transactions);
  const auto write = [&](std::string_view stage, const StageTime& time) {
    json->begin_object(stage);
    json->number("wall_ns", time.wall * each);
    json->number("all_threads_ns", time.all * each);
    json->number("one_alone_ns", time.alone * each);
    json->end_object();
  };
  json->begin_object(name);
  for_each_stage([&](BatchStage stage) { write(to_string(stage), stages.of(stage)); });
  write("sum", stages.sum());
  json->number("serial_share", stages.serial_share());
  json->end_object();
}

std::string workload_table(const BenchOptions& options, const std::vector<WorkloadReport>& reports) {
  std::string text = header(options);
  text += format("%-14s %-12s %9s %12s %8s %10s %9s %9s %8s %8s %8s %8s %11s\n", "workload", "distribution", "keys",
                 "transactions", "passes", "committed", "guard", "expired", "overflow", "mismatch", "postpone",
                 "B/record", options.verify ? "verified" : "ns/txn  M/s");
  for (const WorkloadReport& report : reports) {
    const Counts& counts = report.counts;
    text += format("%-14s %-12s %9llu %12llu %8llu %10llu %9llu %9llu %8llu %8llu %8llu %8.1f ",
                   report.workload.name.c_str(), to_string(report.workload.distribution).c_str(),
                   wide(report.workload.keys), wide(counts.transactions), wide(counts.passes), wide(counts.committed),
                   wide(counts.guard_failed), wide(counts.wait_expired), wide(counts.overflow),
                   wide(counts.type_mismatch), wide(counts.postponed), per_record(report.stats));
    text += report.verified
                ? format("%11s\n", "every batch")
                : format("%6.1f %5.2f\n", report.nanoseconds_per_transaction(), report.transactions_per_second() / 1e6);
  }
  text += "\n";
  for (const WorkloadReport& report : reports) text += execution_line(report);
  for (const WorkloadReport& report : reports) text += stage_lines(report);
  for (const WorkloadReport& report : reports) {
    text += format("\n%s: holds: %s", report.workload.name.c_str(), report.invariant.c_str());
  }
  return text + "\n";
}

std::string workload_json(const BenchOptions& options, const std::vector<WorkloadReport>& reports) {
  JsonWriter json;
  open_document(&json, options);
  json.begin_array("workloads");
  for (const WorkloadReport& report : reports) {
    json.begin_object();
    write_axes(&json, report.workload);
    write_counts(&json, report.counts);
    write_execution(&json, report);
    json.string("verified", report.verified ? "every batch by the referee, the final state" : "the invariant only");
    json.string("invariant", report.invariant);
    json.integer("records", report.stats.records);
    json.number("bytes_per_record", per_record(report.stats));
    if (!report.verified) {
      json.number("seconds", report.seconds);
      json.number("transactions_per_second", report.transactions_per_second());
      json.number("nanoseconds_per_transaction", report.nanoseconds_per_transaction());
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text() + "\n";
}

std::string baseline_table(const BenchOptions& options, const BaselineReport& report) {
  std::string text = header(options);
  text += format("bank, %llu accounts, %s; millions of transactions a second of processor time\n\n%6s %10s %13s %7s\n",
                 wide(options.keys), to_string(options.distribution).c_str(), "pair", options.strategy.c_str(),
                 "hand-written", "ratio");
  for (std::size_t i = 0; i < report.pairs.size(); ++i) {
    const BaselinePair& pair = report.pairs[i];
    text += format("%6zu %10.2f %13.2f %7.3f\n", i + 1, pair.strategy_per_second / 1e6,
                   pair.hand_written_per_second / 1e6, pair.ratio());
  }
  const BaselinePair median = report.median();
  return text + format("%6s %10.2f %13.2f %7.3f\n", "median", median.strategy_per_second / 1e6,
                       median.hand_written_per_second / 1e6, report.median_ratio());
}

std::string baseline_json(const BenchOptions& options, const BaselineReport& report) {
  JsonWriter json;
  open_document(&json, options);
  json.begin_object("baseline");
  json.string("clock", "processor time of the thread");
  json.string("workload", "bank");
  json.integer("keys", options.keys);
  json.string("distribution", to_string(options.distribution));
  json.begin_array("pairs");
  for (const BaselinePair& pair : report.pairs) {
    json.begin_object();
    json.number("strategy_per_second", pair.strategy_per_second);
    json.number("hand_written_per_second", pair.hand_written_per_second);
    json.number("ratio", pair.ratio());
    json.end_object();
  }
  json.end_array();
  json.number("strategy_per_second_median", report.median().strategy_per_second);
  json.number("hand_written_per_second_median", report.median().hand_written_per_second);
  json.number("ratio_median", report.median_ratio());
  json.end_object();
  json.end_object();
  return json.text() + "\n";
}

}  // namespace kilokv::engine::bench
