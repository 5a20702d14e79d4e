#include "engine/bench/host_work_main.hpp"

#include <cstdio>

#include "engine/bench/compare_run.hpp"
#include "engine/bench/format.hpp"
#include "engine/bench/host_work_run.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/machine.hpp"
#include "engine/bench/output_file.hpp"
#include "engine/bench/report.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr int kExitFailed = 1, kExitUsage = 2;
constexpr const char* kFormat = "kilokv-host-work-1";
constexpr const char* kUsage =
    "Usage: kilokv-engine-bench host-work [FLAGS]\n"
    "Measures the host's part of a batch on a device, in processor time of all threads, and compares it with serial.\n"
    "Kernels and copies count as free: a device replays what the emulated device returned before. Results, log\n"
    "columns, before-images, dirty marks and hash of every batch are compared with those of serial. If batches have\n"
    "byte values, the emulated device works while the host waits, and this time is left out.\n\n";

int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "kilokv-engine-bench host-work: %s\n", status.message().c_str());
  return exit_code;
}

std::vector<double> field_of(const std::vector<HostWorkTime>& times, double HostWorkTime::*field) {
  std::vector<double> numbers;
  numbers.reserve(times.size());
  for (const HostWorkTime& time : times) numbers.push_back(time.*field);
  return numbers;
}

std::string head_of(const HostWorkOptions& options) {
  const Machine machine = this_machine();
  return format("%llu repeats, seed %llu\n%s, %u core(s), %s, %s, commit %s\n", wide(options.repeats),
                wide(options.seed), machine.cpu.c_str(), machine.cores, machine.compiler.c_str(),
                machine.build_type.c_str(), machine.commit.c_str()) +
         "Nanoseconds of processor time for each transaction: median of the repeats. longest: the thread that worked\n"
         "longest. ratio: host to serial, median and range of the repeats. calls, bytes, patches: for each batch\n\n";
}

std::string stage_lines(const HostWorkPoint& point) {
  const double each = 1e9 / static_cast<double>(point.staged_transactions);
  std::string text = "  by stage, all threads (measured apart):";
  const auto line = [&](const char* name, const StageTimes& stages) {
    text += format("\n    %-8s", name);
    for_each_stage(
        [&](BatchStage stage) { text += format(" %s %.1f", to_string(stage), stages.of(stage).all * each); });
    text += format(" = %.1f", stages.sum().all * each);
  };
  line("serial", point.serial_stages);
  line("host", point.host_stages);
  return text + "\n\n";
}

std::string lines_of(const HostWorkPoint& point) {
  const auto median = [](const std::vector<HostWorkTime>& times, double HostWorkTime::*field) {
    return median_of(field_of(times, field));
  };
  const auto batches = static_cast<double>(point.batches);
  const DeviceCalls& calls = point.calls;
  return format("%s, %llu keys, %llu operations, %llu batches of %llu, buffers of %llu MiB%s:\n",
                point.row.workload.c_str(), wide(point.row.keys), wide(point.row.operations), wide(point.batches),
                wide(point.row.batch_transactions), wide(point.buffer_bytes >> 20),
                point.is_live ? ", device emulated live" : "") +
         format("  serial %.1f  host %.1f (longest %.1f)  ratio %.3f (%.3f to %.3f)\n",
                median(point.serial, &HostWorkTime::all), median(point.host, &HostWorkTime::all),
                median(point.host, &HostWorkTime::longest), median_of(point.ratios), least_of(point.ratios),
                most_of(point.ratios)) +
         format("  %.1f calls, %.0f bytes there, %.0f bytes back, %.1f patches\n",
                static_cast<double>(calls.calls) / batches, static_cast<double>(calls.sent_bytes) / batches,
                static_cast<double>(calls.returned_bytes) / batches, static_cast<double>(calls.patches) / batches) +
         stage_lines(point);
}

void write_point(JsonWriter* json, const HostWorkPoint& point) {
  const auto list = [&](const char* name, const std::vector<double>& values) {
    json->begin_array(name);
    for (const double value : values) json->number({}, value);
    json->end_array();
  };
  json->begin_object();
  json->string("workload", point.row.workload);
  json->integer("keys", point.row.keys);
  json->integer("batch_transactions", point.row.batch_transactions);
  json->integer("operations", point.row.operations);
  json->integer("payload_bytes", point.row.payload_bytes);
  json->integer("batches", point.batches);
  json->string("device", point.is_live ? "emulated live" : "replayed");
  json->integer("buffer_bytes", point.buffer_bytes);
  list("serial_ns", field_of(point.serial, &HostWorkTime::all));
  list("host_ns", field_of(point.host, &HostWorkTime::all));
  list("host_longest_thread_ns", field_of(point.host, &HostWorkTime::longest));
  list("ratios", point.ratios);
  json->number("ratio_median", median_of(point.ratios));
  json->integer("calls", point.calls.calls);
  json->integer("sent_bytes", point.calls.sent_bytes);
  json->integer("returned_bytes", point.calls.returned_bytes);
  json->integer("patches", point.calls.patches);
  write_stages(json, "serial_stages", point.serial_stages, point.staged_transactions);
  write_stages(json, "host_stages", point.host_stages, point.staged_transactions);
  json->end_object();
}

std::string document_of(const HostWorkOptions& options, const std::vector<HostWorkPoint>& points) {
  JsonWriter json;
  json.begin_object();
  json.string("format", kFormat);
  write_machine(&json);
  json.integer("seed", options.seed);
  json.integer("repeats", options.repeats);
  json.string("verified", "every batch: results, log columns, before-images, dirty marks and hash against serial");
  json.begin_array("points");
  for (const HostWorkPoint& point : points) write_point(&json, point);
  json.end_array();
  json.end_object();
  return json.text() + "\n";
}

Status check(const HostWorkOptions& options) {
  for (const HostWorkRow& row : host_work_rows(options)) {
    WorkloadOptions workload{.name = row.workload, .keys = row.keys};
    workload.ycsb.operations = static_cast<std::uint32_t>(row.operations);
    if (auto created = Workload::create(workload); !created.ok()) return created.status();
    if (!Workload::kind(row.workload).has_ranges) continue;
    return Status::invalid(
        {"workload", "a workload without ranges, because serial runs those", row.workload, "--workload"});
  }
  return try_file("--json", options.json);
}

}  // namespace

int host_work_main(const std::vector<std::string>& arguments) {
  HostWorkOptions options;
  const std::vector<Flag> flags = host_work_flags(&options);
  Status status = parse_flags(flags, arguments);
  if (status.ok() && options.help) {
    std::printf("%s%s", kUsage, describe_flags(flags).c_str());
    return 0;
  }
  if (status.ok()) status = check(options);
  if (!status.ok()) return complain(status, kExitUsage);
  std::FILE* const table = options.json == kStandardOutput ? stderr : stdout;
  const auto print = [table](const std::string& text) {
    std::fputs(text.c_str(), table);
    std::fflush(table);
  };
  print(head_of(options));
  std::vector<HostWorkPoint> points;
  for (const HostWorkRow& row : host_work_rows(options)) {
    auto point = measure_host_work(options, row);
    if (!point.ok()) return complain(point.status(), kExitFailed);
    print(lines_of(*point));
    points.push_back(std::move(*point));
  }
  status = write_file(options.json, document_of(options, points));
  return status.ok() ? 0 : complain(status, kExitFailed);
}

}  // namespace kilokv::engine::bench
