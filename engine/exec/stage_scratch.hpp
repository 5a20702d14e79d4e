// The memory of `local` beside that of all strategies with tickets (exec/ticketed_scratch.hpp), where it is the host's
// own. Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/stage_plan.hpp"
#include "engine/stm/ticketed_arguments.hpp"

namespace kilokv::engine {

class StageScratch {
 public:
  // Adds to the arguments of the batch, whose tuning and threads are there, what is local's: its stage, shared by the
  // first `staging` threads, and classes as it has them. They point into this.
  void open(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t staging, std::uint32_t group_width,
            TicketedArguments<HostSpace>* arguments);

  const StagePlan& plan() const { return plan_; }
  std::size_t memory_bytes() const;

 private:
  StagePlan plan_;
  std::vector<std::uint64_t> stage_;
  std::vector<std::uint32_t> undecided_;
};

}  // namespace kilokv::engine
