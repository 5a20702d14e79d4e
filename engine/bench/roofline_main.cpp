// kilokv-roofline: measures what the CUDA device of this machine can do at most. Exit codes: 0: measured. 1: there is
// no device, or it failed. 2: wrong usage.

#include <cstdio>
#include <string>
#include <vector>

#include "engine/bench/flags.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/machine.hpp"
#include "engine/bench/roofline.hpp"

namespace {

using namespace kilokv;
using namespace kilokv::engine;
using namespace kilokv::engine::bench;

constexpr int kExitFailed = 1, kExitUsage = 2;

int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "kilokv-roofline: %s\n", status.message().c_str());
  return exit_code;
}

unsigned long long wide(std::uint64_t number) { return number; }

void print_table(std::FILE* file, const RooflineOptions& options, const RooflineReport& report) {
  const RooflineDevice& device = report.device;
  std::fprintf(file, "%s, compute capability %s, %llu multiprocessors, up to %llu MHz, memory up to %llu MHz\n",
               device.model.c_str(), device.capability.c_str(), wide(device.multiprocessors), wide(device.clock_mhz),
               wide(device.memory_clock_mhz));
  std::fprintf(file, "%.1f GiB of memory, %.1f GiB free, %.1f MiB of L2; CUDA driver %s, runtime %s\n%s\n",
               static_cast<double>(device.memory_bytes) / (1 << 30),
               static_cast<double>(device.memory_free_bytes) / (1 << 30),
               static_cast<double>(device.l2_bytes) / (1 << 20), device.driver_cuda.c_str(),
               device.runtime_cuda.c_str(), device.driver.c_str());
  std::fprintf(file, "table of %llu bytes, seed %llu, %llu repetitions, commit %s\n\n", wide(report.table_bytes),
               wide(options.seed), wide(options.repetitions), this_machine().commit.c_str());
  std::fprintf(file, "%-18s %12s %12s %12s %-5s\n", "measure", "median", "min", "max", "unit");
  for (const RooflineMeasure& measure : report.measures) {
    std::fprintf(file, "%-18s %12.3f %12.3f %12.3f %-5s %s\n", measure.name.c_str(), measure.median(),
                 measure.minimum(), measure.maximum(), measure.unit.c_str(), measure.what.c_str());
  }
  std::fprintf(file, "\n%-18s %9s %7s %7s %7s %9s %9s\n", "kernel", "registers", "shared", "local", "threads",
               "blocks/SM", "occupancy");
  for (const KernelFacts& kernel : report.kernels) {
    std::fprintf(file, "%-18s %9d %7d %7d %7d %9d %8.1f%%\n", kernel.name.c_str(), kernel.registers,
                 kernel.shared_bytes, kernel.spilled_bytes, kernel.block_threads, kernel.blocks_each,
                 100 * kernel.occupancy);
  }
}

void write_device(JsonWriter* json, const RooflineDevice& device) {
  json->begin_object("device");
  json->string("model", device.model);
  json->string("capability", device.capability);
  json->string("driver", device.driver);
  json->string("driver_cuda", device.driver_cuda);
  json->string("runtime_cuda", device.runtime_cuda);
  json->integer("multiprocessors", device.multiprocessors);
  json->integer("clock_mhz", device.clock_mhz);
  json->integer("memory_clock_mhz", device.memory_clock_mhz);
  json->integer("memory_bytes", device.memory_bytes);
  json->integer("memory_free_bytes", device.memory_free_bytes);
  json->integer("l2_bytes", device.l2_bytes);
  json->end_object();
}

void write_kernels(JsonWriter* json, const std::vector<KernelFacts>& kernels) {
  json->begin_array("kernels");
  for (const KernelFacts& kernel : kernels) {
    json->begin_object();
    json->string("name", kernel.name);
    json->integer("registers", static_cast<std::uint64_t>(kernel.registers));
    json->integer("shared_bytes", static_cast<std::uint64_t>(kernel.shared_bytes));
    json->integer("local_bytes", static_cast<std::uint64_t>(kernel.spilled_bytes));
    json->integer("block_threads", static_cast<std::uint64_t>(kernel.block_threads));
    json->integer("blocks_each", static_cast<std::uint64_t>(kernel.blocks_each));
    json->number("occupancy", kernel.occupancy);
    json->end_object();
  }
  json->end_array();
}

std::string to_json(const RooflineOptions& options, const RooflineReport& report) {
  JsonWriter json;
  json.begin_object();
  json.string("format", "kilokv-roofline-1");
  json.string("commit", this_machine().commit);
  write_device(&json, report.device);
  json.integer("table_bytes", report.table_bytes);
  json.integer("seed", options.seed);
  json.integer("repetitions", options.repetitions);
  json.begin_array("measures");
  for (const RooflineMeasure& measure : report.measures) {
    json.begin_object();
    json.string("name", measure.name);
    json.string("unit", measure.unit);
    json.string("what", measure.what);
    json.number("median", measure.median());
    json.number("min", measure.minimum());
    json.number("max", measure.maximum());
    json.end_object();
  }
  json.end_array();
  write_kernels(&json, report.kernels);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  RooflineOptions options;
  bool as_json = false, help = false;
  const std::vector<Flag> flags = {
      number_flag("bytes", "bytes",
                  "largest size of the table that is accessed at random, in bytes; a power of two is used", 1 << 20,
                  std::uint64_t{1} << 40, &options.table_bytes_max),
      number_flag("repetitions", "times", "how often each measure runs, after one run to warm up", 1, 1000,
                  &options.repetitions),
      number_flag("seed", "(a number)", "seed of the order in which the table is accessed", 0, ~0ull, &options.seed),
      switch_flag("json", "print one JSON document on the standard output; the table goes to the error output",
                  &as_json),
      switch_flag("help", "print this and exit", &help)};
  if (Status status = parse_flags(flags, std::vector<std::string>(argv + 1, argv + argc)); !status.ok()) {
    return complain(status, kExitUsage);
  }
  if (help) {
    std::printf("Usage: kilokv-roofline [FLAGS]\nMeasures what the CUDA device of this machine can do at most.\n\n%s",
                describe_flags(flags).c_str());
    return 0;
  }
  const auto report = measure_roofline(options);
  if (!report.ok()) return complain(report.status(), kExitFailed);
  print_table(as_json ? stderr : stdout, options, *report);
  if (as_json) std::fputs(to_json(options, *report).c_str(), stdout);
  return 0;
}
