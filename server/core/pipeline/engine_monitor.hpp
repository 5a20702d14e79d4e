// What the engine reports about itself and its device, for the server status. To ask the engine after every batch would
// be too much work, so the monitor asks at most once in 0.1 s. In two cases it asks at once: the engine has lost its
// device, or has checked a large read set.
//
// Thread safety: only the executor calls look(); any thread may call the rest.
#pragma once

#include <cstdint>
#include <mutex>

#include "engine/engine.hpp"
#include "server/core/environment.hpp"
#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class EngineMonitor {
 public:
  // Requires: CoreContext::engine is set.
  explicit EngineMonitor(CoreContext* core);

  // Called after each step of the executor. Calls DatabaseEvents::device_lost. Returns when it has to be called again,
  // so that the status of a database that becomes idle is not that of an earlier step; kNever: after the next step.
  TimeUs look();

  engine::EngineStats stats() const;
  engine::EngineDevice device() const;

 private:
  void look_at_device();

  CoreContext* const core_;
  // Only the executor uses these three.
  TimeUs next_stats_us_ = 0;
  std::uint32_t devices_lost_ = 0;   // lost devices that were reported so far
  BatchNumber validated_batch_ = 0;  // the last reported batch in which a large read set was checked
  mutable std::mutex mutex_;
  engine::EngineStats stats_;
  engine::EngineDevice device_;
};

}  // namespace kilokv::server
