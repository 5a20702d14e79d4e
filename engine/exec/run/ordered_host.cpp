#include "engine/exec/run/ordered_host.hpp"

#include "engine/exec/run/host_arguments.hpp"
#include "engine/stm/ordered.hpp"

namespace kilokv::engine {

const OrderedArguments<HostSpace>& OrderedBatches::open(const ResolvedBatch& batch, const OrderedTuning& tuning,
                                                        const BatchThreads& threads, BatchRecords* records,
                                                        BatchResults* results) {
  shape_ = shape_of(batch, *records, threads);
  if (epochs_.must_restart(shape_.transactions)) columns_.refill_kept();
  arguments_ = ordered_arguments(batch, records, results, tuning, epochs_);
  columns_.bind(shape_, &arguments_);
  return arguments_;
}

Status OrderedBatches::close(BatchResults* results, ExecutionReport* report) {
  epochs_.use(ordered_epochs_used(arguments_.words[kWordRounds]));
  report_ordered(arguments_, shape_, results, report);
  if (results->passes > 0) return {};
  return Status(StatusCode::internal, "ordered gave up a batch: no transaction made progress");
}

Status OrderedHost::run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                        ExecutionReport* report) {
  const OrderedArguments<HostSpace>& arguments =
      batches_.open(batch, tuning_, host_threads(team_.size()), records, results);
  team_.run([&](std::uint32_t thread) {
    HostPlatform platform(&team_, thread, nullptr);  // null: `ordered` shares no memory within a block
    OrderedRun<HostPlatform>(platform, arguments).run();
  });
  batch.clock.add_helpers(team_.helper_time());
  Status status = batches_.close(results, report);
  report->on_device = false;
  return status;
}

}  // namespace kilokv::engine
