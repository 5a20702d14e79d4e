// What the host makes for the batches of `local`, whatever they run on: the plan of the stage, and the arguments that
// follow from it. Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/exec/papers/stage_plan.hpp"
#include "engine/exec/papers/ticketed_inputs.hpp"
#include "engine/stm/papers/local_arguments.hpp"

namespace kilokv::engine {

template <>
class TicketedInputs<LocalArguments<HostSpace>> {
 public:
  // As ClassInputs::open(), for a stage in the host's memory, which has 2^part_bits parts. The first `staging` threads
  // share it; 0: all do.
  BatchShape open(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records, BatchResults* results,
                  LocalArguments<HostSpace>* arguments, std::uint32_t staging = 0, std::uint32_t part_bits = 0);
  // Adds the times that the threads measured to the report.
  void close(const LocalArguments<HostSpace>& arguments, ExecutionReport* report) const;

  // The two halves of open(). Between them, a device chooses its threads by the plan. With fill() alone, the stage is
  // in the memory of blocks.
  const StagePlan& plan(const ResolvedBatch& batch, const BatchRecords& records, std::uint32_t slots);
  BatchShape fill(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records, BatchResults* results,
                  LocalArguments<HostSpace>* arguments, std::uint32_t staging, std::uint32_t part_bits) const;

  std::size_t memory_bytes() const { return plan_.memory_bytes(); }

 private:
  StagePlan plan_;
};

}  // namespace kilokv::engine
