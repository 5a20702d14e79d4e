#include "server/core/pipeline/engine_monitor.hpp"

#include <utility>

namespace kilokv::server {

constexpr DurationUs kStatsIntervalUs = 100000;

EngineMonitor::EngineMonitor(CoreContext* core)
    : core_(core),
      devices_lost_(core->engine->execution().devices_lost),
      stats_(core->engine->stats()),
      device_(core->engine->device()) {}

TimeUs EngineMonitor::look() {
  const engine::ExecutionReport& execution = core_->engine->execution();
  if (execution.devices_lost != std::exchange(devices_lost_, execution.devices_lost)) look_at_device();
  const TimeUs now = core_->environment.clock->monotonic_us();
  const BatchNumber last = core_->executed.batch();
  const bool has_validated = execution.validated != 0 && last != std::exchange(validated_batch_, last);
  if (now < next_stats_us_ && !has_validated) return next_stats_us_;
  next_stats_us_ = now + kStatsIntervalUs;
  const engine::EngineStats stats = core_->engine->stats();
  const std::scoped_lock lock(mutex_);
  stats_ = stats;
  return kNever;
}

void EngineMonitor::look_at_device() {
  const engine::EngineDevice device = core_->engine->device();
  {
    const std::scoped_lock lock(mutex_);
    device_ = device;
  }
  core_->metrics.devices_lost.fetch_add(1, std::memory_order_relaxed);
  if (core_->events.device_lost) core_->events.device_lost(device);
}

engine::EngineStats EngineMonitor::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

engine::EngineDevice EngineMonitor::device() const {
  const std::scoped_lock lock(mutex_);
  return device_;
}

}  // namespace kilokv::server
