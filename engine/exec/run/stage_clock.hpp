// Measures the stages of a batch, if EngineOptions::measure_stages asks for it. It always adds up the processor time of
// the helpers: the other threads that work for the batch. Thread safety: only the thread that calls Engine::execute()
// uses it. It adds what the helpers have used (add_helpers()).
#pragma once

#include "engine/exec/run/stage_times.hpp"
#include "engine/platform/host.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine {

class StageClock {
 public:
  // Begins a batch. `times` gets what is measured; null: no stage is measured.
  void begin(StageTimes* times) {
    helper_seconds_ = 0;
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
    helper_seconds_ += helpers.all;
  }
  // The processor time that helpers have used for the batch so far.
  double helper_seconds() const { return helper_seconds_; }
  bool measures() const { return times_ != nullptr; }

 private:
  StageTimes* times_ = nullptr;
  bool running_ = false;
  BatchStage stage_ = BatchStage::resolve;
  HelperTime helpers_;  // of the stage that runs
  double helper_seconds_ = 0;
  Stopwatch watch_;
};

}  // namespace kilokv::engine
