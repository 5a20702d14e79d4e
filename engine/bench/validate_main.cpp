#include "engine/bench/validate_main.hpp"

#include <cstdio>

#include "engine/bench/compare_run.hpp"
#include "engine/bench/format.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/machine.hpp"
#include "engine/bench/output_file.hpp"
#include "engine/bench/validate_run.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr int kExitFailed = 1, kExitUsage = 2;
constexpr const char* kFormat = "kilokv-validate-1";
constexpr const char* kUsage =
    "Usage: kilokv-engine-bench validate [FLAGS]\n"
    "Measures interactive transactions with large read sets. A read set is checked guard by guard, ahead by one "
    "thread\n"
    "(alone), ahead by two sides (cooperative), or as the engine chooses (auto). Every size is verified before it is\n"
    "measured.\n\n";

int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "kilokv-engine-bench validate: %s\n", status.message().c_str());
  return exit_code;
}

std::string line_of(const ValidatePoint& point) {
  std::string text = format(
      "%9llu %-8s %-12s %3llu %-8s %10.3f %8.3f..%8.3f %12.1f %6.2f", static_cast<unsigned long long>(point.reads),
      point.conflict ? "one" : "none", point.validation.c_str(), static_cast<unsigned long long>(point.threads),
      point.ran_on.c_str(), median_of(point.reads_per_second) / 1e6, least_of(point.reads_per_second) / 1e6,
      most_of(point.reads_per_second) / 1e6, median_of(point.transactions_per_second), point.share_beside);
  if (!point.ratios.empty()) {
    text += format(" %7.2f %5.2f..%5.2f", median_of(point.ratios), least_of(point.ratios), most_of(point.ratios));
  }
  return text + "\n";
}

std::string head_of(const ValidateOptions& options) {
  const Machine machine = this_machine();
  return format("%llu records, %s lanes, %llu repeats of %g s, seed %llu\n%s, %u core(s), %s, %s, commit %s\n",
                static_cast<unsigned long long>(options.records), options.lanes.c_str(),
                static_cast<unsigned long long>(options.repeats), options.duration_seconds,
                static_cast<unsigned long long>(options.seed), machine.cpu.c_str(), machine.cores,
                machine.compiler.c_str(), machine.build_type.c_str(), machine.commit.c_str()) +
         "M reads/s and spread: millions of reads validated a second, median and range of the repeats; commits/s:\n"
         "transactions a second; beside: share of the reads that the calling thread did not check; ratio: to one\n"
         "thread alone, repeat by repeat\n" +
         format("%9s %-8s %-12s %3s %-8s %10s %18s %12s %6s %7s\n", "reads", "conflict", "validation", "thr", "on",
                "M reads/s", "spread", "commits/s", "beside", "ratio");
}

void write_point(JsonWriter* json, const ValidatePoint& point) {
  const auto list = [&](const char* name, const std::vector<double>& values) {
    json->begin_array(name);
    for (const double value : values) json->number({}, value);
    json->end_array();
  };
  json->begin_object();
  json->integer("reads", point.reads);
  json->string("conflict", point.conflict ? "one" : "none");
  json->string("validation", point.validation);
  json->integer("threads", point.threads);
  json->string("ran_on", point.ran_on);
  json->string("choice", point.choice);
  json->integer("transactions", point.transactions);
  json->number("reads_per_second", median_of(point.reads_per_second));
  json->number("transactions_per_second", median_of(point.transactions_per_second));
  json->number("share_beside", point.share_beside);
  list("reads_per_second_repeats", point.reads_per_second);
  list("transactions_per_second_repeats", point.transactions_per_second);
  json->number("ratio_to_alone", point.ratios.empty() ? 1 : median_of(point.ratios));
  list("ratio_to_alone_repeats", point.ratios);
  json->end_object();
}

std::string document_of(const ValidateOptions& options, const std::vector<ValidatePoint>& points) {
  JsonWriter json;
  json.begin_object();
  json.string("format", kFormat);
  write_machine(&json);
  json.integer("records", options.records);
  json.string("device", options.device);
  json.string("lanes", options.lanes);
  json.integer("seed", options.seed);
  json.integer("repeats", options.repeats);
  json.number("seconds_each", options.duration_seconds);
  json.string("verified",
              "each engine, size and kind, before it is measured: results and state against guard by guard");
  json.begin_array("points");
  for (const ValidatePoint& point : points) write_point(&json, point);
  json.end_array();
  json.end_object();
  return json.text() + "\n";
}

}  // namespace

int validate_main(const std::vector<std::string>& arguments) {
  ValidateOptions options;
  const std::vector<Flag> flags = validate_flags(&options);
  Status status = parse_flags(flags, arguments);
  if (status.ok() && options.help) {
    std::printf("%s%s", kUsage, describe_flags(flags).c_str());
    return 0;
  }
  if (status.ok()) status = complete(&options);
  if (status.ok()) status = try_file("--json", options.json);
  if (!status.ok()) return complain(status, kExitUsage);
  std::FILE* const table = options.json == kStandardOutput ? stderr : stdout;
  const auto print = [table](const std::string& text) {
    std::fputs(text.c_str(), table);
    std::fflush(table);
  };
  const auto points = measure_validation(
      options, [&] { print(head_of(options)); }, [&](const ValidatePoint& point) { print(line_of(point)); });
  if (!points.ok()) return complain(points.status(), kExitFailed);
  status = write_file(options.json, document_of(options, *points));
  return status.ok() ? 0 : complain(status, kExitFailed);
}

}  // namespace kilokv::engine::bench
