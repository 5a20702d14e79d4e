// What the engine knows of itself and of its device, for whoever asks for the database's status. It is too much to be
// asked after every batch. A device that is lost, and what checked a large read set, is told of at once all the same.
//
// Thread safety: look() by the executor alone; the rest any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "engine/engine.hpp"
#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class EngineMonitor {
 public:
  // Requires: the engine is there.
  explicit EngineMonitor(CoreContext* core);

  // After each step of the executor. Calls DatabaseEvents::device_lost.
  void look();

  engine::EngineStats stats() const;
  engine::EngineDevice device() const;

 private:
  void look_at_device();

  CoreContext* const core_;
  // Executor.
  TimeUs next_stats_us_ = 0;
  std::uint32_t devices_lost_ = 0;   // told of
  BatchNumber validated_batch_ = 0;  // the last large read set that has been told of
  mutable std::mutex mutex_;
  engine::EngineStats stats_;
  engine::EngineDevice device_;
};

}  // namespace kilokv::server
