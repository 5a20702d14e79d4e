// A workload on an engine, each batch of it under the referee, and the state that it leaves, in the open, so that a
// test can falsify any of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/referee_scenario.hpp"

namespace kilokv::engine {

inline WorkloadOptions named(const std::string& name, std::uint64_t keys, std::uint64_t seed = 1) {
  WorkloadOptions options;
  options.name = name;
  options.keys = keys;
  options.seed = seed;
  return options;
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

// What the workload's invariant says of a state; empty: it holds.
inline std::string violation_of(const Workload& workload, const State& state) {
  InvariantCheck invariant = workload.invariant();
  for (const StateRecord& record : state) invariant.add(record.key, record.type, record.integer, record.bytes);
  return invariant.violation();
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

  // Runs a batch of this generator, or of another one with the same keys; the results stay until the next one begins.
  // What the referee says of it; empty: nothing.
  std::string run_batch(Workload* generator, std::size_t transactions) {
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

  State state() const {  // what is not deleted
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
  std::string violation() const { return violation_of(workload, state()); }

 private:
  bool has_run_ = false;
};

}  // namespace kilokv::engine
