// What the engine reports about itself and its device, for the database's status. It is too much work to ask after
// every batch, so it is asked from time to time. A lost device, and the check of a large read set, are reported at
// once.
//
// Thread safety: only the executor calls look(); any thread may call the rest.
#pragma once

#include <cstdint>
#include <mutex>

#include "engine/engine.hpp"
#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class EngineMonitor {
 public:
  // Requires: CoreContext::engine is set.
  explicit EngineMonitor(CoreContext* core);

  // Called after each step of the executor. Calls DatabaseEvents::device_lost.
  void look();

  engine::EngineStats stats() const;
  engine::EngineDevice device() const;

 private:
  void look_at_device();

  CoreContext* const core_;
  // Only the executor uses these three.
  TimeUs next_stats_us_ = 0;
  std::uint32_t devices_lost_ = 0;   // reported so far
  BatchNumber validated_batch_ = 0;  // the last batch with a large read set that was reported
  mutable std::mutex mutex_;
  engine::EngineStats stats_;
  engine::EngineDevice device_;
};

}  // namespace kilokv::server
