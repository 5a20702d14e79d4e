// Measures the stages of a batch, if EngineOptions::measure_stages asks for it. Thread safety: only the thread that
// calls Engine::execute() uses it. It adds what other threads have used (add_helpers()).
#pragma once

#include "engine/exec/run/stage_times.hpp"
#include "engine/platform/host.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine {

class StageClock {
 public:
  // Begins a batch. `times` gets what is measured; null: the functions below do nothing.
  void begin(StageTimes* times) {
    times_ = times;
    running_ = false;
    if (times != nullptr) *times = {};
  }
  // The stage begins, and the one before it ends. A stage may begin several times. Its times add up.
  void enter(BatchStage stage) {
    if (times_ == nullptr) return;
    end();
    stage_ = stage;
    running_ = true;
    helpers_ = {};
    watch_ = Stopwatch();
  }
  // Ends the stage that runs.
  void end();
  // Other threads have worked in the stage that runs.
  void add_helpers(HelperTime helpers) {
    helpers_.all += helpers.all;
    helpers_.busiest += helpers.busiest;
  }
  bool measures() const { return times_ != nullptr; }

 private:
  StageTimes* times_ = nullptr;
  bool running_ = false;
  BatchStage stage_ = BatchStage::resolve;
  HelperTime helpers_;
  Stopwatch watch_;
};

}  // namespace kilokv::engine
