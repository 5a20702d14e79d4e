// The host memory that only `local` needs, if it runs on the host. What all strategies with tickets need is in
// exec/papers/ticketed_scratch.hpp. Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
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
  // Fills the part of the batch's arguments that only `local` has, and replaces the classes by its halves. The first
  // `staging` threads share the stage, which has 2^part_bits parts. The arguments point into this object. Requires: the
  // tuning and the threads in the arguments are filled.
  void open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t staging, std::uint32_t group_width,
            LocalArguments<HostSpace>* arguments, std::uint32_t part_bits = 0);

  // Call it after the run. Adds the times that the threads measured to the report.
  void close(ExecutionReport* report) const;

  const StagePlan& plan() const { return plan_; }
  std::size_t memory_bytes() const;

 private:
  StagePlan plan_;
  std::vector<std::uint64_t> stage_;
  std::vector<std::uint32_t> undecided_;
  std::vector<std::uint64_t> times_;
};

// Adds up the times of all threads (LocalColumns::times), and reports the sums as counters.
void add_times(std::span<const std::uint64_t> words, ExecutionReport* report);

}  // namespace kilokv::engine
