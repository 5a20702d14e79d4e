// How the engine runs a batch, and the choice of `auto` for each batch. Each set of strategies that can run a batch has
// a choice of its own (strategy_choice.hpp). Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/run/contention.hpp"
#include "engine/exec/run/strategy_choice.hpp"
#include "engine/platform/cpu_pressure.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// The engine itself runs the first three. `parallel`: an Executor runs the batch.
enum class Way : std::uint8_t { serial, pipelined, partitioned, parallel };

class Chooser {
 public:
  // What can run a batch, beside `serial`.
  struct Able {
    bool pipelined = false, partitioned = false, parallel = false;
    bool any() const { return pipelined || partitioned || parallel; }
  };
  struct Chosen {
    Way way = Way::serial;
    std::size_t strategy = 0;  // Way::parallel: of the executor
  };

  // `threads`: that a strategy can have on the CPU, with the caller's. `pressure`: the file, as for CpuPressure.
  explicit Chooser(std::uint32_t threads, const std::string& pressure = "/proc/pressure/cpu")
      : helpers_(threads - 1), pressure_(pressure) {}

  // Starts to choose anew. Past times do not count any more. `of_executor`: the strategies of the executor; empty:
  // there is none.
  void begin(const std::vector<std::string>& of_executor);
  // `able`: what can run the batch. Requires: the batch has no ranges.
  Chosen choose(const TransactionColumns& columns, Able able);
  // Whether choose() has chosen for the last batch. Only then is took() called.
  bool has_chosen() const { return has_chosen_; }
  void forget() { has_chosen_ = false; }
  // How the batch of the last choose() ran. `as_chosen`: false if `serial` had to run it instead. `helper_seconds`: the
  // processor time of all threads but the caller's.
  void took(bool as_chosen, double seconds, double helper_seconds);
  // What the last choice was, and why.
  std::string text() const;

 private:
  // With fewer threads, `auto` does not try `partitioned`, which does 1.7 times the work of `serial`
  // (docs/batch-times.md).
  static constexpr std::uint32_t kPartitionedThreadsMin = 4;
  // Guards and operations of a batch. `serial` runs fewer in less time than it takes to start a thread.
  static constexpr std::size_t kUsesMin = 1024;
  static constexpr std::size_t kPipelines = 1, kPartitions = 2, kHasOthers = 4;

  struct Choice {
    StrategyChoice choice;
    std::vector<std::string> names;
  };

  const std::uint32_t helpers_;
  std::array<Choice, 8> choices_;
  std::size_t last_ = 0;  // which of them has made the last choice
  bool has_chosen_ = false;
  ContentionSample contention_;
  CpuPressure pressure_;
};

}  // namespace kilokv::engine
