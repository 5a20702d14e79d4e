// The memory of `local` beside that of all strategies with tickets (exec/papers/ticketed_scratch.hpp), where it is the
// host's own. Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/papers/stage_plan.hpp"
#include "engine/exec/papers/ticketed_scratch.hpp"
#include "engine/stm/papers/local_arguments.hpp"

namespace kilokv::engine {

template <>
class OwnScratch<LocalArguments<HostSpace>> {
 public:
  // Adds to the arguments of the batch, whose tuning and threads are there, what is local's: its stage, shared by the
  // first `staging` threads, in 2^part_bits parts, and classes as it has them. They point into this.
  void open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t staging, std::uint32_t group_width,
            LocalArguments<HostSpace>* arguments, std::uint32_t part_bits = 0);

  // After the run: adds what the threads say where their time went.
  void close(ExecutionReport* report) const;

  const StagePlan& plan() const { return plan_; }
  std::size_t memory_bytes() const;

 private:
  StagePlan plan_;
  std::vector<std::uint64_t> stage_;
  std::vector<std::uint32_t> undecided_;
  std::vector<LocalTimes> times_;
};

void add_times(std::span<const LocalTimes> of_threads, ExecutionReport* report);

}  // namespace kilokv::engine
