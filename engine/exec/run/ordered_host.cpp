#include "engine/exec/run/ordered_host.hpp"

#include "engine/stm/ordered.hpp"

namespace kilokv::engine {

Status OrderedHost::run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                        ExecutionReport* report) {
  arguments_ = scratch_.open(batch, tuning_, team_.size(), HostPlatform::kGroupWidth, records, results);
  team_.run([this](std::uint32_t thread) {
    HostPlatform platform(&team_, thread, nullptr);  // null: `ordered` shares no memory within a block
    OrderedRun<HostPlatform>(platform, arguments_).run();
  });
  batch.clock.add_helpers(team_.helper_time());
  Status status = scratch_.close(batch, results, report);
  report->on_device = false;
  return status;
}

}  // namespace kilokv::engine
