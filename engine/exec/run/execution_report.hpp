// How the last batch was executed: for the bench's report, the server's status, and tests. Not results: two strategies
// that agree on these may differ here.
//
// It knows no strategy. What one strategy tells beside what all of them tell is a list of named numbers, so that a new
// strategy changes nothing for those who read reports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

// How the numbers of several batches make one: their sum, or the largest of them.
enum class CounterKind : std::uint8_t { sum, largest };

struct Counter {
  const char* name;  // a literal, in snake_case
  std::uint64_t value;
  CounterKind kind = CounterKind::sum;

  void add(std::uint64_t more) { value = kind == CounterKind::sum ? value + more : std::max(value, more); }
};

// Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
class Counters {
 public:
  void clear() { list_.clear(); }
  // Adds to the counter of this name; one that is new comes last.
  void add(const char* name, std::uint64_t value, CounterKind kind = CounterKind::sum) {
    for (Counter& counter : list_) {
      if (std::string_view(counter.name) == name) return counter.add(value);
    }
    list_.push_back({name, value, kind});
  }
  // 0: it is not there.
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
  const char* strategy = "serial";  // that ran it
  bool any_order = false;           // in an order of its own, which the ranks give; else in that of the specification
  bool on_device = false;           // by the device's kernels
  std::uint32_t devices_lost = 0;   // since the engine began: given up for an error
  std::uint32_t validated = 0;      // reads of a large read set that were checked ahead (exec/validate/read_set.hpp)
  std::uint32_t validated_beside = 0;  // of these, not by the caller's thread: by another, a device, or nobody any more
  // Of a device:
  std::uint64_t sent_bytes = 0, returned_bytes = 0;  // the batch's columns there, what came of it back
  // By its clock: these copies, and all between them.
  double sent_seconds = 0, kernel_seconds = 0, returned_seconds = 0;
  // Of all parallel ones:
  std::uint64_t postponed = 0;                 // times that a WAIT guard postponed one
  std::vector<std::uint64_t> decided_by = {};  // [threads, or a device's groups] transactions by who decided them
  // What only this strategy tells. Where it uses up ranks for nothing, it says how many as "wasted_tickets".
  Counters counters = {};

  std::uint64_t counter(std::string_view name) const { return counters.of(name); }

  // Of a batch that this strategy ran: nothing of the one before, nor of one that a device gave up.
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
  std::string model;         // of the device, such as "NVIDIA H200"
  std::string reason;        // why not the device that was asked for; empty: it is the one
};

}  // namespace kilokv::engine
