// How the last batch was executed, for the bench's report, the server's status, and tests. A report is not a result:
// two strategies with the same results may have different reports.
//
// This file knows no strategy. What only one strategy reports is a list of named numbers. So a new strategy changes
// nothing in the code that reads reports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/run/stage_times.hpp"

namespace kilokv::engine {

// How the values of several batches become one value: their sum, or the largest of them.
enum class CounterKind : std::uint8_t { sum, largest };

struct Counter {
  const char* name;  // a literal, in snake_case
  std::uint64_t value;
  CounterKind kind = CounterKind::sum;

  void add(std::uint64_t more) { value = kind == CounterKind::sum ? value + more : std::max(value, more); }
};

// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
class Counters {
 public:
  void clear() { list_.clear(); }
  // Adds to the counter of this name. If there is none, appends it.
  void add(const char* name, std::uint64_t value, CounterKind kind = CounterKind::sum) {
    for (Counter& counter : list_) {
      if (std::string_view(counter.name) == name) return counter.add(value);
    }
    list_.push_back({name, value, kind});
  }
  // 0 if there is no counter of this name.
  std::uint64_t of(std::string_view name) const {
    for (const Counter& counter : list_) {
      if (counter.name == name) return counter.value;
    }
    return 0;
  }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<Counter> list_;
};

struct ExecutionReport {
  // The strategy that ran the batch.
  const char* strategy = "serial";
  // True: in an order that the strategy found, which the ranks tell. False: in the order of the specification.
  bool any_order = false;
  // Whether the device's kernels ran the batch.
  bool on_device = false;
  // How many devices were given up because of an error, since the engine began.
  std::uint32_t devices_lost = 0;
  // How many reads of a large read set were checked before the transaction ran (exec/validate/read_set.hpp).
  std::uint32_t validated = 0;
  // How many of these the caller's thread did not check. Another thread or a device did, or the check ended early.
  std::uint32_t validated_beside = 0;

  // The time of each stage, if EngineOptions::measure_stages asks for it.
  StageTimes stages = {};

  // For batches on a device. The bytes of the columns that were sent, and of those that came back.
  std::uint64_t sent_bytes = 0, returned_bytes = 0;
  // By the device's clock: the time of the two copies, and of all between them.
  double sent_seconds = 0, kernel_seconds = 0, returned_seconds = 0;

  // For all parallel strategies. How many times a WAIT guard postponed a transaction.
  std::uint64_t postponed = 0;
  // [threads, or groups of a device] how many transactions each of them decided.
  std::vector<std::uint64_t> decided_by = {};
  // What only this strategy reports. If it leaves ranks unused, "wasted_tickets" says how many.
  Counters counters = {};

  std::uint64_t counter(std::string_view name) const { return counters.of(name); }

  // Starts the report of a batch that strategy `of` ran. Clears what belongs to the batch before, or to an attempt on a
  // device that failed.
  void begin(const char* of) {
    strategy = of;
    any_order = false;
    sent_bytes = returned_bytes = 0;
    sent_seconds = kernel_seconds = returned_seconds = 0;
    postponed = 0;
    decided_by.clear();
    counters.clear();
  }
};

// Where batches run now.
struct EngineDevice {
  std::string name = "cpu";  // cpu, cuda or emulated
  std::string model;         // the model of the device, such as "NVIDIA H200"
  std::string reason;        // why it is not the device that was asked for; empty: it is
};

}  // namespace kilokv::engine
