#include "engine/bench/machine.hpp"

#include <fstream>
#include <thread>

#include "kilokv_commit.hpp"  // written by commit.cmake at each build

namespace kilokv::engine::bench {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Machine this_machine() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {cpu_model(), std::thread::hardware_concurrency(), compiler, kBuildType, kCommit};
}

std::string version() { return kVersion; }

void write_machine(JsonWriter* json) {
  const Machine machine = this_machine();
  json->begin_object("machine");
  json->string("cpu", machine.cpu);
  json->integer("cores", machine.cores);
  json->string("compiler", machine.compiler);
  json->string("build_type", machine.build_type);
  json->string("commit", machine.commit);
  json->end_object();
}

}  // namespace kilokv::engine::bench
