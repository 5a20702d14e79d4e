// A workload on an engine. The referee checks each batch. All members are public, so that a test can falsify any part
// of the state. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {

inline WorkloadOptions named(const std::string& name, std::uint64_t keys, std::uint64_t seed = 1) {
  WorkloadOptions options;
  options.name = name;
  options.keys = keys;
  options.seed = seed;
  return options;
}

// The workload's options with this many keys, or with as many as the workload allows.
inline WorkloadOptions fitting(const std::string& name, std::uint64_t keys, std::uint64_t seed = 1) {
  return named(name, std::min(keys, Workload::kind(name).keys_max), seed);
}

inline Workload make(const WorkloadOptions& options) {
  auto workload = Workload::create(options);
  KILOKV_CHECK(workload.ok());
  return std::move(*workload);
}

struct StateRecord {
  std::string key;
  ValueType type;
  std::int64_t integer;
  std::string bytes;
};
using State = std::vector<StateRecord>;

// What the invariant of a workload, or of its generator, says of a state. Empty: it is true.
template <class Generator>
std::string violation_of(const Generator& generator, const State& state) {
  InvariantCheck invariant(generator.invariant());
  for (const StateRecord& record : state) invariant.add(record.key, record.type, record.integer, record.bytes);
  return invariant.violation();
}

inline StateRecord* find(State* state, const KeyName& name) {
  for (StateRecord& record : *state) {
    if (record.key == name.view()) return &record;
  }
  return nullptr;
}

struct WorkloadScenario {
  Workload workload;
  RefereeScenario scenario;

  explicit WorkloadScenario(const WorkloadOptions& options, const EngineOptions& engine = {.strategy = "serial"})
      : workload(make(options)) {
    scenario.engine = RefereeScenario::make_engine(engine);
    workload.for_each_initial([&](const InitialRecord& record) {
      KILOKV_CHECK(scenario.engine->load(record.key, 1, record.type, record.integer, record.bytes).ok());
    });
  }

  // Runs a batch of this generator, or of another one. The results stay until the next batch begins. Returns the
  // referee's error; empty: none.
  template <class Generator>
  std::string run_batch(Generator* generator, std::size_t transactions) {
    if (has_run_) scenario.next_batch();
    has_run_ = true;
    generator->generate(&scenario.builder, transactions);
    scenario.execute();
    return scenario.check(referee_mode(scenario.engine->execution())).message();
  }
  std::string run(std::size_t batches, std::size_t transactions = 512) {
    for (std::size_t i = 0; i < batches; ++i) {
      if (const std::string complaint = run_batch(&workload, transactions); !complaint.empty()) return complaint;
    }
    return {};
  }

  std::size_t count(Outcome outcome) const {
    std::size_t found = 0;
    for (const std::uint8_t one : scenario.results.outcome) found += static_cast<Outcome>(one) == outcome ? 1 : 0;
    return found;
  }

  State state() const {  // the live records
    State all;
    scenario.engine->scan({}, {}, [&](const RecordView& record) {
      const ValueType type = type_of(record.cell.tag);
      if (type == ValueType::absent) return true;
      all.push_back({std::string(record.key), type, static_cast<std::int64_t>(record.cell.word),
                     type == ValueType::bytes ? std::string(record.bytes) : std::string()});
      return true;
    });
    return all;
  }
  std::int64_t sum_of(std::string_view prefix) const {  // of the integers under keys with this prefix
    std::int64_t sum = 0;
    for (const StateRecord& record : state()) sum += record.key.starts_with(prefix) ? record.integer : 0;
    return sum;
  }
  std::string violation() const { return violation_of(workload, state()); }

 private:
  bool has_run_ = false;
};

}  // namespace kilokv::engine
