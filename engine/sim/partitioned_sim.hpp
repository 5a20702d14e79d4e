// `partitioned` in the simulator (sim/sim_platform.hpp), for tests: the first pass of each batch runs under a schedule.
// The records of the batch are in slots of their own. If the simulator ends a run with an error, the run fails as on a
// device. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/partitioned_host.hpp"
#include "engine/exec/run/slot_access.hpp"
#include "engine/sim/sim_platform.hpp"
#include "engine/stm/partitioned.hpp"
#include "engine/stm/serial.hpp"

namespace kilokv::engine {

// The settings of an executor's runs, and the report of the last one. Its owner keeps it longer than the executor.
struct PartitionedSimRuns {
  GridShape shape;  // groups of one lane
  PartitionedTuning tuning;
  Schedule schedule;  // of the next run
  RunReport report;   // of the last run
};

template <class Rules = PartitionedRules>
class PartitionedSim final : public Executor {
 public:
  explicit PartitionedSim(PartitionedSimRuns* runs) : runs_(*runs), lanes_(runs->shape) {}

  std::vector<std::string> strategies() const override { return {"ordered"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    const std::size_t n = batch.columns.size();
    before_.resize(batch.columns.op_kind.size());
    waiting_.resize(n);
    slots_.resize(records->size());
    for (std::size_t d = 0; d < slots_.size(); ++d) {
      slots_[d].cell = {records->cells()[2 * d], records->cells()[2 * d + 1]};
    }
    const std::uint32_t* const slot_of_key = records->record_of_key().data();
    const PartitionedBatch& shared = memory_.open(batch.header, batch.columns, batch.tombstone_floor, batch.order,
                                                  {slot_of_key, records->absent_record()}, runs_.tuning,
                                                  runs_.shape.lanes(), results, before_.data());
    memory_.stand_still(2 * batch.columns.guard_kind.size() + batch.columns.op_kind.size());
    const typename Access<SimPlatformOf<1>>::Batch columns{
        slots_.data(), &batch.columns, results, slot_of_key, batch.resolver.value_word(),
        shared.defers, before_.data()};
    runs_.report = lanes_.run(runs_.schedule, [&](std::uint32_t lane) {
      SimPlatformOf<1> platform(&lanes_, lane);
      PartitionedRun<SimPlatformOf<1>, Access<SimPlatformOf<1>>, Rules>(platform, shared, {platform, columns}).run();
    });
    if (!runs_.report.status.ok()) return runs_.report.status;

    SerialRun later(shared.batch, shared.results, shared.order, waiting_.data());
    later.skip_first(memory_.close(waiting_.data(), report));
    ThreadTeam alone(1);
    HostPlatform platform(&alone, 0, nullptr);
    results->passes =
        later.finish(batch.expires.data(), batch.columns.expire_runs_else.data(),
                     Access<HostPlatform>(platform, {slots_.data(), &batch.columns, results, slot_of_key,
                                                     batch.resolver.value_word(), shared.defers, before_.data()}));
    results->next_version = batch.header.first_version + std::uint64_t{results->passes} * n;
    if (!replays(batch, *records, *results)) {
      return Status(StatusCode::internal, "a write did not replace what the one before it left");
    }
    for (std::size_t d = 0; d < slots_.size(); ++d) {
      records->cells()[2 * d] = slots_[d].cell.word;
      records->cells()[2 * d + 1] = slots_[d].cell.tag;
    }
    return {};
  }
  const DeviceInfo* device() const override { return &info_; }
  std::size_t memory_bytes() const override { return memory_.memory_bytes(); }

 private:
  // Whether each write replaced what the one before it left. WriteBack does not look at before_.
  bool replays(const ResolvedBatch& batch, const BatchRecords& records, const BatchResults& results) const {
    std::vector<Cell> running(slots_.size());
    for (std::size_t d = 0; d < running.size(); ++d) running[d] = {records.cells()[2 * d], records.cells()[2 * d + 1]};
    RankOrder order;
    order.sort(results, results.passes <= 1 && batch.order.empty());
    bool equal = true;
    order.for_each(results, [&](std::uint32_t t) {
      const OperationRange ran = operations_run(batch.columns, results, t);
      for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
        if ((results.op_flags[i] & BatchResults::kWrote) == 0) continue;
        Cell& record = running[records.record_of_key()[batch.columns.op_key[i]]];
        equal = equal && before_[i] == record;
        record = results.op_cell[i];
      }
    });
    return equal;
  }

  template <class P>
  using Access = SlotAccess<P>;

  PartitionedSimRuns& runs_;
  DeviceInfo info_{"simulator", "lanes", 1, 0};
  Lanes lanes_;
  PartitionedMemory memory_;
  std::vector<Slot> slots_;
  std::vector<Cell> before_;
  std::vector<std::uint32_t> waiting_;
};

}  // namespace kilokv::engine
